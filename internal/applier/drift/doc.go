// Package drift tells which objects of an extension may differ from what was last
// applied: watches + fingerprints -> objects to look at, and how workloads are doing.
//
// What the cluster has is watched as the ServiceAccount of the extension, and no more
// of it is kept than fingerprints. A process that starts takes those from a release
// record, and the initial sync of the watches tells what was changed meanwhile. An
// object that is flapping, because somebody else changes it back each time, is left as
// it is for some time after each repair.
package drift
