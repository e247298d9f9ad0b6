// Package classic runs classic OLM, the one before ClusterExtensions, beside a local
// cluster: bundles -> a catalog that it is served -> operators that it has installed, as
// there are to come over from it.
//
// Its two operators are real, and run as processes of this machine. On the cluster they
// have Deployments, and run as long as these have replicas, so that who scales them to
// zero stops them, as on other clusters.
package classic
