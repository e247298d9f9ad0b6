package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// TestPullSecretsAreReadAsTheirServiceAccount: the controller never reads them
// with its own rights, not even where it does not know whom to be.
func TestPullSecretsAreReadAsTheirServiceAccount(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, req.Header.Get("Impersonate-User")+" "+req.URL.Path)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	accounts, err := newAccounts(&rest.Config{Host: server.URL}, filepath.Join(t.TempDir(), "auth.json"))
	if err != nil {
		t.Fatal(err)
	}
	if file, err := accounts.Write(t.Context(), types.NamespacedName{Namespace: "ns", Name: "sa"}); !apierrors.IsForbidden(err) || file != "" {
		t.Errorf("file = %q, err = %v, want the refusal", file, err)
	}
	if _, err := accounts.Write(t.Context(), types.NamespacedName{Namespace: "ns"}); err == nil {
		t.Error("credentials of nobody")
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"system:serviceaccount:ns:sa /api/v1/namespaces/ns/serviceaccounts/sa"}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
