package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	selfModule       = "github.com/clusterextensions/operator-controller"
	kubernetesModule = "k8s.io/kubernetes"
	kwokModule       = "sigs.k8s.io/kwok"
)

// Folders of hack with a module that pins programs.
const (
	clusterSource          = "cluster"
	dnsSource              = "dns"
	kubeStateMetricsSource = "kube-state-metrics"
	prometheusSource       = "prometheus"
)

// buildTags leave out what is large, by module, or needs a C compiler: Prometheus is told what
// to scrape, and opm and classic OLM have no signatures to check.
var buildTags = map[string]string{prometheusSource: "remove_all_sd", opmSource: "containers_image_openpgp", classicSource: "containers_image_openpgp"}

// stageDirs are the directories of the KWOK module with the stages that make
// nodes and pods ready at once and keep the leases of nodes.
var stageDirs = []string{"node/fast", "node/heartbeat-with-lease", "pod/fast"}

// linkRecipe is the linker flags before the versions are filled in. It is part
// of the key of the cache.
const linkRecipe = "-s -w" +
	" -X k8s.io/component-base/version.gitVersion=%[1]s" +
	" -X k8s.io/component-base/version.gitMajor=%[2]s" +
	" -X k8s.io/component-base/version.gitMinor=%[3]s" +
	" -X k8s.io/component-base/version.gitTreeState=clean" +
	" -X k8s.io/client-go/pkg/version.gitVersion=%[1]s" +
	" -X k8s.io/client-go/pkg/version.gitMajor=%[2]s" +
	" -X k8s.io/client-go/pkg/version.gitMinor=%[3]s" +
	" -X k8s.io/client-go/pkg/version.gitTreeState=clean"

// source is the module that pins the programs, with the toolchain that builds
// them.
type source struct {
	name      string
	dir       string
	toolchain string
}

// locateSource finds a module beside this package, wherever in the build list
// of the working directory that is.
func locateSource(ctx context.Context, name string) (*source, error) {
	root, err := goOutput(ctx, "", "list", "-m", "-f", "{{.Dir}}", selfModule)
	if err != nil {
		return nil, fmt.Errorf("locating module %s: %w", selfModule, err)
	}
	dir := filepath.Join(root, "hack", name)
	toolchain, err := goOutput(ctx, dir, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return nil, fmt.Errorf("asking for the Go version: %w", err)
	}
	return &source{name: name, dir: dir, toolchain: toolchain}, nil
}

// cacheDir makes the directory for what is built from exactly this source.
func (s *source) cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("locating cache: %w", err)
	}
	key, err := s.key()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "operator-controller", "cluster", key)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("making cache directory: %w", err)
	}
	return dir, nil
}

func (s *source) key() (string, error) {
	hash := sha256.New()
	names, err := filepath.Glob(filepath.Join(s.dir, "*.go"))
	if err != nil {
		return "", fmt.Errorf("looking for programs of ours: %w", err)
	}
	for i, path := range names {
		names[i] = filepath.Base(path)
	}
	for _, name := range append([]string{"go.mod", "go.sum"}, names...) {
		content, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			return "", fmt.Errorf("reading pins of the cluster: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n", name, len(content))
		hash.Write(content)
	}
	fmt.Fprintln(hash, s.toolchain, linkRecipe, stageDirs)
	if tags := buildTags[s.name]; tags != "" {
		fmt.Fprintln(hash, tags)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// build builds the program in the scratch directory and moves it to its path.
func (s *source) build(ctx context.Context, p program, scratch, path string) error {
	flags, err := s.linkFlags(ctx)
	if err != nil {
		return err
	}
	built := filepath.Join(scratch, p.name)
	output, err := goCommand(ctx, s.dir, "build", "-tags="+buildTags[s.name], "-ldflags="+flags, "-o", built, p.pkg).CombinedOutput()
	if err != nil {
		return &BuildError{Program: p.name, Output: string(output), Err: err}
	}
	if err := os.Rename(built, path); err != nil {
		return fmt.Errorf("moving %s to the cache: %w", p.name, err)
	}
	return nil
}

// linkFlags stamps the pinned version of Kubernetes, which is otherwise read
// from a release build: clients ask the API server for it and change what they
// do. Nobody asks the programs of other modules.
func (s *source) linkFlags(ctx context.Context) (string, error) {
	if s.name != clusterSource {
		return "-s -w", nil
	}
	version, err := goOutput(ctx, s.dir, "list", "-m", "-f", "{{.Version}}", kubernetesModule)
	if err != nil {
		return "", fmt.Errorf("asking for the version of Kubernetes: %w", err)
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return "", fmt.Errorf("version %q of Kubernetes: want three numbers", version)
	}
	return fmt.Sprintf(linkRecipe, version, parts[0], parts[1]), nil
}

// copyStages joins the stages of the KWOK module in one file.
func (s *source) copyStages(ctx context.Context, path string) error {
	root, err := goOutput(ctx, s.dir, "list", "-m", "-f", "{{.Dir}}", kwokModule)
	if err != nil {
		return fmt.Errorf("locating module %s: %w", kwokModule, err)
	}
	folders := make([]string, 0, len(stageDirs))
	for _, dir := range stageDirs {
		folders = append(folders, filepath.Join(root, "kustomize", "stage", filepath.FromSlash(dir)))
	}
	return joinManifests(path, folders...)
}

// joinManifests joins the YAML documents of directories in one file, which is complete as
// soon as it is there.
func joinManifests(path string, dirs ...string) error {
	var joined bytes.Buffer
	for _, dir := range dirs {
		if err := appendManifests(&joined, dir); err != nil {
			return err
		}
	}
	scratch := path + ".part"
	if err := os.WriteFile(scratch, joined.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	if err := os.Rename(scratch, path); err != nil {
		return fmt.Errorf("moving manifests to the cache: %w", err)
	}
	return nil
}

// appendManifests appends the YAML documents of a directory, except the list that
// is for kustomize.
func appendManifests(to *bytes.Buffer, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return fmt.Errorf("looking for manifests: %w", err)
	}
	files = slices.DeleteFunc(files, func(path string) bool {
		return filepath.Base(path) == "kustomization.yaml"
	})
	if len(files) == 0 {
		return fmt.Errorf("no manifests in %s", dir)
	}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading manifest: %w", err)
		}
		to.WriteString("---\n")
		to.Write(content)
		to.WriteString("\n")
	}
	return nil
}

// goCommand runs the go command with fixed settings: the flags of who runs the
// tests, such as -race, are not for the programs of the cluster.
func goCommand(ctx context.Context, dir string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", arguments...) //nolint:gosec // the arguments are ours
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly -trimpath", "GOWORK=off")
	return cmd
}

func goOutput(ctx context.Context, dir string, arguments ...string) (string, error) {
	cmd := goCommand(ctx, dir, arguments...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(output)), nil
}
