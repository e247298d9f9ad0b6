// Package follow holds single objects in memory and tells a controller when one
// of them changes: names -> objects as last seen.
//
// Each object has a watch of its own, limited to its name, so that nothing else
// of its kind is read or kept: a cache of all Secrets of a namespace would hold
// every release record. The package does not write.
package follow
