// Package controller reconciles ClusterExtensions: read, sequence, classify,
// write. It holds no rules of its own about bundles, catalogs or releases.
//
// Follow one extension from reconciler.go down:
//
//	translate  spec -> Wanted                     pure
//	observe    Wanted -> Observed                 every read of a pass
//	decide     Wanted, Observed -> Target         pure
//	pursue     Target -> Outcome                  fetch, render, apply, repair
//	classify   Outcome -> verdict                 pure; retry, wait or blocked
//	statusOf   Outcome, verdict -> status         pure; whole, once
//	write      status -> one patch if it differs
//
// I/O that is not the ClusterExtension itself goes through ports.go.
package controller
