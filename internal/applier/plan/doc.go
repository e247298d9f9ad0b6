// Package plan says what is to be done about each object of a revision, and does it:
// objects of revisions + what the cluster has -> steps -> writes.
//
// A [Plan] is made without a write: each object is read, written in a dry run, or known
// not to have drifted. An [Executor] carries the plan out wave by wave, and says how far
// it came. All requests are made as the ServiceAccount.
package plan
