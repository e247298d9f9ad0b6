// Package programs builds the programs that tests and the demo run: the components of a
// local cluster, tools of other projects, and the programs of this checkout.
//
// It imports the standard library only, so that the command below it starts within seconds
// on a machine that has compiled nothing yet, and reports progress from then on.
package programs
