package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/cluster"
	"github.com/clusterextensions/operator-controller/test/internal/child"
	"github.com/clusterextensions/operator-controller/test/programs"
)

// Names of the programs that can be stopped and started again.
const (
	containerdName = "containerd"
	kubeletName    = "kubelet"
	kubeProxyName  = "kube-proxy"
)

// stopGrace is how long a program may take to end in order.
const stopGrace = 10 * time.Second

// Node is a cluster with one real node.
type Node struct {
	Cluster *cluster.Cluster

	// Admin may do everything.
	Admin client.Client

	// Content has bundles and catalogs, and Programs what runs. Both are served over TLS,
	// under Registry and ProgramRegistry.
	Content, Programs *testkit.Registry

	settings settings
	root     string
	logs     string
	front    *front
	group    *child.Group
	running  map[string]*child.Process
}

// Start starts the cluster and its node, and returns when pods run and names are
// resolved. It takes the namespaces of Inside, and what Prepare has put into dir.
func Start(ctx context.Context, dir string, progress io.Writer) (_ *Node, err error) {
	root, err := testkit.ModuleRoot()
	if err != nil {
		return nil, err
	}
	n := &Node{
		settings: newSettings(dir), root: root, logs: logsDir(dir),
		group: child.NewGroup(), running: map[string]*child.Process{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Stop())
		}
	}()
	for _, step := range []struct {
		what string
		take func(context.Context) error
	}{
		{"control plane", n.startCluster},
		{"registries", n.startRegistries},
		{"node", n.startNode},
		{"DNS", n.startDNS},
	} {
		began := time.Now()
		if err := step.take(ctx); err != nil {
			return nil, fmt.Errorf("starting the %s: %w", step.what, err)
		}
		fmt.Fprintf(progress, "%s: %.1f s\n", step.what, time.Since(began).Seconds())
	}
	return n, nil
}

// AuditLog is a file with the requests that the API server gets.
func (n *Node) AuditLog() string { return filepath.Join(n.logs, "audit.log") }

// Logs is a directory for logs, which stay when a test fails.
func (n *Node) Logs() string { return n.logs }

// Root is the folder of the checkout.
func (n *Node) Root() string { return n.root }

// startCluster has the API server where pods reach it.
func (n *Node) startCluster(ctx context.Context) error {
	binaries, err := programs.BuildNode(ctx, io.Discard) // from the cache
	if err != nil {
		return err
	}
	n.Cluster, err = cluster.Start(ctx, cluster.Options{
		Binaries: binaries,
		LogDir:   filepath.Join(n.logs, "cluster"),
		Nodes:    cluster.NoNodes,
		Audit:    &cluster.Audit{Log: n.AuditLog()},
		APIServer: cluster.Flags{
			"advertise-address":               Address,
			"bind-address":                    Address,
			"endpoint-reconciler-type":        "lease",
			"kubelet-preferred-address-types": "InternalIP",
		},
	})
	if err != nil {
		return err
	}
	n.Admin, err = n.Cluster.Client(ocv1.AddToScheme)
	return err
}

// startRegistries serves what is pushed over TLS, and pushes the images of the node.
func (n *Node) startRegistries(ctx context.Context) (err error) {
	if n.Content, err = testkit.StartRegistry(); err != nil {
		return err
	}
	if n.Programs, err = testkit.StartRegistry(); err != nil {
		return err
	}
	if err := os.WriteFile(n.path("ca.crt"), n.Cluster.RESTConfig().CAData, 0o600); err != nil {
		return fmt.Errorf("writing the certificate authority: %w", err)
	}
	if err := n.Cluster.WriteServingPair(n.path("registry"), "registry", []string{Registry, ProgramRegistry}); err != nil {
		return err
	}
	certificate, err := tls.LoadX509KeyPair(n.path("registry.crt"), n.path("registry.key"))
	if err != nil {
		return fmt.Errorf("reading the certificate of the registry: %w", err)
	}
	n.front = newFront(Address+":443", certificate, map[string]string{
		Registry: n.Content.Host(), ProgramRegistry: n.Programs.Host(),
	})
	if err := n.front.open(ctx); err != nil {
		return err
	}
	_, err = n.PushProgram(ctx, "pause:1", n.program(pauseProgram))
	if err != nil {
		return err
	}
	_, err = n.PushProgram(ctx, "coredns:1", n.Cluster.Binaries().CoreDNS)
	return err
}

func (n *Node) path(name string) string { return filepath.Join(n.settings.Dir, name) }

// program is the path of one that was built from this checkout.
func (n *Node) program(name string) string { return n.path(filepath.Join("programs", name)) }

// PushProgram stores an image of a program under repository:tag of ProgramRegistry, with
// variables of the environment as NAME=value, and gives its digest.
func (n *Node) PushProgram(ctx context.Context, target, path string, variables ...string) (string, error) {
	image, err := programImage(path, variables...)
	if err != nil {
		return "", err
	}
	return push(ctx, n.Programs, target, image)
}

// startNode starts what makes a node, and waits until pods can be scheduled there.
func (n *Node) startNode(ctx context.Context) error {
	kubeconfig, err := n.Cluster.KubeconfigFor("system:node:"+Name, "system:nodes")
	if err != nil {
		return err
	}
	if n.settings.ProxyKubeconfig, err = n.Cluster.KubeconfigFor("system:kube-proxy"); err != nil {
		return err
	}
	if err := n.Cluster.WriteServingPair(n.path("kubelet"), "system:node:"+Name, []string{Name}, netip.MustParseAddr(Address)); err != nil {
		return err
	}
	if err := n.settings.write(); err != nil {
		return err
	}
	containerd, err := exec.LookPath(containerdName)
	if err != nil {
		return err
	}
	binaries := n.Cluster.Binaries()
	commands := []child.Command{
		n.command(containerdName, containerd, "--config="+n.path("containerd.toml")),
		n.command(kubeletName, binaries.Kubelet, "--config="+n.path("kubelet.yaml"), "--kubeconfig="+kubeconfig,
			"--root-dir="+n.path("kubelet"), "--cert-dir="+n.path("kubelet-certificates"),
			"--hostname-override="+Name, "--node-ip="+Address),
		n.command(kubeProxyName, binaries.KubeProxy, "--config="+n.path("kube-proxy.yaml")),
	}
	for _, command := range commands {
		if err := n.run(command); err != nil {
			return err
		}
		if command.Name == containerdName {
			if err := n.await(ctx, "containerd", n.listening); err != nil {
				return err
			}
		}
	}
	return n.await(ctx, "the node to be ready", n.Ready)
}

func (n *Node) command(name, path string, args ...string) child.Command {
	return child.Command{
		Name: name, Path: path, Args: args, Dir: n.settings.Dir,
		Env: []string{"HOME=" + n.settings.Dir, "TMPDIR=" + n.settings.Dir, "PATH=" + os.Getenv("PATH")},
		Log: filepath.Join(n.logs, name+".log"),
	}
}

func (n *Node) run(command child.Command) (err error) {
	n.running[command.Name], err = n.group.Start(command)
	return err
}

func (n *Node) listening(context.Context) error {
	_, err := os.Stat(n.settings.Socket)
	return err
}

// Ready is nil when the node is ready and has no taint.
func (n *Node) Ready(ctx context.Context) error {
	found := &corev1.Node{}
	if err := n.Admin.Get(ctx, client.ObjectKey{Name: Name}, found); err != nil {
		return err
	}
	for _, condition := range found.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && len(found.Spec.Taints) == 0 {
			return nil
		}
	}
	return fmt.Errorf("conditions are %v, taints %v", found.Status.Conditions, found.Spec.Taints)
}

// Halt ends a program of the node and leaves it ended, until Resume.
func (n *Node) Halt(program string) { n.running[program].Stop(stopGrace) }

// Resume starts again what was halted, and does not wait for it.
func (n *Node) Resume(program string) error { return n.run(n.running[program].Command()) }

// PowerOff ends the programs of the node; what ran in pods is left to the caller.
func (n *Node) PowerOff() {
	n.Halt(kubeletName)
	n.Halt(containerdName)
}

// PowerOn starts the node after PowerOff: kubelet as often as it takes, because it ends
// while containerd still looks at what there was.
func (n *Node) PowerOn() error {
	const stays = 5 * time.Second
	if err := n.Resume(containerdName); err != nil {
		return err
	}
	for {
		if err := n.Resume(kubeletName); err != nil {
			return err
		}
		select {
		case <-time.After(stays):
			return nil
		case <-n.running[kubeletName].Exited():
			time.Sleep(time.Second)
		}
	}
}

// CloseRegistries refuses every pull until OpenRegistries.
func (n *Node) CloseRegistries() error { return n.front.close() }

// OpenRegistries ends CloseRegistries.
func (n *Node) OpenRegistries(ctx context.Context) error { return n.front.open(ctx) }

// Stop ends what is not ended with the namespaces: nothing has to be in order there.
func (n *Node) Stop() error {
	n.group.Close()
	var errs []error
	if n.front != nil {
		errs = append(errs, n.front.close())
	}
	for _, registry := range []*testkit.Registry{n.Content, n.Programs} {
		if registry != nil {
			errs = append(errs, registry.Close())
		}
	}
	if n.Cluster != nil {
		errs = append(errs, n.Cluster.Stop())
	}
	return errors.Join(errs...)
}

// startPatience bounds each step of a start on a busy machine.
const startPatience = 3 * time.Minute

// await returns nil once the condition does, or says what it said last. It fails as
// soon as a program has ended, because then nothing will come of it.
func (n *Node) await(ctx context.Context, what string, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-n.group.Lost():
			return n.group.Err()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Kubectl runs kubectl as the administrator, with input, and gives what it prints.
func (n *Node) Kubectl(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, n.Cluster.Binaries().Kubectl, append([]string{"--kubeconfig", n.Cluster.Kubeconfig()}, args...)...) //nolint:gosec // our own arguments
	command.Stdin = strings.NewReader(input)
	var errors strings.Builder
	command.Stderr = &errors
	output, err := command.Output()
	if err != nil {
		return string(output), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, errors.String())
	}
	return string(output), nil
}

// PushOperator stores an image of the sample operator's program, as of a version, under
// repository:tag of ProgramRegistry, and gives its digest.
func (n *Node) PushOperator(ctx context.Context, target, version string) (string, error) {
	return n.PushProgram(ctx, target, n.program(operatorProgram), "OPERATOR_VERSION="+version)
}
