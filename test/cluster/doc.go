// Package cluster runs a real Kubernetes control plane for tests and demos:
// Options -> a running etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and KWOK, and the credentials to use them.
//
// The programs are built from the Go modules that hack/cluster pins, once per
// pin, and kept in the cache of the user; nothing else is downloaded and no
// container engine is needed. Nodes and the pods on them are simulated: a
// Deployment becomes Available, but no container runs.
//
// Several clusters can run side by side, in one process or in many. Everything
// listens on the loopback interface unless the caller says otherwise. A cluster
// ends with Stop, and on Linux also with the process that started it, however
// that ends.
//
// The package must not depend on package testing, and must not know what is
// tested: custom resources, the controller and its rights are for the caller to
// install.
package cluster
