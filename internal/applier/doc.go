// Package applier keeps the objects of one extension on the cluster as a Helm
// release: objects + owner -> release record + what is live.
//
// Content is read and written only as the ServiceAccount that the extension
// declares, see [impersonation]. The release record is the controller's
// own: Secrets in the system namespace, written crash-safe.
//
// Every object is read or tried, and checked, before the first write, see [plan]. What
// was applied is watched, so that a pass over an unchanged world asks nothing. The
// record says how objects were left, so that a process that starts asks only for
// that and for the watches, which tell what was changed meanwhile.
//
// Beyond what a revision says, certificates of webhooks are written and renewed
// where the revision leaves that to us, see [webhookcert]. They are in no record.
//
// The package knows no ClusterExtension and no catalog, and decides nothing
// about retries: it returns results and typed errors.
package applier
