package bundle_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const (
	installNamespace = "install-ns"
	watchNamespace   = "watch-ns"
)

// renderConfigured takes the way of a user: the namespace is configuration.
func renderConfigured(b *bundle.Bundle, watch string) ([]*unstructured.Unstructured, error) {
	var inline []byte
	if watch != "" {
		inline = []byte(`{"watchNamespace":"` + watch + `"}`)
	}
	config, err := bundle.ParseConfig(b, installNamespace, inline)
	if err != nil {
		return nil, err
	}
	return bundle.Render(b, bundle.Options{InstallNamespace: installNamespace, Config: config, Certificates: bundle.CertManager})
}

// TestOddBundles: what is broken or out of the ordinary ends in a named error,
// or works.
func TestOddBundles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testkit.Corpus(t), "odd")
	unsupported := func(err error) bool { return errors.As(err, new(*bundle.UnsupportedError)) }
	invalid := func(err error) bool { return errors.As(err, new(*bundle.InvalidError)) }
	works := func(err error) bool { return err == nil }
	want := map[string]func(error) bool{
		"busybox-2.0.0-extra-kinds":                     works,
		"etcd-0.9.4-extra-kinds":                        unsupported,
		"etcd-0.9.4-invalid-dependency-type":            unsupported,
		"etcd-0.9.4-invalid-label-dependency":           unsupported,
		"jupyter-notebook-validator-1.0.7-no-manifests": invalid,
		"ndmspc-operator-misnamed-dependency":           works,
		"prometheus-0.14.0-substitutesfor":              unsupported,
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			b, err := bundle.Parse(os.DirFS(filepath.Join(dir, entry.Name())))
			if err == nil {
				_, err = renderConfigured(b, "")
			}
			if matches := want[entry.Name()]; matches == nil || !matches(err) {
				t.Errorf("unexpected result: %v", err)
			}
		})
	}
}
