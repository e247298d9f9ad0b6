package inspect

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
