// Package plan says what is to be done about each object of a revision, and does it:
// objects of revisions + what the cluster has -> steps -> writes.
//
// A [Plan] is made without a write: objects are read, tried in a dry run, or known to
// be as they were last applied. An [Executor] carries it out wave by wave, and says how
// far it came. All requests are those of a client that acts as the ServiceAccount.
package plan
