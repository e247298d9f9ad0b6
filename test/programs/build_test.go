package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMissingStepsOfAGroup(t *testing.T) {
	t.Parallel()
	g := &group{
		compile:  []compiled{{name: "library", cost: 3}},
		programs: []program{{name: "all", cost: 1, names: []string{"one", "two"}}, {name: "other", cost: 1}},
		files:    []file{{name: "rules.yaml"}},
	}
	for name, test := range map[string]struct {
		present []string
		want    string
	}{
		"nothing is built":               {nil, "library all other rules.yaml"},
		"a link is missing":              {[]string{"all", "one", "other", "rules.yaml"}, "library all"},
		"only a file is missing":         {[]string{"all", "one", "two", "other"}, "rules.yaml"},
		"everything is built":            {[]string{"all", "one", "two", "other", "rules.yaml"}, ""},
		"one of two programs is missing": {[]string{"all", "one", "two", "rules.yaml"}, "library other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, present := range test.present {
				write(t, filepath.Join(dir, present), "")
			}
			var names []string
			for _, s := range g.missing(&source{}, dir) {
				names = append(names, s.name)
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("got the steps %q, want %q", got, test.want)
			}
		})
	}
}

// With $KUBEBUILDER_ASSETS, the API server, etcd and kubectl are neither compiled nor linked.
func TestAssetsOfEnvtestAreNotBuilt(t *testing.T) {
	assets := t.TempDir()
	t.Setenv(assetsVariable, assets)
	names := func() string { return strings.Join(controlPlane().programs[0].names, " ") }
	write(t, filepath.Join(assets, "etcd"), "")
	write(t, filepath.Join(assets, "kubectl"), "")
	if got := names(); !strings.Contains(got, "kube-apiserver") {
		t.Errorf("the folder has no kube-apiserver, but only these are built: %s", got)
	}
	write(t, filepath.Join(assets, "kube-apiserver"), "")
	if got, want := names(), "etcdutl kube-controller-manager kube-scheduler kwok"; got != want {
		t.Errorf("got the programs %q, want %q", got, want)
	}
	t.Setenv(kubernetesVariable, newestKubernetes)
	if got := names(); !strings.Contains(got, "kube-apiserver") {
		t.Errorf("$%s asks for a version, but only these are built: %s", kubernetesVariable, got)
	}
	t.Setenv(kubernetesVariable, "")
	for _, step := range controlPlane().compile {
		if step.name == "kube-apiserver" || step.name == "etcd" || step.name == "kubectl" {
			t.Errorf("%s is compiled", step.name)
		}
	}
}

// Packages are compiled once only if make and this package use the same flags.
func TestCompilerFlagsAreThoseOfMake(t *testing.T) {
	t.Setenv("GOFLAGS", "")
	command := exec.CommandContext(t.Context(), "make", "-s", "env")
	command.Dir = filepath.Join("..", "..")
	output, err := command.Output()
	if flags := strings.TrimSpace(compilerFlags()); err != nil || !strings.HasSuffix(strings.TrimSpace(string(output)), flags+`"`) {
		t.Errorf("make uses %s, want %s (%v)", output, flags, err)
	}
}

func TestOtherVersionOfKubernetes(t *testing.T) {
	for version, want := range map[string]string{"": "", newestKubernetes: "", "1.31": "1.31.mod"} {
		t.Setenv(kubernetesVariable, version)
		other, err := otherKubernetes()
		if err != nil {
			t.Errorf("%q: %v", version, err)
		} else if (other == nil) != (want == "") || other != nil && other.modfile != want {
			t.Errorf("%q: got the group %+v, want pins from %q", version, other, want)
		}
	}
	t.Setenv(kubernetesVariable, "1.31")
	if _, err := BuildNode(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "runs with Kubernetes 1.37 only") {
		t.Errorf("got error %v for a real node with 1.31", err)
	}
	t.Setenv(kubernetesVariable, "1.8")
	if _, err := otherKubernetes(); err == nil || !strings.Contains(err.Error(), "1.30, 1.31, 1.34 and 1.37") {
		t.Errorf("got error %v, want a list of the pinned versions", err)
	}
}

func TestKeyFollowsThePinsAndTheToolchain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module a\n")
	write(t, filepath.Join(dir, "go.sum"), "")
	write(t, filepath.Join(dir, "other.mod"), "module c\n")
	write(t, filepath.Join(dir, "other.sum"), "")
	keys := map[string]string{"at first": keyOf(t, &source{dir: dir, toolchain: "go1"})}
	if again := keyOf(t, &source{dir: dir, toolchain: "go1"}); again != keys["at first"] {
		t.Errorf("key changed from %s to %s on its own", keys["at first"], again)
	}
	keys["with another toolchain"] = keyOf(t, &source{dir: dir, toolchain: "go2"})
	keys["with other pins"] = keyOf(t, &source{dir: dir, toolchain: "go1", modfile: "other.mod"})
	write(t, filepath.Join(dir, "go.sum"), "sum")
	keys["with another sum"] = keyOf(t, &source{dir: dir, toolchain: "go1"})
	write(t, filepath.Join(dir, "go.mod"), "module b\n")
	keys["with another module"] = keyOf(t, &source{dir: dir, toolchain: "go1"})
	keys["with tags"] = keyOf(t, &source{dir: dir, toolchain: "go1", tags: "tag"})
	write(t, filepath.Join(dir, "main.go"), "package main")
	keys["with a program of its own"] = keyOf(t, &source{dir: dir, toolchain: "go1"})
	write(t, filepath.Join(dir, "main.go"), "package main\n")
	keys["with another program"] = keyOf(t, &source{dir: dir, toolchain: "go1"})

	seen := map[string]string{}
	for when, key := range keys {
		if other, ok := seen[key]; ok {
			t.Errorf("key is the same %s and %s", when, other)
		}
		seen[key] = when
	}
}

// brokenModule returns a source whose program does not compile.
func brokenModule(t *testing.T) *source {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module broken\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() { undefined() }\n")
	return &source{dir: dir}
}

func TestBuildErrorQuotesTheGoCommand(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "program")
	err := brokenModule(t).link(t.Context(), "broken", path)

	var failed *BuildError
	if !errors.As(err, &failed) {
		t.Fatalf("got error %v, want a *BuildError", err)
	}
	if failed.Program != "program" || !strings.Contains(failed.Output, "undefined") {
		t.Errorf("got program %q and output %q", failed.Program, failed.Output)
	}
	if exists(path) {
		t.Error("a program that cannot be built is in the cache")
	}
}

// A user who presses Ctrl-C reads that nothing is lost, and no compiler output.
func TestInterruptedBuildContinuesAtTheNextCall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := run(ctx, "etcd", goCommand(ctx, t.TempDir(), "version"))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got error %v, want the error of the context", err)
	}
	want := "building etcd was interrupted\nCompiled packages are kept: the next call continues from here."
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestAdviceOfBuildErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  BuildError
		want string
	}{
		"limit of the caller": {BuildError{Err: context.DeadlineExceeded}, "The time limit of the caller ended the build."},
		"full disk":           {BuildError{Output: "write /x: no space left on device", Err: io.EOF}, "go clean -cache"},
		"compiler was killed": {BuildError{Output: "compile: signal: killed", Err: io.EOF}, "GOMAXPROCS=1"},
		"no network":          {BuildError{Output: "dial tcp: lookup x: no such host", Err: io.EOF}, "GOPROXY"},
		"mistake in the code": {BuildError{Output: "undefined: x", Err: io.EOF}, "Fix the error above and call again."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.err.Error(); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want it to contain %q", got, test.want)
			}
		})
	}
}

// Killed by a signal from outside, such as that of the kernel when memory runs out.
func TestKilledBuildNamesTheLikelyCause(t *testing.T) {
	t.Parallel()
	cmd := goCommand(t.Context(), t.TempDir(), "env")
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "kill -KILL $$"}
	if err := run(t.Context(), "etcd", cmd); err == nil || !strings.Contains(err.Error(), "memory ran out") {
		t.Errorf("got %v, want an error that names memory", err)
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	minute := pace{time: time.Minute, cost: 60}
	for name, test := range map[string]struct {
		pace       pace
		elapsed    time.Duration
		cost, rest int
		want       string
	}{
		"nothing was built yet":             {pace{}, time.Minute, 100, 100, ""},
		"at the start of a step":            {minute, 0, 120, 30, ", about 2m30s left"},
		"within a step":                     {minute, 90 * time.Second, 120, 30, ", about 1m0s left"},
		"a step takes longer than expected": {minute, time.Hour, 120, 30, ", about 30s left"},
		"on a machine half as fast":         {pace{time: 2 * time.Minute, cost: 60}, 0, 120, 30, ", about 5m0s left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.pace.estimate(test.elapsed, test.cost, test.rest); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestStepsEndWithTheFirstError(t *testing.T) {
	t.Parallel()
	var ran []string
	named := func(name string, err error) step {
		return step{name, 1, func(context.Context) error { ran = append(ran, name); return err }}
	}
	var progress bytes.Buffer
	failure := errors.New("failure")
	err := runSteps(t.Context(), &progress, []step{named("a", nil), named("b", failure), named("c", nil)})
	if !errors.Is(err, failure) || fmt.Sprint(ran) != "[a b]" {
		t.Errorf("got error %v after the steps %v", err, ran)
	}
	if progress.Len() > 0 {
		t.Errorf("steps without work were announced: %s", progress.String())
	}
}

func TestNewScratchRemovesDirectoriesOfKilledBuilds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	abandoned, err := newScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(abandoned, "etcd"), "")
	scratch, err := newScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != filepath.Base(scratch) {
		t.Errorf("got the directories %v, want %s alone", entries, filepath.Base(scratch))
	}
}

func TestAppendManifestsSkipsTheKustomization(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b.yaml"), "kind: B")
	write(t, filepath.Join(dir, "a.yaml"), "kind: A\n")
	write(t, filepath.Join(dir, "kustomization.yaml"), "kind: Kustomization\n")
	var stages bytes.Buffer
	if err := appendManifests(&stages, dir); err != nil {
		t.Fatal(err)
	}
	if got, want := stages.String(), "---\nkind: A\n\n---\nkind: B\n"; got != want {
		t.Errorf("got the stages %q, want %q", got, want)
	}
	if err := appendManifests(&stages, t.TempDir()); err == nil || !strings.Contains(err.Error(), "no manifests") {
		t.Errorf("got error %v for a directory without stages", err)
	}
}

func keyOf(t *testing.T, s *source) string {
	t.Helper()
	key, err := s.key()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
