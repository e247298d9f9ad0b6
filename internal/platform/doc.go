// Package platform tells what a cluster as such offers: which kinds its API
// server serves, and the versions of Kubernetes and OpenShift.
//
// Answers come from memory. Which kinds are served is read from discovery, and
// read again after the definitions that discovery is made from have changed:
// there is no request about it before somebody asks, and none in a world that
// does not change. Of the kinds that its mapper gives the resources of, the same is
// true: none is remembered for longer than it is served.
//
// It also tells those who wait for rights when roles and bindings have changed,
// and not what they say: the API server alone knows what that comes to.
//
// The package reads as the controller itself, and of definitions, roles and
// bindings no more than their metadata. It does not write, and knows nothing of
// bundles.
package platform
