package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/clusterextensions/operator-controller/test/cluster/internal/filelock"
)

// assetsVariable names a directory with programs to use instead of built ones:
// the convention of envtest.
const assetsVariable = "KUBEBUILDER_ASSETS"

// stagesName is the name of the KWOK stages in the cache.
const stagesName = "kwok-stages.yaml"

// Binaries are the paths of the programs that make a cluster.
type Binaries struct {
	Etcd, APIServer, ControllerManager, Scheduler, KWOK string
	// EtcdUtility restores snapshots of etcd.
	EtcdUtility string
	// Kubectl is for people and scripts; the cluster does without.
	Kubectl string
	// Stages is a file that tells KWOK how nodes and pods come to life.
	Stages string
	// Kubelet, KubeProxy and CoreDNS make a real node; only BuildNode has them.
	Kubelet, KubeProxy, CoreDNS string
	// Prometheus, Promtool and KubeStateMetrics watch a cluster; only BuildMonitoring has
	// them.
	Prometheus, Promtool, KubeStateMetrics string
}

// BuildError says which program could not be built.
type BuildError struct {
	// Program is its name.
	Program string
	// Output is what the go command printed.
	Output string
	// Err is why the go command ended.
	Err error
}

// Error quotes the output, which has a line for each mistake.
func (e *BuildError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("building %s: %v\n%s", e.Program, e.Err, e.Output))
}

// Unwrap is why the go command ended.
func (e *BuildError) Unwrap() error {
	return e.Err
}

// program is one that can be built.
type program struct {
	name string
	pkg  string
	// asset says that envtest provides it, too.
	asset bool
	// path is where Binaries keeps its path.
	path func(*Binaries) *string
}

// programs are in the order in which they are built: first what shares most.
var programs = []program{
	{etcdName, "go.etcd.io/etcd/server/v3", true, func(b *Binaries) *string { return &b.Etcd }},
	{etcdUtilityName, "go.etcd.io/etcd/etcdutl/v3", false, func(b *Binaries) *string { return &b.EtcdUtility }},
	{apiServerName, "k8s.io/kubernetes/cmd/kube-apiserver", true, func(b *Binaries) *string { return &b.APIServer }},
	{controllerManagerName, "k8s.io/kubernetes/cmd/kube-controller-manager", false, func(b *Binaries) *string { return &b.ControllerManager }},
	{schedulerName, "k8s.io/kubernetes/cmd/kube-scheduler", false, func(b *Binaries) *string { return &b.Scheduler }},
	{kubectlName, "k8s.io/kubernetes/cmd/kubectl", true, func(b *Binaries) *string { return &b.Kubectl }},
	{kwokName, kwokModule + "/cmd/kwok", false, func(b *Binaries) *string { return &b.KWOK }},
}

// nodePrograms are from the same module as programs, and dnsPrograms from one of
// their own: CoreDNS needs other versions of what both need.
var (
	nodePrograms = []program{
		{kubeletName, "k8s.io/kubernetes/cmd/kubelet", false, func(b *Binaries) *string { return &b.Kubelet }},
		{kubeProxyName, "k8s.io/kubernetes/cmd/kube-proxy", false, func(b *Binaries) *string { return &b.KubeProxy }},
	}
	dnsPrograms = []program{
		{coreDNSName, ".", false, func(b *Binaries) *string { return &b.CoreDNS }},
	}
)

// monitoringPrograms are from modules of their own, too, by their names.
var monitoringPrograms = map[string][]program{
	prometheusSource: {
		{promtoolName, "github.com/prometheus/prometheus/cmd/promtool", false, func(b *Binaries) *string { return &b.Promtool }},
		{prometheusName, "github.com/prometheus/prometheus/cmd/prometheus", false, func(b *Binaries) *string { return &b.Prometheus }},
	},
	kubeStateMetricsSource: {
		{kubeStateMetricsName, "k8s.io/kube-state-metrics/v2", false, func(b *Binaries) *string { return &b.KubeStateMetrics }},
	},
}

// Build returns the programs that make a cluster, building those that are not
// in the cache yet, which takes minutes the first time. The cache is below
// os.UserCacheDir and has a directory for each state of the module that pins
// the programs. Programs of envtest in $KUBEBUILDER_ASSETS are used as they are.
//
// Progress gets one line for each program built. Processes that build the same
// programs take turns. A program that cannot be built is a *BuildError.
func Build(ctx context.Context, progress io.Writer) (*Binaries, error) {
	source, err := locateSource(ctx, clusterSource)
	if err != nil {
		return nil, err
	}
	dir, err := source.cacheDir()
	if err != nil {
		return nil, err
	}
	binaries := &Binaries{Stages: filepath.Join(dir, stagesName)}
	missing := binaries.locate(dir, os.Getenv(assetsVariable), programs)
	if len(missing) == 0 && exists(binaries.Stages) {
		return binaries, nil
	}
	if err := binaries.build(ctx, source, dir, programs, progress); err != nil {
		return nil, err
	}
	return binaries, nil
}

// BuildNode is Build with the programs of a real node, which take some minutes more
// the first time.
func BuildNode(ctx context.Context, progress io.Writer) (*Binaries, error) {
	binaries, err := Build(ctx, progress)
	if err != nil {
		return nil, err
	}
	for name, wanted := range map[string][]program{clusterSource: nodePrograms, dnsSource: dnsPrograms} {
		if err := binaries.add(ctx, name, wanted, progress); err != nil {
			return nil, err
		}
	}
	return binaries, nil
}

// BuildMonitoring returns the programs that watch a cluster, and no others, building them
// as Build does.
func BuildMonitoring(ctx context.Context, progress io.Writer) (*Binaries, error) {
	binaries := &Binaries{}
	for name, wanted := range monitoringPrograms {
		if err := binaries.add(ctx, name, wanted, progress); err != nil {
			return nil, err
		}
	}
	return binaries, nil
}

// add has the programs of a module beside those of others.
func (b *Binaries) add(ctx context.Context, name string, wanted []program, progress io.Writer) error {
	source, err := locateSource(ctx, name)
	if err != nil {
		return err
	}
	dir, err := source.cacheDir()
	if err != nil {
		return err
	}
	if len(b.locate(dir, "", wanted)) == 0 {
		return nil
	}
	return b.build(ctx, source, dir, wanted, progress)
}

// build fills the cache directory while no other process does.
func (b *Binaries) build(ctx context.Context, from *source, dir string, wanted []program, progress io.Writer) (err error) {
	lock, err := filelock.Wait(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()

	scratch, err := newScratch(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()

	// Looked at again: who held the lock has built.
	missing := b.locate(dir, os.Getenv(assetsVariable), wanted)
	for i, p := range missing {
		_, _ = fmt.Fprintf(progress, "building %s (%d/%d) … ", p.name, i+1, len(missing))
		began := time.Now()
		if err := from.build(ctx, p, scratch, *p.path(b)); err != nil {
			_, _ = fmt.Fprintln(progress, "failed")
			return err
		}
		_, _ = fmt.Fprintf(progress, "%.0fs\n", time.Since(began).Seconds())
	}
	if b.Stages == "" || exists(b.Stages) {
		return nil
	}
	return from.copyStages(ctx, b.Stages)
}

// newScratch makes a directory for what is half built, on the file system of
// the cache, so that a rename completes it. What a killed build has left is
// removed: the lock is held.
func newScratch(dir string) (string, error) {
	const prefix = ".build-"
	abandoned, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return "", fmt.Errorf("looking for abandoned builds: %w", err)
	}
	for _, path := range abandoned {
		if err := os.RemoveAll(path); err != nil {
			return "", fmt.Errorf("removing abandoned build: %w", err)
		}
	}
	scratch, err := os.MkdirTemp(dir, prefix)
	if err != nil {
		return "", fmt.Errorf("making build directory: %w", err)
	}
	return scratch, nil
}

// locate says where each program is or will be, and gives those that are missing.
func (b *Binaries) locate(dir, assets string, wanted []program) []program {
	var missing []program
	for _, p := range wanted {
		path := filepath.Join(dir, p.name)
		if asset := filepath.Join(assets, p.name); p.asset && assets != "" && exists(asset) {
			path = asset
		}
		*p.path(b) = path
		if !exists(path) {
			missing = append(missing, p)
		}
	}
	return missing
}

func exists(path string) bool {
	_, err := os.Stat(path) //nolint:gosec // $KUBEBUILDER_ASSETS is for whoever runs the tests to set
	return err == nil
}
