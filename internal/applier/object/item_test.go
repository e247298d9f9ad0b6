package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestItems makes items of manifests that were read from a cluster.
func TestItems(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	manifest := parse(t, "apiVersion: v1\nkind: ConfigMap\n", `
metadata:
  name: x
  annotations: {a: b}
  creationTimestamp: "2020-01-01T00:00:00Z"
  deletionGracePeriodSeconds: 30
  deletionTimestamp: "2020-01-01T00:00:00Z"
  generation: 3
  managedFields: []
  resourceVersion: "7"
  selfLink: /api/v1/namespaces/default/configmaps/x
  uid: 7e7ac5b0-2f0f-4f3c-8e4e-2d5c2a5b7a11
data: {a: b}
status: {}
`)
	items, err := Items(mapper, Owner{Name: "e", Namespace: "install"}, []*unstructured.Unstructured{manifest})
	if err != nil {
		t.Fatal(err)
	}
	got := items[0].Object.Object
	unstructured.RemoveNestedField(got, "metadata", "ownerReferences")
	want := parse(t, "apiVersion: v1\nkind: ConfigMap\n", "metadata: {name: x, namespace: install, annotations: {a: b}}\ndata: {a: b}").Object
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the item differs (-want +got):\n%s", diff)
	}
}

// TestMarks has labels and annotations without a value, and others that stay.
func TestMarks(t *testing.T) {
	t.Parallel()
	owner := Owner{Name: "e", Namespace: "install"}
	manifest := parse(t, "apiVersion: v1\nkind: ConfigMap\n", "metadata: {name: x, labels: {app: x, unset: null}, annotations: {note: x, unset: null}}")
	got := owner.Own(manifest)
	owner.Stamp(got)
	wantLabels := map[string]string{
		"app": "x", "unset": "", LabelOwnerKind: OwnerKind, LabelOwnerName: "e", labelManagedBy: managedByHelm,
	}
	if diff := cmp.Diff(wantLabels, got.GetLabels()); diff != "" {
		t.Errorf("the labels differ (-want +got):\n%s", diff)
	}
	wantAnnotations := map[string]string{"note": "x", "unset": "", annotationReleaseName: "e", annotationReleaseNamespace: "install"}
	if diff := cmp.Diff(wantAnnotations, got.GetAnnotations()); diff != "" {
		t.Errorf("the annotations differ (-want +got):\n%s", diff)
	}
}
