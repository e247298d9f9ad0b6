// Package drift finds the objects of an extension that differ from how they were last
// applied: watches + last applied fingerprints -> objects to read, and how workloads are
// doing.
//
// Objects are watched as the ServiceAccount of the extension, or, of kinds that the
// controller may watch itself, by one watch for all extensions. Only their fingerprints are
// kept. A process that starts takes those from the release record, and the initial sync of
// the watches finds what was changed while no process ran. An object is flapping if somebody
// else changes it again after each repair. It is then left as it is for some time after each
// repair.
package drift
