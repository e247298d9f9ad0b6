package programs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Modules that programs or files are taken from.
const (
	selfModule                = "github.com/clusterextensions/operator-controller"
	kubernetesModule          = "k8s.io/kubernetes"
	kwokModule                = "sigs.k8s.io/kwok"
	sourceControllerModule    = "github.com/fluxcd/source-controller"
	kustomizeControllerModule = "github.com/fluxcd/kustomize-controller"
	classicModule             = "github.com/operator-framework/operator-lifecycle-manager"
)

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

// interruptGrace is the time a go command gets to end after an interrupt, before it is
// killed.
const interruptGrace = 10 * time.Second

// source is a folder of hack with a module that pins programs, and the toolchain that builds
// them.
type source struct {
	dir string
	// modfile replaces go.mod in dir; empty for go.mod.
	modfile   string
	tags      string
	toolchain string
}

// checkout returns the root folder of the main module, whichever of its modules the working
// directory is in.
func checkout(ctx context.Context) (string, error) {
	root, err := goOutput(ctx, "", "list", "-m", "-f", "{{.Dir}}", selfModule)
	if err != nil {
		return "", fmt.Errorf("locating module %s: %w", selfModule, err)
	}
	return root, nil
}

// locate returns the source of a group.
func (g *group) locate(ctx context.Context) (*source, error) {
	root, err := checkout(ctx)
	if err != nil {
		return nil, err
	}
	s := &source{dir: filepath.Join(root, "hack", g.folder), modfile: g.modfile, tags: g.tags}
	if s.toolchain, err = goOutput(ctx, s.dir, "env", "GOVERSION", "GOOS", "GOARCH"); err != nil {
		return nil, fmt.Errorf("asking for the Go version: %w", err)
	}
	return s, nil
}

// cacheDir creates the directory of the programs that are built from exactly this source.
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
		return "", fmt.Errorf("creating cache directory: %w", err)
	}
	return dir, nil
}

// key returns a digest of the pins, of the Go files beside them, and of the way they are
// built.
func (s *source) key() (string, error) {
	names, err := filepath.Glob(filepath.Join(s.dir, "*.go"))
	if err != nil {
		return "", fmt.Errorf("listing Go files: %w", err)
	}
	for i, path := range names {
		names[i] = filepath.Base(path)
	}
	mod := "go.mod"
	if s.modfile != "" {
		mod = s.modfile
	}
	hash := sha256.New()
	for _, name := range append([]string{mod, strings.TrimSuffix(mod, ".mod") + ".sum"}, names...) {
		content, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			return "", fmt.Errorf("reading pins of the cluster: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n", name, len(content))
		hash.Write(content)
	}
	fmt.Fprintln(hash, s.toolchain, compilerFlags(), linkRecipe, stageDirs, s.tags)
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// compile compiles packages into the build cache.
func (s *source) compile(ctx context.Context, name string, packages ...string) error {
	return run(ctx, name, s.command(ctx, "build", packages...))
}

// link builds the program pkg and moves it to path when it is complete.
func (s *source) link(ctx context.Context, pkg, path string) (err error) {
	scratch, err := newScratch(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	flags, err := s.linkFlags(ctx)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	built := filepath.Join(scratch, name)
	if err := run(ctx, name, s.command(ctx, "build", "-ldflags="+flags, "-o", built, pkg)); err != nil {
		return err
	}
	if err := os.Rename(built, path); err != nil {
		return fmt.Errorf("moving %s to the cache: %w", name, err)
	}
	return nil
}

// linkFlags returns the linker flags of s. They contain the pinned version of Kubernetes,
// which release builds of it contain: clients ask the API server for its version.
func (s *source) linkFlags(ctx context.Context) (string, error) {
	if folder := filepath.Base(s.dir); folder != clusterFolder && folder != kubernetesFolder {
		return "-s -w", nil
	}
	version, err := s.output(ctx, "list", "-m", "-f", "{{.Version}}", kubernetesModule)
	if err != nil {
		return "", fmt.Errorf("asking for the version of Kubernetes: %w", err)
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return "", fmt.Errorf("version %q of Kubernetes: want three numbers", version)
	}
	return fmt.Sprintf(linkRecipe, version, parts[0], parts[1]), nil
}

// manifests returns the YAML documents of folders of a module, joined.
func (s *source) manifests(ctx context.Context, module string, folders ...string) ([]byte, error) {
	root, err := s.output(ctx, "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return nil, fmt.Errorf("locating module %s: %w", module, err)
	}
	var joined bytes.Buffer
	for _, folder := range folders {
		if err := appendManifests(&joined, filepath.Join(root, filepath.FromSlash(folder))); err != nil {
			return nil, err
		}
	}
	return joined.Bytes(), nil
}

// appendManifests appends the YAML documents of a directory, except the list that
// kustomize reads.
func appendManifests(to *bytes.Buffer, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return fmt.Errorf("listing manifests: %w", err)
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

// command returns a go command in the folder of s.
func (s *source) command(ctx context.Context, verb string, arguments ...string) *exec.Cmd {
	flags := []string{verb}
	if s.modfile != "" {
		flags = append(flags, "-modfile="+s.modfile)
	}
	if s.tags != "" {
		flags = append(flags, "-tags="+s.tags)
	}
	return goCommand(ctx, s.dir, append(flags, arguments...)...)
}

func (s *source) output(ctx context.Context, verb string, arguments ...string) (string, error) {
	return output(s.command(ctx, verb, arguments...))
}

// optimizedVariable is 1 for optimized programs, which benchmarks measure.
const optimizedVariable = "OPTIMIZED"

// compilerFlags leave out inlining and debugging information: compiling takes a quarter less time.
// The Makefile has the same flags, so that each package is compiled once.
func compilerFlags() string {
	if os.Getenv(optimizedVariable) == "1" {
		return ""
	}
	return " '-gcflags=all=-l -dwarf=false' -gcflags=std=-dwarf=false" +
		" -gcflags=k8s.io/apimachinery/...=-dwarf=false -gcflags=sigs.k8s.io/...=-dwarf=false"
}

// goCommand returns a go command that ignores GOFLAGS, CGO_ENABLED and GOWORK of the caller, so that
// all builds without the race detector share compiled packages.
//
// An interrupt from the terminal reaches this process alone: the command is in a process
// group of its own. When ctx ends, the group gets the interrupt, which lets the go command
// remove its temporary files and keep the packages it has compiled.
func goCommand(ctx context.Context, dir string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", arguments...) //nolint:gosec // the arguments are ours
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly -trimpath -buildvcs=false"+compilerFlags(), "GOWORK=off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = interruptGrace
	return cmd
}

func goOutput(ctx context.Context, dir string, arguments ...string) (string, error) {
	return output(goCommand(ctx, dir, arguments...))
}

func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(output)), nil
}
