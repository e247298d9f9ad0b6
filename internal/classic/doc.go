// Package classic knows what classic OLM, the operator-lifecycle-manager, leaves on a cluster:
// its objects, read by somebody else -> operators with all that belongs to each, whether and
// how each can become a ClusterExtension, and which catalogs that takes.
//
// It reads nothing and writes nothing. What classic OLM does is that of version 0.46.
package classic
