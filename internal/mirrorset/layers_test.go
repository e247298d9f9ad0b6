package mirrorset

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
)

// found is what the library says of a name by a main file; "" for nothing.
func found(t *testing.T, main, name string) string {
	t.Helper()
	sysregistriesv2.InvalidateCache()
	registry, err := sysregistriesv2.FindRegistry(&types.SystemContext{
		SystemRegistriesConfPath: main, SystemRegistriesConfDirPath: main + ".d",
	}, name)
	if err != nil {
		t.Fatal(err)
	}
	if registry == nil {
		return ""
	}
	return strings.ReplaceAll(shown([]sysregistriesv2.Registry{*registry}), "\n", "")
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLayers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	explicit := filepath.Join(dir, "explicit.conf")
	writeFile(t, explicit, "[[registry]]\nlocation = \"quay.io/one\"\n[[registry]]\nlocation = \"quay.io/two\"\n")
	writeFile(t, filepath.Join(explicit+".d", "a.conf"), "[[registry]]\nprefix = \"quay.io/two\"\nlocation = \"drop-in.test\"\n")
	writeFile(t, filepath.Join(dir, "layers", "left", "over"), "")
	var sets []Set
	layers, err := NewLayers(filepath.Join(dir, "layers"), explicit, func(context.Context) ([]Set, error) { return sets, nil })
	if err != nil {
		t.Fatal(err)
	}
	now := func() string {
		t.Helper()
		main, err := layers.RegistriesConf(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return main
	}
	if main := now(); main != explicit {
		t.Errorf("without sets the file is %s", main)
	}
	sets = []Set{parse(t, digestSet("a", `
    - {source: quay.io/one, mirrors: [m.test]}
    - {source: quay.io/two, mirrors: [m.test]}
    - {source: quay.io/three, mirrors: [m.test]}`))}
	first := now()
	for name, want := range map[string]string{
		"quay.io/one": "quay.io/one at quay.io/one", "quay.io/two": "quay.io/two at drop-in.test",
		"quay.io/three": "quay.io/three at quay.io/three  m.test digest-only",
	} {
		if got := found(t, first, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if again := now(); again != first {
		t.Errorf("nothing has changed, and the file is %s, not %s", again, first)
	}
	// A pull that has begun goes on with what it began with.
	writeFile(t, filepath.Join(explicit+".d", "b.conf"), "[[registry]]\nprefix = \"quay.io/three\"\nlocation = \"late.test\"\n")
	second := now()
	if got := found(t, second, "quay.io/three"); got != "quay.io/three at late.test" {
		t.Errorf("after an edit of the files it is %q", got)
	}
	if got := found(t, first, "quay.io/three"); got != "quay.io/three at quay.io/three  m.test digest-only" {
		t.Errorf("what a pull began with has changed: %q", got)
	}
	// What is left of changes is bounded.
	for i := range 3 * keptLayers {
		sets[0].Entries[0].Mirrors = []string{"m" + strings.Repeat("m", i) + ".test"}
		now()
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "layers")); err != nil || len(entries) != keptLayers {
		t.Errorf("there are %d directories (%v)", len(entries), err)
	}
	// An explicit file that is wrong is an error, as it is without sets, and is read again.
	writeFile(t, explicit, "[[")
	if _, err := layers.RegistriesConf(t.Context()); err == nil {
		t.Error("a file that cannot be read is no error")
	}
	writeFile(t, explicit, "")
	if got := found(t, now(), "quay.io/one"); !strings.Contains(got, "mmm.test digest-only") {
		t.Errorf("after it was mended it is %q", got)
	}
}
