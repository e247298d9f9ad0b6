package programs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// group is programs and files that are built from one module below hack.
type group struct {
	folder string
	// modfile replaces go.mod in the folder; empty for go.mod.
	modfile string
	// tags leave out code that is large, or needs a C compiler.
	tags string
	// compile are packages that are compiled before the programs are linked, each as a step.
	compile  []compiled
	programs []program
	files    []file
}

// compiled is packages that are compiled as one step.
type compiled struct {
	name     string
	cost     int
	packages []string
}

// program is one program to link.
type program struct {
	name string
	cost int
	pkg  string
	// names are links to the program.
	names []string
}

// file is a file that is made from a module.
type file struct {
	name    string
	content func(context.Context, *source) ([]byte, error)
}

// Names of files in the cache.
const (
	stagesName             = "kwok-stages.yaml"
	fluxDefinitionsName    = "flux-crds.yaml"
	classicDefinitionsName = "classic-crds.yaml"
)

// stageDirs are the directories of the KWOK module with the stages that make
// nodes and pods ready at once and keep the leases of nodes.
var stageDirs = []string{"kustomize/stage/node/fast", "kustomize/stage/node/heartbeat-with-lease", "kustomize/stage/pod/fast"}

// controlPlane is all components of a cluster, and kubectl, as one program: what they share is
// linked once. It leaves out the programs of envtest if KUBEBUILDER_ASSETS contains them.
func controlPlane() *group {
	g := &group{
		folder: clusterFolder,
		compile: []compiled{
			{"etcd", 60, []string{"go.etcd.io/etcd/server/v3/etcdmain", "go.etcd.io/etcd/etcdutl/v3/etcdutl"}},
			{"kube-apiserver", 330, []string{"k8s.io/kubernetes/cmd/kube-apiserver/app"}},
			{"kube-controller-manager", 70, []string{"k8s.io/kubernetes/cmd/kube-controller-manager/app"}},
			{"kube-scheduler", 10, []string{"k8s.io/kubernetes/cmd/kube-scheduler/app"}},
			{"kubectl", 30, []string{"k8s.io/kubectl/pkg/cmd"}},
			{"kwok", 20, []string{kwokModule + "/pkg/kwok/cmd"}},
		},
		programs: []program{{"control-plane", 30, ".", []string{
			"etcd", "etcdutl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok",
		}}},
		files: []file{{stagesName, func(ctx context.Context, from *source) ([]byte, error) {
			return from.manifests(ctx, kwokModule, stageDirs...)
		}}},
	}
	if assets() != "" {
		g.tags, g.compile = assetsTag, g.compile[2:4]
		g.programs[0].names = []string{"etcdutl", "kube-controller-manager", "kube-scheduler", "kwok"}
	}
	return g
}

// The groups that only some tests use. The node's programs are pinned with the cluster;
// CoreDNS and the rest need other versions of the packages that both import.
var (
	nodeGroup = &group{folder: clusterFolder, programs: []program{
		{name: "kubelet", cost: 120, pkg: "k8s.io/kubernetes/cmd/kubelet"},
		{name: "kube-proxy", cost: 20, pkg: "k8s.io/kubernetes/cmd/kube-proxy"},
	}}
	dnsGroup        = &group{folder: "dns", programs: []program{{name: "coredns", cost: 100, pkg: "."}}}
	prometheusGroup = &group{folder: "prometheus", tags: "remove_all_sd", programs: []program{
		{name: "promtool", cost: 250, pkg: "github.com/prometheus/prometheus/cmd/promtool"},
		{name: "prometheus", cost: 120, pkg: "github.com/prometheus/prometheus/cmd/prometheus"},
	}}
	kubeStateMetricsGroup = &group{folder: "kube-state-metrics", programs: []program{
		{name: "kube-state-metrics", cost: 100, pkg: "k8s.io/kube-state-metrics/v2"},
	}}
	fluxGroup = &group{folder: "flux", programs: []program{
		{name: "source-controller", cost: 300, pkg: sourceControllerModule},
		{name: "kustomize-controller", cost: 100, pkg: kustomizeControllerModule},
	}, files: []file{{fluxDefinitionsName, fluxDefinitions}}}
	argoCDGroup  = &group{folder: "argocd", programs: []program{{name: "argocd", cost: 200, pkg: "."}}}
	classicGroup = &group{
		folder: "classic", tags: "containers_image_openpgp", programs: []program{{name: "classic", cost: 300, pkg: "."}},
		files: []file{{classicDefinitionsName, func(ctx context.Context, from *source) ([]byte, error) {
			return from.manifests(ctx, classicModule, "deploy/chart/crds")
		}}},
	}
	opmGroup = &group{folder: "opm", tags: "containers_image_openpgp", programs: []program{
		{name: "opm", cost: 100, pkg: "github.com/operator-framework/operator-registry/cmd/opm"},
	}}
)

func fluxDefinitions(ctx context.Context, from *source) ([]byte, error) {
	var joined []byte
	for _, module := range []string{sourceControllerModule, kustomizeControllerModule} {
		definitions, err := from.manifests(ctx, module, "config/crd/bases")
		if err != nil {
			return nil, err
		}
		joined = append(joined, definitions...)
	}
	return joined, nil
}

// missing returns the steps that build the programs and files which are not in dir.
func (g *group) missing(from *source, dir string) []step {
	var steps []step
	for _, p := range g.programs {
		if !p.isIn(dir) {
			steps = append(steps, p.step(from, dir))
		}
	}
	if len(steps) > 0 {
		steps = append(g.compileSteps(from), steps...)
	}
	for _, f := range g.files {
		if path := filepath.Join(dir, f.name); !exists(path) {
			steps = append(steps, step{f.name, 0, func(ctx context.Context) error { return f.write(ctx, from, path) }})
		}
	}
	return steps
}

func (g *group) compileSteps(from *source) []step {
	steps := make([]step, 0, len(g.compile))
	for _, c := range g.compile {
		steps = append(steps, step{c.name, c.cost, func(ctx context.Context) error { return from.compile(ctx, c.name, c.packages...) }})
	}
	return steps
}

// isIn reports whether the program and all its links are in dir.
func (p program) isIn(dir string) bool {
	for _, name := range p.names {
		if !exists(filepath.Join(dir, name)) {
			return false
		}
	}
	return exists(filepath.Join(dir, p.name))
}

// step links the program, and its other names to it.
func (p program) step(from *source, dir string) step {
	path := filepath.Join(dir, p.name)
	return step{p.name, p.cost, func(ctx context.Context) error {
		if err := from.link(ctx, p.pkg, path); err != nil {
			return err
		}
		for _, name := range p.names {
			err := os.Link(path, filepath.Join(dir, name))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("linking %s to %s: %w", name, p.name, err)
			}
		}
		return nil
	}}
}

// write writes the file, which is complete as soon as it exists.
func (f file) write(ctx context.Context, from *source, path string) error {
	content, err := f.content(ctx, from)
	if err != nil {
		return err
	}
	scratch := path + ".part"
	if err := os.WriteFile(scratch, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", f.name, err)
	}
	if err := os.Rename(scratch, path); err != nil {
		return fmt.Errorf("moving %s to the cache: %w", f.name, err)
	}
	return nil
}
