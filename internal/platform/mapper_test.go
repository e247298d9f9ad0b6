package platform_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/platform"
)

// drop takes a group away.
func (s *server) drop(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.groups, group)
	s.answers["/apis/"+group+"/v1"] = func(context.Context) (any, error) { return nil, notFound() }
}

func thing(group string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: "Thing"} }

func TestTheMapperForgets(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"a definition": pathDefinitions, "an API service": pathAPIServices} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, newServer(), func(t *testing.T, w *world) {
				mapper := w.Mapper()
				if _, err := mapper.RESTMapping(thing("first.test"), "v1"); err != nil {
					t.Fatal(err)
				}
				pass(settled)
				w.drop("first.test")
				w.ring(path)
				pass(settled)
				if _, err := mapper.RESTMapping(thing("first.test"), "v1"); !meta.IsNoMatchError(err) {
					t.Errorf("err = %v for a kind that is gone", err)
				}
				w.serve("first.test", apidiscoveryv2.DiscoveryFreshnessCurrent)
				w.ring(path)
				pass(settled)
				if _, err := mapper.RESTMapping(thing("first.test"), "v1"); err != nil {
					t.Errorf("err = %v for a kind that is back", err)
				}
			})
		})
	}
}

// TestTheMapperForgetsLate has discovery follow a definition with a delay.
func TestTheMapperForgetsLate(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		mapper := w.Mapper()
		_, _ = mapper.RESTMapping(thing("first.test"), "v1")
		pass(settled)
		w.ring(pathDefinitions)
		pass(2 * time.Second)
		if _, err := mapper.RESTMapping(thing("first.test"), "v1"); err != nil {
			t.Fatal(err)
		}
		w.drop("first.test")
		pass(settled)
		if _, err := mapper.RESTMapping(thing("first.test"), "v1"); !meta.IsNoMatchError(err) {
			t.Errorf("err = %v for a kind that is gone", err)
		}
	})
}

func TestTheMapperAsksNothingAnewInAnUnchangedWorld(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		mapper := w.Mapper()
		pass(settled)
		if len(w.watchers) > 0 {
			t.Error("there are watches before anybody has asked")
		}
		_, _ = mapper.RESTMapping(thing("first.test"), "v1")
		pass(settled)
		_, _ = mapper.RESTMapping(thing("first.test"), "v1")
		w.take()
		for range 1000 {
			if _, err := mapper.RESTMapping(thing("first.test"), "v1"); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
		}
		w.ring(pathDefinitions)
		pass(settled)
		if diff := cmp.Diff([]string(nil), w.take()); diff != "" {
			t.Errorf("requests that nobody asked for (-want +got):\n%s", diff)
		}
	})
}

func TestAPIsAreReadThoughAMapperCameFirst(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		_, _ = w.Mapper().RESTMapping(thing("first.test"), "v1")
		pass(settled)
		_, _ = w.APIs()
		pass(time.Second)
		if !w.serves(t, "first.test") {
			t.Error("it does not know what is served after it was asked")
		}
		w.serve("second.test", current)
		w.ring(pathDefinitions)
		pass(settled)
		if !w.serves(t, "second.test") {
			t.Error("the new group is not served")
		}
	})
}

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
