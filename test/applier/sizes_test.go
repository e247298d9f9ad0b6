package applier_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestObjectsThatAreTooLarge (F19): neither a record nor an object is written of a revision with an object
// that no API server accepts, and what is installed is repaired.
//
//nolint:tparallel,paralleltest // one after the other
func TestObjectsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "toolarge")
	large := configMap("large", strings.Repeat("x", 5<<19))
	tests := []struct {
		name    string
		objects []*unstructured.Unstructured
	}{
		{"F19: at a first install", []*unstructured.Unstructured{configMap("a", "2"), large}},
		{"F19: in an upgrade", []*unstructured.Unstructured{configMap("a", "2"), large}},
		{"F19: an object that was small", []*unstructured.Unstructured{configMap("a", strings.Repeat("x", 5<<19))}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			before := len(f.records(t))
			result, err := f.applier.Apply(t.Context(), f.owner, f.desired("2.0.0", tc.objects...))
			if tooLarge := (*object.TooLargeError)(nil); !errors.As(err, &tooLarge) || tooLarge.Bytes != 5<<19 {
				t.Fatalf("err = %v, want one about the size", err)
			}
			if after := len(f.records(t)); result.Began || after != before {
				t.Errorf("something was written: %+v, %d records after %d", result, after, before)
			}
			if before == 0 {
				f.apply(t, "1.0.0", configMap("a", "1"))
			}
			f.settle(t)
			if err := admin.Delete(t.Context(), f.live(t, "a")); err != nil {
				t.Fatal(err)
			}
			f.waitForChange(t)
			if _, err := f.applier.Repair(t.Context(), f.owner); err != nil || f.live(t, "a") == nil {
				t.Errorf("what is installed is not repaired: %v", err)
			}
		})
	}
}

// TestObjectsThatAreTooLargeForTheStore (F19): only the write tells, as how much etcd stores is configured. The
// record of the revision that has failed can be read, so that what is installed is repaired and replaced.
func TestObjectsThatAreTooLargeForTheStore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "toolargetostore")
	f.forgetful(t)
	crd := issuers("toolarge.test")
	f.define(t, crd)
	large := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crd.Spec.Group + "/v1", "kind": crd.Spec.Names.Kind,
		"metadata": map[string]any{"name": "large"}, "spec": map[string]any{"text": strings.Repeat("x", 7<<18)},
	}}
	f.apply(t, "1.0.0", configMap("a", "1"))
	result, err := f.applier.Apply(t.Context(), f.owner, f.desired("2.0.0", configMap("a", "2"), large))
	if err == nil || !result.Began {
		t.Fatalf("%+v, %v; want etcd to refuse it", result, err)
	}
	f.restart(t)
	if _, err := f.applier.Repair(t.Context(), f.owner); err != nil || f.live(t, "a").Data["key"] != "1" {
		t.Errorf("what is installed is not repaired: %v", err)
	}
	f.apply(t, "1.0.1", configMap("a", "3"))
}
