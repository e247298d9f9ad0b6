// Package release keeps what is installed as Helm does: objects + revision <-> release
// record. Records are Secrets in the system namespace, written crash-safe, in chunks.
//
// It is the only package that imports Helm. What Helm is asked is in [Operation.Run];
// what answers it is a [History], as the storage of records, and [Content], which
// touches the cluster.
package release
