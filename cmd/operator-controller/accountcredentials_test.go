package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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
	cached := fake.NewClientBuilder().WithObjects(
		&corev1.ServiceAccount{
			ObjectMeta:       metav1.ObjectMeta{Namespace: "ns", Name: "sa"},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
		},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "without"}},
	).Build()
	accounts, err := newAccounts(&rest.Config{Host: server.URL}, cached, filepath.Join(t.TempDir(), "auth.json"))
	if err != nil {
		t.Fatal(err)
	}
	if file, err := accounts.Write(t.Context(), types.NamespacedName{Namespace: "ns", Name: "sa"}); !apierrors.IsForbidden(err) || file != "" {
		t.Errorf("file = %q, err = %v, want the refusal", file, err)
	}
	if file, err := accounts.Write(t.Context(), types.NamespacedName{Namespace: "ns", Name: "without"}); err != nil || file != "" {
		t.Errorf("file = %q, err = %v, want none", file, err)
	}
	if _, err := accounts.Write(t.Context(), types.NamespacedName{Namespace: "ns"}); err == nil {
		t.Error("credentials of nobody")
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"system:serviceaccount:ns:sa /api/v1/namespaces/ns/secrets/registry"}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
