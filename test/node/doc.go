// Package node runs a real node on the control plane of test/cluster: checkout ->
// kubelet, containerd with runc, kube-proxy and CoreDNS, a registry over TLS, images
// that are built here, and the controller as it is deployed.
//
// All of it, and the tests, run in namespaces of their own for the network, mounts and
// processes. What they start, mount and connect ends with them, however they end; the
// cgroups and the directory that remain after a kill are removed by the next run.
//
// It takes root on Linux and some packages of Debian. Nothing of the host is changed:
// sockets, state, cgroups, names of hosts and the variables of the kernel that kubelet
// sets are those of the run.
package node
