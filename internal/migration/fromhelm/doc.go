// Package fromhelm makes releases of Helm ClusterExtensions, and gives them back to Helm, with the
// permissions of the user. [Cluster.Check] reads; [Cluster.Move], [Cluster.Rollback] and
// [Cluster.Finish] write.
//
// A move does not write the objects of a release: the last revision of Helm is imported as a release
// record of the controller. A pending revision in Helm's own records, the marker, makes Helm refuse an
// upgrade. Each operation can be called again after it was interrupted.
package fromhelm
