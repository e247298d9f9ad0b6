package inspect

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestServicesAreReachedThroughTheAPIServer(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"https://catalogs.ns.svc/catalogs/c/api/v1/all":                 "through https://api.example:6443/api/v1/namespaces/ns/services/https:catalogs:443/proxy/catalogs/c/api/v1/all",
		"http://catalogs.ns.svc.cluster.local:8080/catalogs/c?schema=x": "through https://api.example:6443/api/v1/namespaces/ns/services/http:catalogs:8080/proxy/catalogs/c?schema=x",
		"https://catalogs.example/catalogs/c/api/v1/all":                "direct https://catalogs.example/catalogs/c/api/v1/all",
		"https://127.0.0.1:8443/catalogs/c/api/v1/all":                  "direct https://127.0.0.1:8443/catalogs/c/api/v1/all",
		"https://svc/catalogs/c":                                        "direct https://svc/catalogs/c",
		"https://catalogs.ns.service.example/catalogs/c":                "direct https://catalogs.ns.service.example/catalogs/c",
	}
	for target, want := range tests {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			var got string
			via := func(way string) roundTripper {
				return func(request *http.Request) (*http.Response, error) {
					got = way + " " + request.URL.String()
					return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
				}
			}
			api, err := url.Parse("https://api.example:6443")
			if err != nil {
				t.Fatal(err)
			}
			transport := &serviceTransport{api: api, through: via("through"), direct: via("direct")}
			if _, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, target, nil)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// A catalog server chooses nothing that is asked for with the credentials for the API server.
func TestNoRedirectLeadsToAService(t *testing.T) {
	t.Parallel()
	var asked []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		http.Redirect(w, r, "https://other.kube-system.svc/secrets", http.StatusFound)
	}))
	t.Cleanup(api.Close)
	config := &rest.Config{Host: api.URL}
	through, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientThrough(config, through, nil)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://catalogs.ns.svc/catalogs/c/api/v1/all", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "the server of the catalog redirects to a Service, https://other.kube-system.svc/secrets") {
		t.Errorf("got %v", err)
	}
	if want := []string{"/api/v1/namespaces/ns/services/https:catalogs:443/proxy/catalogs/c/api/v1/all"}; cmp.Diff(want, asked) != "" {
		t.Errorf("asked for %q", asked)
	}
}
