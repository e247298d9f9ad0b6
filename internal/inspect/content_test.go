package inspect

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// All that a catalog has about a package is asked for, and a refusal names the right.
func TestContentOfCatalogs(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/forbidden/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, r.URL.RequestURI()+"\n")
	}))
	t.Cleanup(server.Close)
	cluster := &Cluster{content: content{http: server.Client()}}
	catalog := &ocv1.ClusterCatalog{}
	if _, err := cluster.Content(t.Context(), catalog); err == nil || !strings.Contains(err.Error(), "is not served") {
		t.Errorf("got %v", err)
	}
	catalog.Status.ResolvedSource = &ocv1.ResolvedCatalogSource{Image: &ocv1.ResolvedImageSource{Ref: "r@sha256:1"}}
	catalog.Status.URLs = &ocv1.ClusterCatalogURLs{Base: server.URL + "/catalogs/c"}
	for want, open := range map[string]func() (io.ReadCloser, error){
		"/catalogs/c/api/v1/all\n": func() (io.ReadCloser, error) { return cluster.Content(t.Context(), catalog) },
		"/catalogs/c/api/v1/metas?name=a%26b&schema=olm.package\n/catalogs/c/api/v1/metas?package=a%26b\n": func() (io.ReadCloser, error) {
			return cluster.PackageContent(t.Context(), catalog, "a&b")
		},
	} {
		found, err := open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(found)
		found.Close()
		if string(data) != want || err != nil {
			t.Errorf("got %q, %v, want %q", data, err, want)
		}
	}
	catalog.Status.URLs.Base = server.URL + "/forbidden"
	if _, err := cluster.PackageContent(t.Context(), catalog, "p"); err == nil || !strings.Contains(err.Error(), "services/proxy") {
		t.Errorf("got %v", err)
	}
}

// An object is as kstatus says, or not there, or not known.
func TestHowObjectsAre(t *testing.T) {
	t.Parallel()
	deployment := func(status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "x"},
			"spec": map[string]any{"replicas": int64(1)}, "status": status,
		}}
	}
	group := schema.GroupResource{Resource: "secrets"}
	for want, test := range map[string]struct {
		live *unstructured.Unstructured
		err  error
	}{
		"Current":    {&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}}}, nil},
		"InProgress": {deployment(map[string]any{"replicas": int64(1)}), nil},
		"NotFound":   {nil, apierrors.NewNotFound(group, "x")},
		"Unknown":    {nil, apierrors.NewForbidden(group, "x", nil)},
	} {
		got := liveObjectOf(object.Key{Name: "x"}, test.live, test.err)
		if got.Status != want || (got.Message == "") != (want == "Current" || want == "NotFound") {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
}
