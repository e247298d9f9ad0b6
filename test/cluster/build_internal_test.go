package cluster

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLocatePrograms(t *testing.T) {
	t.Parallel()
	cache, assets := t.TempDir(), t.TempDir()
	touch(t, filepath.Join(cache, etcdName), filepath.Join(cache, kwokName))
	// The scheduler is not one of the programs of envtest.
	touch(t, filepath.Join(assets, apiServerName), filepath.Join(assets, schedulerName))

	binaries := &Binaries{}
	missing := binaries.locate(cache, assets, programs)
	want := &Binaries{
		Etcd:              filepath.Join(cache, etcdName),
		EtcdUtility:       filepath.Join(cache, etcdUtilityName),
		APIServer:         filepath.Join(assets, apiServerName),
		ControllerManager: filepath.Join(cache, controllerManagerName),
		Scheduler:         filepath.Join(cache, schedulerName),
		KWOK:              filepath.Join(cache, kwokName),
		Kubectl:           filepath.Join(cache, kubectlName),
	}
	if diff := cmp.Diff(want, binaries); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
	var absent []string
	for _, p := range missing {
		absent = append(absent, p.name)
	}
	if diff := cmp.Diff([]string{etcdUtilityName, controllerManagerName, schedulerName, kubectlName}, absent); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestKeyFollowsThePinsAndTheToolchain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module a\n")
	write(t, filepath.Join(dir, "go.sum"), "")
	keys := map[string]string{"at first": keyOf(t, &source{dir: dir, toolchain: "go1"})}
	if again := keyOf(t, &source{dir: dir, toolchain: "go1"}); again != keys["at first"] {
		t.Errorf("key changed from %s to %s on its own", keys["at first"], again)
	}
	keys["with another toolchain"] = keyOf(t, &source{dir: dir, toolchain: "go2"})
	write(t, filepath.Join(dir, "go.sum"), "sum")
	keys["with another sum"] = keyOf(t, &source{dir: dir, toolchain: "go1"})
	write(t, filepath.Join(dir, "go.mod"), "module b\n")
	keys["with another module"] = keyOf(t, &source{dir: dir, toolchain: "go1"})
	keys["with tags"] = keyOf(t, &source{name: prometheusSource, dir: dir, toolchain: "go1"})
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

func TestBuildReportsWhatTheGoCommandSays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module broken\n\ngo 1.26.0\n\n"+
		"require k8s.io/kubernetes v1.2.3\nreplace k8s.io/kubernetes => ./kubernetes\n")
	if err := os.Mkdir(filepath.Join(dir, "kubernetes"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "kubernetes", "go.mod"), "module k8s.io/kubernetes\n")
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() { undefined() }\n")
	scratch := t.TempDir()
	path := filepath.Join(t.TempDir(), "program")
	p := program{name: "program", pkg: "broken"}
	err := (&source{dir: dir}).build(t.Context(), p, scratch, path)

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

func TestNewScratchRemovesWhatAKilledBuildLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	abandoned, err := newScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	touch(t, filepath.Join(abandoned, etcdName))
	scratch, err := newScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Base(scratch)}, entryNames(t, dir)); diff != "" {
		t.Errorf("directories (-want +got):\n%s", diff)
	}
}

func TestAppendManifestsTakesAllButTheList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b.yaml"), "kind: B")
	write(t, filepath.Join(dir, "a.yaml"), "kind: A\n")
	write(t, filepath.Join(dir, "kustomization.yaml"), "kind: Kustomization\n")
	var stages bytes.Buffer
	if err := appendManifests(&stages, dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("---\nkind: A\n\n---\nkind: B\n", stages.String()); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
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

func touch(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		write(t, path, "")
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
