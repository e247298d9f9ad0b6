package main

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

// served is a catalog whose status names content by digest.
func served(name, ref string) *ocv1.ClusterCatalog {
	unpacked := metav1.Unix(1, 0)
	catalog := &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: name}}
	catalog.Status.LastUnpacked = &unpacked
	catalog.Status.ResolvedSource = &ocv1.ResolvedCatalogSource{
		Type: ocv1.SourceTypeImage, Image: &ocv1.ResolvedImageSource{Ref: ref},
	}
	return catalog
}

// A replica is ready when it has what status says is served, or when it has waited for long.
// It stays so.
func TestReadinessWaitsForContent(t *testing.T) {
	t.Parallel()
	const ref = "registry.test/catalog@sha256:0000000000000000000000000000000000000000000000000000000000000001"
	scheme := runtime.NewScheme()
	if err := ocv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(served("c", ref)).Build()
	for name, arrives := range map[string]bool{"content that comes": true, "content that nobody has": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := catalogserver.OpenStore(catalogserver.StoreConfig{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			now := time.Unix(0, 0)
			r := &readiness{store: store, now: func() time.Time { return now }}
			check := func() error {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				return errors.Join(r.hasRead(request), r.hasContent(request))
			}
			if check() == nil {
				t.Error("ready before the cluster was read")
			}
			now = now.Add(contentTimeout)
			if check() == nil {
				t.Error("ready because the cluster could not be read for long")
			}
			r.reached(api)
			now = now.Add(contentTimeout - time.Second)
			if check() == nil {
				t.Error("ready without content")
			}
			if arrives {
				files := fstest.MapFS{"p.json": {Data: []byte(`{"schema":"olm.package","name":"p"}`)}}
				if err := store.Put(t.Context(), "c", catalogserver.Origin{Canonical: ref}, files); err != nil {
					t.Fatal(err)
				}
			} else {
				now = now.Add(time.Second)
			}
			if err := check(); err != nil {
				t.Errorf("not ready: %v", err)
			}
			r.reached(unreadable{})
			if err := check(); err != nil {
				t.Errorf("no longer ready: %v", err)
			}
		})
	}
}

// unreadable is a cache that knows nothing.
type unreadable struct{ client.Reader }

func (unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("unreadable")
}

// A process that ends says so at once.
func TestReadinessEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	check := newProbes(ctx).ready.Checks["stopping"]
	if err := check(nil); err != nil {
		t.Error(err)
	}
	cancel()
	if err := check(nil); !errors.Is(err, errStopping) {
		t.Errorf("got error %v", err)
	}
}
