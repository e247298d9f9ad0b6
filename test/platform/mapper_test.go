package platform_test

import (
	"net/http"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/platform"
)

// TestTheMapperOnAnAPIServer takes a kind away, and brings it back as another.
func TestTheMapperOnAnAPIServer(t *testing.T) {
	t.Parallel()
	transport, err := rest.TransportFor(controller)
	if err != nil {
		t.Fatal(err)
	}
	requests := &counter{next: transport, read: make(chan struct{}, 1024)}
	p := newPlatform(t, platform.Config{
		REST: controller, HTTPClient: &http.Client{Transport: requests}, Changed: func() {}, Regranted: func() {},
	})
	mapper := p.Mapper()
	kind := schema.GroupKind{Group: "mapped.test", Kind: "Widget"}
	eventually := func(what string, holds func(*meta.RESTMapping, error) bool) {
		t.Helper()
		for deadline := time.Now().Add(limit); !holds(mapper.RESTMapping(kind, "v1")); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				mapping, err := mapper.RESTMapping(kind, "v1")
				t.Fatalf("%s: %v, %v", what, mapping, err)
			}
		}
	}
	isScoped := func(name meta.RESTScopeName) func(*meta.RESTMapping, error) bool {
		return func(mapping *meta.RESTMapping, err error) bool { return err == nil && mapping.Scope.Name() == name }
	}
	crd := definition("mapped.test")
	if err := admin.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually("a new kind", isScoped(meta.RESTScopeNameRoot))
	if err := admin.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually("a kind that is gone", func(_ *meta.RESTMapping, err error) bool { return meta.IsNoMatchError(err) })
	again := definition("mapped.test")
	again.Spec.Scope = apiextensionsv1.NamespaceScoped
	if err := admin.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	eventually("a kind that is back", isScoped(meta.RESTScopeNameNamespace))
	if err := admin.Delete(t.Context(), again); err != nil {
		t.Fatal(err)
	}
}
