package catalogserver_test

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

func TestImagePuller(t *testing.T) {
	t.Parallel()
	registry, config := imagetest.Start(t, "registry.test")
	images, err := image.New(config)
	if err != nil {
		t.Fatal(err)
	}
	content := fstest.MapFS{
		"configs/p/catalog.json": {Data: []byte(objectP)},
		"etc/passwd":             {Data: []byte("root")},
	}
	push := func(target string, labels map[string]string) string {
		digest, err := registry.Push(t.Context(), target, content, labels)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	digest := push("catalog:latest", map[string]string{image.CatalogLabel: "/configs"})
	push("other:latest", nil)

	puller := catalogserver.ImagePuller(images)
	want := "registry.test/catalog@" + digest
	if got, err := puller.Resolve(t.Context(), "registry.test/catalog:latest", pullsecret.Credentials{}); err != nil || got != want {
		t.Errorf("resolve: got %q, %v, want %q", got, err, want)
	}
	pulled, err := puller.Pull(t.Context(), "registry.test/catalog:latest", pullsecret.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	defer pulled.Close()
	if pulled.Canonical != want {
		t.Errorf("pull: got %q, want %q", pulled.Canonical, want)
	}
	// Only the folder of the catalog is there, as the root.
	if data, err := fs.ReadFile(pulled.Files, "p/catalog.json"); err != nil || string(data) != objectP {
		t.Errorf("got %q, %v", data, err)
	}
	var label *image.LabelError
	if _, err := puller.Pull(t.Context(), "registry.test/other:latest", pullsecret.Credentials{}); !errors.As(err, &label) {
		t.Errorf("got %v for an image without a catalog, want an *image.LabelError", err)
	}
	var reference *image.ReferenceError
	if _, err := puller.Pull(t.Context(), "ubuntu/foo:latest", pullsecret.Credentials{}); !errors.As(err, &reference) {
		t.Errorf("got %v, want an *image.ReferenceError", err)
	}
}
