// Package preview says what an operation would do to a cluster, for people who ask before
// it happens: trials of objects, rights, findings about definitions -> a [Preview], sorted
// and bounded, in which no value of a Secret stands.
//
// It asks nobody, and decides nothing: who makes the trials and whose rights they are made
// with is up to the caller. The same facts give the same preview, byte for byte.
package preview
