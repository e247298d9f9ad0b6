package usage

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// TestDeployments is F29: by one request, and bounded.
func TestDeployments(t *testing.T) {
	t.Parallel()
	const item = `{"metadata":{"name":"a","labels":{"owner":"x"}},"spec":{"template":{"metadata":{"labels":{"app":"a"}}}}}`
	for name, test := range map[string]struct {
		status int
		body   string
		want   []bundle.Workload
		fails  string
	}{
		"one":                          {body: `{"metadata":{},"items":[` + item + `]}`, want: []bundle.Workload{{Name: "a", Labels: map[string]string{"owner": "x"}, PodLabels: map[string]string{"app": "a"}}}},
		"none":                         {body: `{"metadata":{},"items":[]}`},
		"more than a page is left out": {body: `{"metadata":{"continue":"more"},"items":[` + item + `]}`, want: []bundle.Workload{{Name: "a", Labels: map[string]string{"owner": "x"}, PodLabels: map[string]string{"app": "a"}}}},
		"a large one":                  {body: `{"metadata":{},"items":[{"metadata":{"name":"` + strings.Repeat("a", 2*maxDeploymentBytes) + `"}}]}`, fails: "object is too large"},
		"many bytes": {
			body:  `{"metadata":{},"items":[` + item + strings.Repeat(`,{"metadata":{"name":"`+strings.Repeat("a", 1<<20)+`"}}`, maxDeploymentsBytes>>20) + `]}`,
			want:  []bundle.Workload{{Name: "a", Labels: map[string]string{"owner": "x"}, PodLabels: map[string]string{"app": "a"}}},
			fails: "objects have too many bytes",
		},
		"forbidden": {status: http.StatusForbidden, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, fails: "listing the deployments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				if want := "/apis/apps/v1/namespaces/ns/deployments?limit=500"; r.URL.String() != want {
					t.Errorf("asked for %s", r.URL)
				}
				w.Header().Set("Content-Type", "application/json")
				if test.status != 0 {
					w.WriteHeader(test.status)
				}
				_, _ = fmt.Fprint(w, test.body)
			}))
			t.Cleanup(server.Close)
			client, err := AppsClient(&rest.Config{Host: server.URL}, server.Client())
			if err != nil {
				t.Fatal(err)
			}
			got, err := Deployments(t.Context(), client, "ns")
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("error %v, want %q", err, test.fails)
			}
			if test.status == http.StatusForbidden && !apierrors.IsForbidden(err) {
				t.Errorf("%v is not recognised", err)
			}
			if test.fails != "" { // those before are returned
				got = got[:min(len(got), len(test.want))]
			}
			if diff := cmp.Diff(test.want, got); diff != "" || requests != 1 {
				t.Errorf("%d requests (-want +got)\n%s", requests, diff)
			}
		})
	}
}
