package node

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

// Ranges of addresses. That of Services is the default of the cluster.
const (
	serviceRange = "10.0.0.0/16"
	podRange     = "10.244.0.0/16"
	dnsAddress   = "10.0.0.10"
)

// Name is that of the node.
const Name = "node"

// settings are what the files of the programs are made from.
type settings struct {
	// Dir is the directory of the run; its name is that of the cgroup.
	Dir                               string
	Cgroup                            string
	CNIPlugins                        string
	PodRange, DNSAddress, PauseImage  string
	Registry, ProgramRegistry, Socket string
	Address, Name, ProxyKubeconfig    string
}

func newSettings(dir string) settings {
	return settings{
		Dir: dir, Cgroup: "/" + filepath.Base(dir), CNIPlugins: cniPlugins,
		PodRange: podRange, DNSAddress: dnsAddress, PauseImage: Image("pause", "1"),
		Registry: Registry, ProgramRegistry: ProgramRegistry,
		Socket: filepath.Join(dir, "containerd", "containerd.sock"), Address: Address, Name: Name,
	}
}

// Image is the reference of an image of a program.
func Image(name, tag string) string { return ProgramRegistry + "/" + name + ":" + tag }

// files are the configuration of the programs by path in the directory of the run.
// Where the reason for a setting is not plain, it stands beside it.
var files = map[string]string{
	"containerd.toml": `
version = 2
root = "{{.Dir}}/containerd/root"
state = "{{.Dir}}/containerd/state"
oom_score = 0
[grpc]
  address = "{{.Socket}}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{{.Dir}}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{{.PauseImage}}"
  # Without the right to do so, a container that wants to be killed later does not start.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{{.CNIPlugins}}"
    conf_dir = "{{.Dir}}/cni"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{{.Dir}}/certs.d"
`,
	// A pod reaches itself through its Service only in hairpin mode.
	"cni/10-bridge.conflist": `{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "{{.Dir}}/ipam",
            "ranges": [[{"subnet": "{{.PodRange}}"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
`,
	"certs.d/registry.example/hosts.toml": `
server = "https://{{.ProgramRegistry}}"
[host."https://{{.ProgramRegistry}}"]
  ca = "{{.Dir}}/ca.crt"
`,
	// Secrets reach pods within ten seconds, in place of a minute. The disk of whoever runs
	// the tests may be nearly full.
	"kubelet.yaml": `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: {{.Cgroup}}
containerRuntimeEndpoint: unix://{{.Socket}}
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: {{.Dir}}/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: {{.Dir}}/kubelet.crt
tlsPrivateKeyFile: {{.Dir}}/kubelet.key
clusterDNS: [{{.DNSAddress}}]
clusterDomain: cluster.local
resolvConf: {{.Dir}}/resolv.conf
failSwapOn: false
oomScoreAdj: 0
syncFrequency: 10s
serializeImagePulls: false
podLogsDir: {{.Dir}}/pods
volumePluginDir: {{.Dir}}/volume-plugins
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
`,
	"resolv.conf": "",
	// It leaves the variables of the kernel alone that are the host's.
	"kube-proxy.yaml": `
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
nftables: {minSyncPeriod: 100ms}
clientConnection: {kubeconfig: {{.ProxyKubeconfig}}}
clusterCIDR: {{.PodRange}}
hostnameOverride: {{.Name}}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
metricsBindAddress: 127.0.0.1:10249
healthzBindAddress: 127.0.0.1:10256
`,
}

// write writes the files of the programs below the directory of the run.
func (s settings) write() error {
	for name, text := range files {
		content, err := s.fill(name, text)
		if err != nil {
			return err
		}
		path := filepath.Join(s.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// fill puts the settings in the place of their names.
func (s settings) fill(name, text string) ([]byte, error) {
	parsed, err := template.New(name).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the template of %s: %w", name, err)
	}
	var filled bytes.Buffer
	if err := parsed.Execute(&filled, s); err != nil {
		return nil, fmt.Errorf("filling in %s: %w", name, err)
	}
	return filled.Bytes(), nil
}
