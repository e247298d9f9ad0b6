// Package usage finds the definitions that go with an extension, and counts what there is of
// their kinds: owner + clients -> [Definition], [installation.Use].
//
// It only reads, as whoever the clients are: the controller and the ServiceAccount when an
// extension is deleted, a person who asks before that.
package usage
