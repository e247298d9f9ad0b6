package node

import (
	"context"
	"fmt"
)

// startDNS runs CoreDNS as clusters do, and waits for it.
func (n *Node) startDNS(ctx context.Context) error {
	manifest, err := n.settings.fill("DNS", dnsManifest)
	if err != nil {
		return err
	}
	if _, err := n.Kubectl(ctx, string(manifest), "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	_, err = n.Kubectl(ctx, "", "-n", "kube-system", "rollout", "status", "deployment/coredns",
		fmt.Sprintf("--timeout=%s", startPatience))
	return err
}

// dnsManifest resolves the names of Services and those of the registries, and no
// others. A port above 1024 takes no right.
const dnsManifest = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: system:coredns}
rules:
  - {apiGroups: [""], resources: [services, pods, namespaces], verbs: [list, watch]}
  - {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: system:coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns}
subjects: [{kind: ServiceAccount, name: coredns, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    cluster.local:5353 in-addr.arpa:5353 {
      errors
      health :8080
      ready :8181
      kubernetes cluster.local in-addr.arpa {
        ttl 5
      }
      cache 5
    }
    {{.Registry}}:5353 {{.ProgramRegistry}}:5353 {
      hosts {
        {{.Address}} {{.Registry}} {{.ProgramRegistry}}
        ttl 5
      }
    }
    .:5353 {
      template IN ANY {
        rcode NXDOMAIN
      }
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      dnsPolicy: Default
      terminationGracePeriodSeconds: 1
      containers:
        - name: coredns
          image: {{.ProgramRegistry}}/coredns:1
          args: [-conf, /etc/coredns/Corefile]
          ports:
            - {containerPort: 5353, name: dns, protocol: UDP}
            - {containerPort: 5353, name: dns-tcp, protocol: TCP}
          readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 1}
          resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 128Mi}}
          securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true, runAsUser: 65532, capabilities: {drop: [ALL]}}
          volumeMounts: [{name: config, mountPath: /etc/coredns}]
      volumes: [{name: config, configMap: {name: coredns}}]
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: {{.DNSAddress}}
  selector: {k8s-app: kube-dns}
  ports:
    - {name: dns, port: 53, targetPort: dns, protocol: UDP}
    - {name: dns-tcp, port: 53, targetPort: dns-tcp, protocol: TCP}
`
