// Package chartlife_test takes real charts through the life of a release, with Helm and as ClusterExtensions,
// and moves releases from one to the other.
package chartlife_test
