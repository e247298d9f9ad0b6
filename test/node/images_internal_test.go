package node

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func TestControllerImageOfALayout(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := programImage(program, "A=b")
	if err != nil {
		t.Fatal(err)
	}
	want, err := made.Digest()
	if err != nil {
		t.Fatal(err)
	}
	other := v1.Descriptor{Platform: &v1.Platform{OS: "plan9", Architecture: "mips"}}
	here := v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}
	platforms := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: empty.Image, Descriptor: other}, mutate.IndexAddendum{Add: made, Descriptor: here})
	for name, index := range map[string]v1.ImageIndex{
		"platforms":             platforms,
		"platforms in an index": mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: platforms}),
	} {
		dir := t.TempDir()
		if _, err := layout.Write(dir, index); err != nil {
			t.Fatal(err)
		}
		image, err := controllerImage(dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := image.Digest(); err != nil || got != want {
			t.Errorf("%s: found %s, want %s: %v", name, got, want, err)
		}
	}
	dir := t.TempDir()
	if _, err := layout.Write(dir, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: empty.Image, Descriptor: other})); err != nil {
		t.Fatal(err)
	}
	if _, err := controllerImage(dir); !errors.Is(err, errNoPlatform) {
		t.Errorf("error is %v", err)
	}
}

func TestPushIsServed(t *testing.T) {
	t.Parallel()
	registry, err := testkit.StartRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.Close() })
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	image, err := programImage(program)
	if err != nil {
		t.Fatal(err)
	}
	want, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := push(t.Context(), registry, "program:1", image); err != nil || got != want.String() {
		t.Errorf("pushed %s, want %s: %v", got, want, err)
	}
}
