package main

import (
	"errors"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func TestFetch(t *testing.T) {
	t.Parallel()
	registry, err := testkit.StartRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	})
	conf := t.TempDir() + "/registries.conf"
	if err := registry.WriteRegistriesConf(conf); err != nil {
		t.Fatal(err)
	}
	puller, err := image.New(image.Config{Dir: t.TempDir(), RegistriesConf: conf})
	if err != nil {
		t.Fatal(err)
	}
	operator := testkit.Operator{Package: "p", Version: "1.0.0"}
	digest, err := registry.Push(t.Context(), "p:good", operator.Bundle(), nil)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := testkit.Tar(testkit.Symlink("manifests/link", "/etc/passwd"))
	if err != nil {
		t.Fatal(err)
	}
	bad, err := registry.PushLayers(t.Context(), "p:bad", nil, testkit.Layer{Blob: testkit.Gzip(layer)})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		ref      string
		fails    bool
		unusable bool
	}{
		"by tag":          {ref: "/p:good"},
		"by digest":       {ref: "/p@" + digest},
		"not a reference": {ref: "/P:UPPER", fails: true, unusable: true},
		"missing":         {ref: "/p:missing", fails: true},
		"bad under a tag": {ref: "/p:bad", fails: true},
		"bad for ever":    {ref: "/p@" + bad, fails: true, unusable: true},
	}
	images := newBundles(puller)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := images.Fetch(t.Context(), controller.Owner{Name: name}, registry.Host()+tc.ref)
			if (err != nil) != tc.fails {
				t.Fatalf("err = %v, want one: %t", err, tc.fails)
			}
			var unusable *controller.UnusableImageError
			if errors.As(err, &unusable) != tc.unusable {
				t.Errorf("err = %v, want it final: %t", err, tc.unusable)
			}
			if err == nil {
				files.Close()
			}
		})
	}
}
