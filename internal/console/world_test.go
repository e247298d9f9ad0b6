package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
	"github.com/clusterextensions/operator-controller/internal/packagecard"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/preview"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

const (
	testHost  = "127.0.0.1:8090"
	testToken = "secret"
	testOnce  = "once"
)

var testNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a cluster that a test makes up.
type world struct {
	mu         sync.Mutex
	extensions Seen[ocv1.ClusterExtension]
	catalogs   Seen[ocv1.ClusterCatalog]
	count      uint64
	next       chan struct{}

	explained Explanation
	preview   preview.Preview
	rights    []permission.Document
	situation Situation
	config    Configuration
	packages  []catalogsummary.Package
	newest    map[string]map[string]string
	pkg       *resolve.Package
	content   string
	absence   string

	err error // of everything that is asked
}

func newWorld() *world { return &world{next: make(chan struct{})} }

func (w *world) Extensions() Seen[ocv1.ClusterExtension] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.extensions
}

func (w *world) Absence() string { return w.absence }

func (w *world) Catalogs() Seen[ocv1.ClusterCatalog] { return w.catalogs }

func (w *world) News() (count uint64, next <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count, w.next
}

// change replaces the extensions.
func (w *world) change(items ...*ocv1.ClusterExtension) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.extensions.Items = items
	w.count++
	close(w.next)
	w.next = make(chan struct{})
}

func (w *world) Explain(context.Context, *ocv1.ClusterExtension) (Explanation, error) {
	return w.explained, w.err
}

func (w *world) Plan(context.Context, string) (preview.Preview, error) { return w.preview, w.err }

func (w *world) Rights(context.Context, *ocv1.ClusterExtension) ([]permission.Document, error) {
	return w.rights, w.err
}

func (w *world) Situation(context.Context, *ocv1.ClusterExtension) Situation { return w.situation }

func (w *world) Choose(context.Context, *ocv1.ClusterCatalog, *ocv1.ClusterExtension) (Explanation, error) {
	return w.explained, w.err
}

func (w *world) Configuration(context.Context, *ocv1.ClusterCatalog, *ocv1.ClusterExtension) (Configuration, error) {
	return w.config, w.err
}

func (w *world) Summary(context.Context, *ocv1.ClusterCatalog) ([]catalogsummary.Package, error) {
	return w.packages, w.err
}

func (w *world) Newest(_ *ocv1.ClusterCatalog, name string) map[string]string { return w.newest[name] }

func (w *world) Package(ctx context.Context, _ *ocv1.ClusterCatalog, name string) (*Offer, error) {
	if w.err != nil || w.pkg == nil {
		return nil, w.err
	}
	details, err := packagecard.ReadDetails(ctx, strings.NewReader(w.content), name)
	if details == nil {
		details = &packagecard.Details{Package: name}
	}
	return &Offer{Details: *details, Resolved: *w.pkg}, err
}

func (w *world) Icon(ctx context.Context, _ *ocv1.ClusterCatalog, name string) (*packagecard.Icon, error) {
	if w.err != nil {
		return nil, w.err
	}
	return packagecard.ReadIcon(ctx, strings.NewReader(w.content), name)
}

// handler is the console of the world.
func (w *world) handler(t *testing.T) http.Handler {
	t.Helper()
	handler, err := New(Config{
		Host: testHost, Token: testToken, Once: testOnce, Cluster: "https://cluster.test", Live: w, Asking: w, Offers: w,
		Now: func() time.Time { return testNow },
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// request is one that a browser makes that is at the page.
func request(t *testing.T, path string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+testHost+path, http.NoBody)
	return r
}

// admitted gives the cookie to a request.
func admitted(t *testing.T, handler http.Handler, r *http.Request) *http.Request {
	t.Helper()
	reply := httptest.NewRecorder()
	handler.ServeHTTP(reply, request(t, "/?token="+testToken))
	for _, cookie := range reply.Result().Cookies() {
		r.AddCookie(cookie)
	}
	return r
}

// get is a page that has to be there.
func (w *world) get(t *testing.T, path string) string {
	t.Helper()
	code, body, _ := w.ask(t, path)
	if code != http.StatusOK {
		t.Fatalf("%s: code %d\n%s", path, code, body)
	}
	return body
}

func (w *world) ask(t *testing.T, path string) (int, string, http.Header) {
	t.Helper()
	handler, reply := w.handler(t), httptest.NewRecorder()
	handler.ServeHTTP(reply, admitted(t, handler, request(t, path)))
	return reply.Code, reply.Body.String(), reply.Header()
}

// installed is an extension that is ready.
func installed(name, version string, changes ...func(*ocv1.ClusterExtension)) *ocv1.ClusterExtension {
	ext := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, ResourceVersion: "1"}}
	ext.Spec.Namespace, ext.Spec.ServiceAccount.Name = name+"-system", "installer"
	ext.Spec.Source.SourceType = ocv1.SourceTypeCatalog
	ext.Spec.Source.Catalog = &ocv1.CatalogFilter{PackageName: name}
	ext.Status.ObservedGeneration = 1
	ext.Status.Install = &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Name: name + ".v" + version, Version: version}}
	ext.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeReady, Status: metav1.ConditionTrue, Reason: ocv1.ReasonSucceeded}}
	for _, change := range changes {
		change(ext)
	}
	return ext
}

// served is a catalog that can be read.
func served(name string) *ocv1.ClusterCatalog {
	catalog := &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	catalog.Spec.Source.Image = &ocv1.ImageSource{Ref: "registry.test/" + name + ":latest"}
	catalog.Status.ObservedGeneration = 1
	catalog.Status.URLs = &ocv1.ClusterCatalogURLs{Base: "https://catalogs.test/catalogs/" + name}
	catalog.Status.ResolvedSource = &ocv1.ResolvedCatalogSource{Image: &ocv1.ResolvedImageSource{Ref: "registry.test/" + name + "@sha256:0123"}}
	catalog.Status.Conditions = []metav1.Condition{
		{Type: ocv1.TypeServing, Status: metav1.ConditionTrue, Reason: ocv1.ReasonAvailable, LastTransitionTime: metav1.NewTime(testNow.Add(-2 * time.Hour))},
		{Type: ocv1.TypeReady, Status: metav1.ConditionTrue, Reason: ocv1.ReasonSucceeded},
	}
	return catalog
}

var errForbidden = errors.New(`clustercatalogs.olm.operatorframework.io is forbidden: User "viewer" cannot list resource "clustercatalogs"`)

// many are so many extensions.
func many(n int) []*ocv1.ClusterExtension {
	var all []*ocv1.ClusterExtension
	for i := range n {
		all = append(all, installed(fmt.Sprintf("extension-%05d", i), "1.0.0"))
	}
	return all
}

func answer(handler http.Handler, r *http.Request) int {
	reply := httptest.NewRecorder()
	handler.ServeHTTP(reply, r)
	return reply.Code
}
