package cluster

import (
	"net/netip"
	"strconv"
)

// Names of the components, as they appear in errors, process lists and log
// files.
const (
	etcdName              = "etcd"
	apiServerName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	schedulerName         = "kube-scheduler"
	kwokName              = "kwok"
)

// Names of the sockets of etcd, relative to the working directory of all
// components. Sockets take no port that others might want and let no other user
// in; etcd wants their names to look like addresses.
const (
	etcdClients = "unix://etcd:2379"
	etcdPeers   = "unix://etcd:2380"
)

// serviceRange is where Services get their addresses; the first belongs to the
// Service of the API server itself.
const serviceRange = "10.0.0.0/16"

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// etcdFlags trades durability, which a cluster that is thrown away has no use
// for, for speed.
func etcdFlags(dir *workDir) Flags {
	return Flags{
		"advertise-client-urls":       etcdClients,
		"data-dir":                    dir.join("etcd"),
		"initial-advertise-peer-urls": etcdPeers,
		"initial-cluster":             "default=" + etcdPeers,
		"listen-client-urls":          etcdClients,
		"listen-peer-urls":            etcdPeers,
		"log-level":                   "warn",
		"snapshot-count":              "10000",
		"unsafe-no-fsync":             "true",
	}
}

// apiServerFlags authorizes with RBAC and identifies clients by certificates
// and ServiceAccount tokens. To the servers of other APIs it says who a request is from, as
// the front proxy that they know by its certificate. The Service "kubernetes" gets no endpoints, because
// nothing but a node could use them and loopback addresses are refused there.
func apiServerFlags(dir *workDir, port int) Flags {
	return Flags{
		"advertise-address":                loopback.String(),
		"allow-privileged":                 "true",
		"authorization-mode":               "Node,RBAC",
		"bind-address":                     loopback.String(),
		"client-ca-file":                   dir.join("ca.crt"),
		"endpoint-reconciler-type":         "none",
		"etcd-servers":                     etcdClients,
		"kubelet-certificate-authority":    dir.join("ca.crt"),
		"kubelet-client-certificate":       dir.join("kubelet-client.crt"),
		"kubelet-client-key":               dir.join("kubelet-client.key"),
		"permit-port-sharing":              "true",
		"profiling":                        "false",
		"proxy-client-cert-file":           dir.join("front-proxy.crt"),
		"proxy-client-key-file":            dir.join("front-proxy.key"),
		"requestheader-allowed-names":      frontProxyUser,
		"requestheader-client-ca-file":     dir.join("ca.crt"),
		"requestheader-group-headers":      "X-Remote-Group",
		"requestheader-username-headers":   "X-Remote-User",
		"secure-port":                      strconv.Itoa(port),
		"service-account-issuer":           "https://kubernetes.default.svc.cluster.local",
		"service-account-key-file":         dir.join("service-account.key"),
		"service-account-signing-key-file": dir.join("service-account.key"),
		"service-cluster-ip-range":         serviceRange,
		"tls-cert-file":                    dir.join("apiserver.crt"),
		"tls-private-key-file":             dir.join("apiserver.key"),
	}
}

// controllerManagerFlags runs each controller with the rights of its own
// ServiceAccount, as real clusters do, and serves nothing, because a port would
// have to be found for it. The limits on requests are raised so that a burst of
// garbage is collected at once.
func controllerManagerFlags(dir *workDir) Flags {
	return Flags{
		"cluster-signing-cert-file":        dir.join("ca.crt"),
		"cluster-signing-key-file":         dir.join("ca.key"),
		"kube-api-burst":                   "200",
		"kube-api-qps":                     "100",
		"kubeconfig":                       dir.join(controllerManagerName + ".kubeconfig"),
		"leader-elect":                     "false",
		"profiling":                        "false",
		"root-ca-file":                     dir.join("ca.crt"),
		"secure-port":                      "0",
		"service-account-private-key-file": dir.join("service-account.key"),
		"use-service-account-credentials":  "true",
	}
}

func schedulerFlags(dir *workDir) Flags {
	return Flags{
		"kubeconfig":   dir.join(schedulerName + ".kubeconfig"),
		"leader-elect": "false",
		"profiling":    "false",
		"secure-port":  "0",
	}
}

// kwokFlags manages the nodes that carry the annotation, and only those: a real
// node can join.
func kwokFlags(dir *workDir, stages string) Flags {
	return Flags{
		"config":                                stages,
		"kubeconfig":                            dir.join(kwokName + ".kubeconfig"),
		"manage-nodes-with-annotation-selector": kwokNodeAnnotation + "=" + kwokNodeFake,
		"node-lease-duration-seconds":           "40",
	}
}
