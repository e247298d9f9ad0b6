package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/clusterextensions/operator-controller/test/internal/filelock"
)

// assetsVariable names a directory with programs to use instead of built ones:
// the convention of envtest.
const assetsVariable = "KUBEBUILDER_ASSETS"

// clusterFolder is the folder of hack with the components of a cluster.
const clusterFolder = "cluster"

// assetsTag leaves the programs of envtest out of the control plane.
const assetsTag = "envtest"

// Binaries are the paths of the programs that make a cluster.
type Binaries struct {
	Etcd, APIServer, ControllerManager, Scheduler, KWOK string
	// EtcdUtility restores snapshots of etcd.
	EtcdUtility string
	// Kubectl is not part of the cluster: people and scripts use it.
	Kubectl string
	// Stages is a file with the rules by which KWOK makes nodes and pods ready.
	Stages string
	// Kubelet, KubeProxy and CoreDNS make a real node; only BuildNode returns them.
	Kubelet, KubeProxy, CoreDNS string
}

// Monitoring are the paths of the programs that watch a cluster.
type Monitoring struct {
	Prometheus, Promtool, KubeStateMetrics string
}

// GitOps are the paths of programs that reconcile a cluster with a repository.
type GitOps struct {
	// SourceController and KustomizeController are controllers of Flux, and
	// FluxDefinitions is a file with the CRDs of both.
	SourceController, KustomizeController, FluxDefinitions string
	// ArgoCD is hack/argocd: the engine of Argo CD as a program.
	ArgoCD string
}

// Classic is OLM v0.
type Classic struct {
	// Program is hack/classic: its operators, and a server for catalogs.
	Program string
	// Definitions is a file with its CRDs.
	Definitions string
}

// Build returns the programs that make a cluster, and builds those that are not in the cache
// yet, which takes minutes the first time. The cache is below os.UserCacheDir and has a
// directory for each state of the module that pins the programs. Programs of envtest in
// $KUBEBUILDER_ASSETS are used as they are. $KUBERNETES names another minor version for the API
// server, the controller manager and the scheduler.
//
// Build reports its steps to progress. Processes that build the same programs take turns.
// The error is a *BuildError for a program that cannot be built.
func Build(ctx context.Context, progress io.Writer) (_ *Binaries, err error) {
	b := &build{progress: progress}
	defer func() { err = errors.Join(err, b.unlock()) }()
	binaries, err := b.addControlPlane(ctx)
	if err != nil {
		return nil, err
	}
	return binaries, runSteps(ctx, progress, b.steps)
}

// BuildNode is Build with the programs of a real node, which take some minutes more
// the first time.
func BuildNode(ctx context.Context, progress io.Writer) (*Binaries, error) {
	if version := KubernetesVersion(); version != newestKubernetes {
		return nil, fmt.Errorf("%s=%s: a real node runs with Kubernetes %s only", kubernetesVariable, version, newestKubernetes)
	}
	binaries, err := Build(ctx, progress)
	if err != nil {
		return nil, err
	}
	node, err := nodeGroup.provide(ctx, progress)
	if err != nil {
		return nil, err
	}
	dns, err := dnsGroup.provide(ctx, progress)
	if err != nil {
		return nil, err
	}
	binaries.Kubelet, binaries.KubeProxy = filepath.Join(node, "kubelet"), filepath.Join(node, "kube-proxy")
	binaries.CoreDNS = filepath.Join(dns, "coredns")
	return binaries, nil
}

// BuildMonitoring is Build for the programs that watch a cluster.
func BuildMonitoring(ctx context.Context, progress io.Writer) (*Monitoring, error) {
	prometheus, err := prometheusGroup.provide(ctx, progress)
	if err != nil {
		return nil, err
	}
	metrics, err := kubeStateMetricsGroup.provide(ctx, progress)
	return &Monitoring{
		Prometheus:       filepath.Join(prometheus, "prometheus"),
		Promtool:         filepath.Join(prometheus, "promtool"),
		KubeStateMetrics: filepath.Join(metrics, "kube-state-metrics"),
	}, err
}

// BuildGitOps is Build for GitOps tools.
func BuildGitOps(ctx context.Context, progress io.Writer) (*GitOps, error) {
	flux, err := fluxGroup.provide(ctx, progress)
	if err != nil {
		return nil, err
	}
	argoCD, err := argoCDGroup.provide(ctx, progress)
	return &GitOps{
		SourceController:    filepath.Join(flux, "source-controller"),
		KustomizeController: filepath.Join(flux, "kustomize-controller"),
		FluxDefinitions:     filepath.Join(flux, fluxDefinitionsName),
		ArgoCD:              filepath.Join(argoCD, "argocd"),
	}, err
}

// BuildClassic is Build for OLM v0.
func BuildClassic(ctx context.Context, progress io.Writer) (*Classic, error) {
	dir, err := classicGroup.provide(ctx, progress)
	return &Classic{Program: filepath.Join(dir, "classic"), Definitions: filepath.Join(dir, classicDefinitionsName)}, err
}

// BuildOPM is Build for opm. It returns its path.
func BuildOPM(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := opmGroup.provide(ctx, progress)
	return filepath.Join(dir, "opm"), err
}

// assets returns the directory with the programs of envtest; empty unless it has all of them. It is
// empty, too, if $KUBERNETES asks for a version, because the version of these programs is unknown.
func assets() string {
	dir := os.Getenv(assetsVariable)
	if os.Getenv(kubernetesVariable) != "" {
		return ""
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if dir == "" || !exists(filepath.Join(dir, name)) {
			return ""
		}
	}
	return dir
}

// provide returns the directory of the programs and files of g, and builds what is missing
// while no other process does.
func (g *group) provide(ctx context.Context, progress io.Writer) (_ string, err error) {
	b := &build{progress: progress}
	defer func() { err = errors.Join(err, b.unlock()) }()
	dir, err := b.add(ctx, g)
	if err != nil {
		return "", err
	}
	return dir, runSteps(ctx, progress, b.steps)
}

// build is steps, and the locks that are held while they run.
type build struct {
	progress io.Writer
	steps    []step
	locks    map[string]*filelock.Lock
}

// add adds the steps that build the missing programs and files of g, and returns their
// directory.
func (b *build) add(ctx context.Context, g *group) (string, error) {
	from, err := g.locate(ctx)
	if err != nil {
		return "", err
	}
	dir, err := from.cacheDir()
	if err != nil || len(g.missing(from, dir)) == 0 {
		return dir, err
	}
	if err := b.lock(ctx, filepath.Join(dir, "lock")); err != nil {
		return "", err
	}
	// The previous holder of the lock may have built them.
	b.steps = append(b.steps, g.missing(from, dir)...)
	return dir, nil
}

// lock waits for a lock, which is held until unlock.
func (b *build) lock(ctx context.Context, path string) error {
	if b.locks[path] != nil {
		return nil
	}
	lock, err := filelock.Try(path)
	if errors.Is(err, filelock.ErrHeld) {
		_, _ = fmt.Fprintln(b.progress, "waiting for another process that builds the same programs")
		lock, err = filelock.Wait(ctx, path)
	}
	if err != nil {
		return err
	}
	if b.locks == nil {
		b.locks = map[string]*filelock.Lock{}
	}
	b.locks[path] = lock
	return nil
}

func (b *build) unlock() error {
	var errs []error
	for _, lock := range b.locks {
		errs = append(errs, lock.Release())
	}
	return errors.Join(errs...)
}

// newScratch creates a directory for unfinished programs on the file system of
// the cache, so that a rename completes one. It removes the directories that killed builds
// have left: the lock is held.
func newScratch(dir string) (string, error) {
	const prefix = ".build-"
	abandoned, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return "", fmt.Errorf("listing abandoned builds: %w", err)
	}
	for _, path := range abandoned {
		if err := os.RemoveAll(path); err != nil {
			return "", fmt.Errorf("removing abandoned build: %w", err)
		}
	}
	scratch, err := os.MkdirTemp(dir, prefix)
	if err != nil {
		return "", fmt.Errorf("creating build directory: %w", err)
	}
	return scratch, nil
}

func exists(path string) bool {
	_, err := os.Stat(path) //nolint:gosec // $KUBEBUILDER_ASSETS is set by the user who runs the tests
	return err == nil
}
