// Package catalogserver makes catalogs available inside the cluster:
// ClusterCatalog -> image -> checked content on disk -> HTTP and status.
//
// It has two sides that share nothing but the Store. The content side (Store,
// Handler, Server) holds immutable content and serves whatever it holds, on
// every replica and from the moment it starts. The status side (Reconciler)
// decides on the leader what the content should be, has it pulled and stored,
// and is the only writer of a ClusterCatalog; on the other replicas it has
// pulled and stored what the status names, and writes nothing.
//
// Content that is served stays served until its successor is complete. The
// package does not resolve anything: it checks that content can be parsed, not
// that it makes sense.
package catalogserver
