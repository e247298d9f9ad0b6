package applier

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestChangedServiceAccount is F20: permissions are checked as the ServiceAccount of the current spec, also if the
// records were read for a spec with another one or with none.
func TestChangedServiceAccount(t *testing.T) {
	t.Parallel()
	var users []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/selfsubjectrulesreviews"):
			users = append(users, r.Header.Get("Impersonate-User"))
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"kind":"SelfSubjectRulesReview","apiVersion":"authorization.k8s.io/v1","status":{"incomplete":false,"nonResourceRules":[],"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]}}`))
		default:
			_, _ = w.Write([]byte(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]}`))
		}
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	applier, err := New(Config{
		REST: &rest.Config{Host: server.URL}, Mapper: mapper, SystemNamespace: "system",
		Changed: func(string) {}, LacksNamespace: func(context.Context, string) bool { return false }, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(applier.Close)
	for _, account := range []string{"", "first", "second"} {
		owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns", ServiceAccount: account}
		history, err := applier.history(t.Context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		if account == "" {
			continue
		}
		wanted := itemOf(owner, "one", false, false).Object
		if _, err := applier.checkPermissions(t.Context(), history, installation.Desired{Objects: []*unstructured.Unstructured{wanted}}, nil); err != nil {
			t.Errorf("%s: %v", account, err)
		}
	}
	if diff := cmp.Diff([]string{"system:serviceaccount:ns:first", "system:serviceaccount:ns:second"}, users); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
}
