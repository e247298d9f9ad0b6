package inspect

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// Of a catalog, a package is asked for and nothing else, and a server that refuses by itself is
// not taken for an API server that lacks a right.
func TestPackagesOfCatalogs(t *testing.T) {
	t.Parallel()
	const described = `{"schema":"olm.package","name":"a&b","defaultChannel":"c"}`
	var large atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/forbidden/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		switch r.URL.RequestURI() {
		case "/catalogs/c/api/v1/metas?name=a%26b&schema=olm.package":
			_, _ = io.WriteString(w, described)
		case "/catalogs/c/api/v1/metas?package=a%26b":
			_, _ = io.WriteString(w, `{"schema":"olm.channel","package":"a&b","name":"c","entries":[{"name":"d"}]}`)
			for large.Load() {
				if _, err := io.WriteString(w, described); err != nil {
					return
				}
			}
		case "/catalogs/c/api/v1/summary":
			_, _ = io.WriteString(w, `{"name":"a&b"}`)
		default:
			if !strings.Contains(r.URL.RawQuery, "none") {
				t.Errorf("asked for %s", r.URL.RequestURI())
			}
		}
	}))
	t.Cleanup(server.Close)
	cluster := &Cluster{CatalogReader: CatalogReader{http: server.Client()}}
	catalog := &ocv1.ClusterCatalog{}
	catalog.Name = "c"
	if _, err := cluster.Package(t.Context(), catalog, "p"); err == nil || !strings.Contains(err.Error(), "is not served") {
		t.Errorf("got %v", err)
	}
	catalog.Status.ResolvedSource = &ocv1.ResolvedCatalogSource{Image: &ocv1.ResolvedImageSource{Ref: "r@sha256:1"}}
	catalog.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeServing, Status: metav1.ConditionTrue}}
	catalog.Status.URLs = &ocv1.ClusterCatalogURLs{Base: server.URL + "/catalogs/c"}
	found, err := cluster.Package(t.Context(), catalog, "a&b")
	if err != nil || found.Resolved.Name != "a&b" || len(found.Resolved.Channels) != 1 || !strings.HasPrefix(string(found.Content), described) {
		t.Errorf("got %+v, %v", found, err)
	}
	if found, err := cluster.Package(t.Context(), catalog, "none"); found != nil || err != nil {
		t.Errorf("got %+v, %v", found, err)
	}
	if packages, err := cluster.Summary(t.Context(), catalog); err != nil || len(packages) != 1 || packages[0].Name != "a&b" {
		t.Errorf("got %+v, %v", packages, err)
	}
	large.Store(true)
	if _, err := cluster.Package(t.Context(), catalog, "a&b"); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
	catalog.Status.URLs.Base = server.URL + "/forbidden"
	if _, err := cluster.Package(t.Context(), catalog, "p"); err == nil || strings.Contains(err.Error(), "right") || !strings.Contains(err.Error(), "403") {
		t.Errorf("got %v", err)
	}
}
