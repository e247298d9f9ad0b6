package applier

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// itemOf is a ConfigMap as a release record has it.
func itemOf(owner object.Owner, name string, isImported, isKept bool) object.Item {
	manifest := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	manifest.SetNamespace(owner.Namespace)
	manifest.SetName(name)
	if isKept {
		manifest.SetAnnotations(map[string]string{object.AnnotationPolicy: "keep"})
	}
	if !isImported {
		manifest = owner.Own(manifest)
	}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	return object.Item{
		Key: object.KeyOf(manifest), Object: manifest,
		Mapping: &meta.RESTMapping{Resource: resource, GroupVersionKind: manifest.GroupVersionKind(), Scope: meta.RESTScopeNamespace},
	}
}

// TestDeletionWithoutPermissions: if the ServiceAccount lost its permissions, the imported and the kept objects are
// named.
func TestDeletionWithoutPermissions(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`))
	}))
	t.Cleanup(server.Close)
	applier, err := New(Config{
		REST: &rest.Config{Host: server.URL}, Mapper: meta.NewDefaultRESTMapper(nil), SystemNamespace: "system",
		Changed: func(string) {}, LacksNamespace: func(context.Context, string) bool { return false }, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(applier.Close)
	owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns", ServiceAccount: "installer"}
	items := []object.Item{
		itemOf(owner, "imported", true, false), itemOf(owner, "imported-kept", true, true),
		itemOf(owner, "kept", false, true), itemOf(owner, "owned", false, false),
	}
	known := applier.memory(owner)
	known.content, known.withoutReference = deletablesOf(items), withoutReference(items)

	unclaimed, err := applier.ClaimImported(t.Context(), owner)
	if diff := cmp.Diff([]object.Key{items[0].Key}, unclaimed); diff != "" || !apierrors.IsForbidden(err) {
		t.Errorf("claimed with %v (-want +got):\n%s", err, diff)
	}
	deletion, err := applier.BeginDeletion(t.Context(), owner)
	if err != nil || deletion.Objects != 1 {
		t.Errorf("deletion %+v, %v; want the owned object alone", deletion, err)
	}
	kept, err := applier.ReleaseKept(t.Context(), owner)
	if diff := cmp.Diff([]object.Key{items[1].Key, items[2].Key}, kept); diff != "" || !apierrors.IsForbidden(err) {
		t.Errorf("released with %v (-want +got):\n%s", err, diff)
	}
}
