// Package resolve chooses the bundle that a request should have, from what the
// catalogs offer: ([Request], []Catalog) -> ([Resolution], error).
//
// It is a function of its arguments: it reads no cluster, no network and no
// clock, keeps nothing between calls, and the order of catalogs, channels,
// entries, bundles and skips never changes an answer. It only looks one hop
// ahead from the installed bundle, and further only to find out whether a bundle
// leads to one that waits for what it requires. Cycles in a catalog do no harm.
//
// Every bundle that was not chosen is reported together with the first rule
// that spoke against it, on success ([Resolution.LeftOut]) as on failure
// ([Error.LeftOut]).
//
// A catalog package is parsed and ordered once, by [Prepare]; [Resolve] only
// reads the result, so callers can share one [Prepared] per catalog content
// between goroutines.
//
// # Preference
//
// In this order:
//  1. bundles whose version can be read, before those whose version cannot;
//  2. bundles that are not deprecated, before deprecated ones: deprecation
//     outranks the priority of a catalog;
//  3. the catalog with the highest priority;
//  4. within it the highest version, then the highest release; of bundles that
//     share both, the installed one, then the first by name.
//
// Catalogs of one priority that disagree make the request ambiguous, which is
// an error and never a silent choice. The same holds for a chosen bundle that
// must be refused: the next best one is not taken in its place.
//
// A bundle that the cluster lacks something for is left out, and the next best one
// is taken only if it is newer or if upgrades lead from it to the one that waits
// ([DeadEnd]).
package resolve
