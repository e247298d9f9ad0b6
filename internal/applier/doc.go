// Package applier keeps the objects of one extension on the cluster as a Helm
// release: objects + owner -> release record + what is live.
//
// The packages below do one thing each; this one says in which order. [Applier.Observe]
// says what is installed. [Applier.Apply] installs a revision or upgrades to it.
// [Applier.Repair] puts back what has drifted. [Applier.BeginDeletion] and
// [Applier.Orphan] are for an extension that is deleted: its content goes with it, or
// stays. What is remembered between passes is in one memory for each extension.
//
// Content is read and written only as the ServiceAccount that the extension
// declares, see [impersonation.As]; kinds that the controller may watch itself it watches for
// all extensions, see [impersonation.Selecting]. The release record is the controller's
// own: Secrets in the system namespace, written crash-safe.
//
// Every object is read or written in a dry run, and checked, before the first write,
// see [plan.Plan]. Objects are watched after that, so that a pass over an unchanged
// cluster makes no request. The release record has the last applied fingerprints, so
// that a process that starts needs only the record and the initial sync of the watches
// to find what has drifted.
//
// Certificates of webhooks are written and renewed where the bundle leaves that to the
// controller, see [webhookcert]. They are in no record.
//
// The package knows no ClusterExtension and no catalog, and decides nothing
// about retries: it returns results and typed errors.
package applier
