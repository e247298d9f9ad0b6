package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/console"
	"github.com/clusterextensions/operator-controller/internal/inspect"
)

func newTestAsking(t *testing.T, changed func()) *asking {
	t.Helper()
	cluster, err := inspect.New(t.Context(), inspect.Config{REST: apiServer(t, nil), SystemNamespace: "system", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return newAsking(cluster, bundlesource.Reader{}, changed)
}

// However many registries are slow, what pulls nothing is answered.
func TestSlowPullsHoldUpNoExplanation(t *testing.T) {
	t.Parallel()
	a := newTestAsking(t, func() {})
	for range maxPulls {
		if _, _, err := a.in(t.Context(), a.pulling); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := a.in(short, a.pulling); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one more pull than there are places: %v", err)
	}
	_, end, err := a.in(t.Context(), a.explaining)
	if err != nil {
		t.Fatal(err)
	}
	end()
}

// still is a cluster on which nothing changes: a catalog that is served at a URL, and an
// extension of its package.
type still struct{ url string }

func (s still) Catalogs() console.Seen[ocv1.ClusterCatalog] {
	catalog := &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	catalog.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeServing, Status: metav1.ConditionTrue}}
	catalog.Status.URLs = &ocv1.ClusterCatalogURLs{Base: s.url}
	catalog.Status.ResolvedSource = &ocv1.ResolvedCatalogSource{Image: &ocv1.ResolvedImageSource{Ref: "r@sha256:1"}}
	return console.Seen[ocv1.ClusterCatalog]{Items: []*ocv1.ClusterCatalog{catalog}}
}

func (still) Extensions() console.Seen[ocv1.ClusterExtension] {
	ext := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	ext.Spec.Source.Catalog = &ocv1.CatalogFilter{PackageName: "a"}
	return console.Seen[ocv1.ClusterExtension]{Items: []*ocv1.ClusterExtension{ext}}
}

func (still) Absence() string { return "" }

func (still) News() (count uint64, next <-chan struct{}) { return 0, nil }

// A catalog that could not be read is asked again, though nothing has changed meanwhile.
func TestFailedReadsAreTriedAgain(t *testing.T) {
	t.Parallel()
	const content = `{"schema": "olm.package", "name": "a", "defaultChannel": "s"}
{"schema": "olm.channel", "package": "a", "name": "s", "entries": [{"name": "a.v1.0.0"}]}
{"schema": "olm.bundle", "package": "a", "name": "a.v1.0.0", "image": "i@sha256:1",
 "properties": [{"type": "olm.package", "value": {"packageName": "a", "version": "1.0.0"}}]}`
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 4 {
			http.Error(w, "not now", http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprint(w, content)
	}))
	t.Cleanup(server.Close)

	known := make(chan struct{}, 100)
	a := newTestAsking(t, func() { known <- struct{}{} })
	a.retryInterval = 10 * time.Millisecond
	seen := still{url: server.URL}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		a.keepNewest(ctx, seen)
	}()
	catalog := seen.Catalogs().Items[0]
	for a.Newest(catalog, "a")["s"] != "1.0.0" {
		select {
		case <-known:
		case <-time.After(time.Minute):
			t.Fatalf("nothing is known after %d requests", asked.Load())
		}
	}
	cancel()
	<-ended
}

// A server that sends all it has, or without end, in the place of the object with the icon, is read
// no further than such an object may be.
func TestIconsAreReadWithinBounds(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := fmt.Appendf(nil, `{"schema": "olm.bundle", "package": "other", "name": %q}`+"\n", strings.Repeat("x", 64<<10))
		for r.Context().Err() == nil && sent.Load() < 1<<30 {
			n, err := w.Write(line)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	a := newTestAsking(t, func() {})
	icon, err := a.Icon(t.Context(), still{url: server.URL}.Catalogs().Items[0], "a")
	if icon != nil {
		t.Errorf("got an icon, and %v", err)
	}
	server.CloseClientConnections()
	const buffers = 16 << 20 // of the server, the kernel and the client
	if got := sent.Load(); got > maxPackageObject+buffers {
		t.Errorf("%d bytes were sent", got)
	}
}
