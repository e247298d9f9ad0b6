package bundle_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
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
	return rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: installNamespace, Config: config, Certificates: bundle.CertManager}))
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

// TestSeveralNamespacesOfRealBundles has every bundle that supports MultiNamespace support nothing
// else: roles and bindings are in each namespace as they would be in it alone, and all other
// objects are there once.
func TestSeveralNamespacesOfRealBundles(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	dirs, err := filepath.Glob(filepath.Join(testkit.Corpus(t), "bundles", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, dir := range dirs {
		b, err := bundle.Parse(os.DirFS(dir))
		if err != nil || !supports(b, operatorsv1alpha1.InstallModeTypeMultiNamespace) {
			continue
		}
		alone, err := renderWatching(b, operatorsv1alpha1.InstallModeTypeSingleNamespace, `{"watchNamespace": "a-ns"}`)
		several, severalErr := renderWatching(b, operatorsv1alpha1.InstallModeTypeMultiNamespace, `{"watchNamespaces": ["b-ns", "a-ns"]}`)
		if err != nil && severalErr != nil && err.Error() == severalErr.Error() {
			continue // it cannot be installed at all
		}
		if err != nil || severalErr != nil {
			t.Errorf("%s: for one: %v; for several: %v", dir, err, severalErr)
			continue
		}
		seen++
		want := countsOf(alone)
		for key, count := range countsOf(alone) {
			if key[1] == "a-ns" {
				want[[3]string{key[0], "b-ns", key[2]}] = count
			}
		}
		if diff := cmp.Diff(want, countsOf(several)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", dir, diff)
		}
	}
	if seen < 20 {
		t.Errorf("only %d bundles support several namespaces", seen)
	}
}

func supports(b *bundle.Bundle, mode operatorsv1alpha1.InstallModeType) bool {
	return slices.ContainsFunc(b.CSV.Spec.InstallModes, func(declared operatorsv1alpha1.InstallMode) bool {
		return declared.Type == mode && declared.Supported
	})
}

// renderWatching has the bundle support one install mode alone.
func renderWatching(b *bundle.Bundle, mode operatorsv1alpha1.InstallModeType, inline string) ([]*unstructured.Unstructured, error) {
	b.CSV.Spec.InstallModes = []operatorsv1alpha1.InstallMode{{Type: mode, Supported: true}}
	config, err := bundle.ParseConfig(b, installNamespace, []byte(inline))
	if err != nil {
		return nil, err
	}
	return rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: installNamespace, Config: config, Certificates: bundle.CertManager}))
}

// countsOf counts by kind, namespace and name.
func countsOf(objects []*unstructured.Unstructured) map[[3]string]int {
	counts := map[[3]string]int{}
	for _, object := range objects {
		counts[[3]string{object.GroupVersionKind().String(), object.GetNamespace(), object.GetName()}]++
	}
	return counts
}
