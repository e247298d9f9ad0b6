// Package controller reconciles ClusterExtensions: read, sequence, classify,
// write. It holds no rules of its own about bundles, catalogs or releases.
//
// Follow one extension from reconciler.go down:
//
//	translate  spec -> Wanted                     pure
//	observe    Wanted -> Observed                 every read of a pass
//	decide     Wanted, Observed -> Target         pure
//	announce   Target -> status                   that a revision is under way
//	advance    Target -> Outcome                  fetch, render, apply
//	keep       Target -> Outcome                  repair
//	onward     Outcome -> Target                  pure; where the next pass goes
//	classify   Outcome -> verdict                 pure; retry, wait or blocked
//	phaseOf    Outcome, verdict -> phase          pure; at rest, at work or stuck
//	statusOf   Outcome, verdict, phase -> status  pure; whole
//	write      status -> one patch if it differs
//
// I/O goes through ports.go, except for what is read from the cache of the manager:
// extensions, catalogs and ServiceAccounts.
package controller
