// Package applier keeps the objects of one extension on the cluster as a Helm
// release: objects + owner -> release record + what is live.
//
// It is the door to rooms of which each does one thing, and says in which order they
// do it: [Applier.Observe] what is installed, [Applier.Apply] a revision,
// [Applier.Repair] what was changed, and [Applier.Depart] or [Applier.LetGo] at the end.
// A memory, one for each incarnation of an extension, has all that stays between
// passes.
//
// Content is read and written only as the ServiceAccount that the extension
// declares, see [impersonation.As]. The release record is the controller's
// own: Secrets in the system namespace, written crash-safe.
//
// Every object is read or tried, and checked, before the first write, see [plan.Plan].
// What was applied is watched, so that a pass over an unchanged world asks nothing. The
// record says how objects were last applied, so that a process that starts asks only for
// that and for the watches, which tell what was changed meanwhile.
//
// Beyond what a revision says, certificates of webhooks are written and renewed
// where the revision leaves that to us, see [webhookcert]. They are in no record.
//
// The package knows no ClusterExtension and no catalog, and decides nothing
// about retries: it returns results and typed errors.
package applier
