package applier

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// frontedBundle is a webhook with its Service and Deployment, as they are rendered.
const frontedBundle = `
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: op, namespace: ns}, spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}}}}
- {apiVersion: v1, kind: Service, metadata: {name: op-service, namespace: ns}, spec: {selector: {app: x}}}
- {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: [{name: w, clientConfig: {service: {name: op-service, namespace: ns}}}]}
`

// TestSharedPodsOfLargeDeployments is F29: a user who creates large Deployments in the namespace must not prevent installs and
// upgrades of the extensions in it.
func TestSharedPodsOfLargeDeployments(t *testing.T) {
	t.Parallel()
	const other = `{"metadata":{"name":"other"},"spec":{"template":{"metadata":{"labels":{"app":"x"}}}}}`
	large := func(bytes int) string { return `{"metadata":{"name":"` + strings.Repeat("a", bytes) + `"}}` }
	for name, items := range map[string]string{
		"F29: a large one":        other + "," + large(3<<20),
		"F29: large ones":         other + strings.Repeat(","+large(1<<20), 33),
		"F29: those after a page": other,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprint(w, `{"metadata":{"continue":"more"},"items":[`+items+`]}`)
			}))
			t.Cleanup(server.Close)
			clients, err := impersonation.New(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			var contents []map[string]any
			if err := yaml.Unmarshal([]byte(frontedBundle), &contents); err != nil {
				t.Fatal(err)
			}
			var objects []*unstructured.Unstructured
			for _, content := range contents {
				objects = append(objects, &unstructured.Unstructured{Object: content})
			}
			owner := object.Owner{Name: "x", Namespace: "ns", ServiceAccount: "installer"}
			shared, err := (&Applier{clients: clients}).SharedPods(t.Context(), owner, objects)
			if err != nil || len(shared) != 1 || shared[0].Other != "other" {
				t.Errorf("shared are %+v (%v)", shared, err)
			}
		})
	}
}
