package drift

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// openEach opens a list and a watch as a ServiceAccount, and gives the errors by what
// was opened.
func openEach(ctx context.Context, t *testing.T, host string, account types.NamespacedName) map[string]error {
	t.Helper()
	clients, err := impersonation.New(&rest.Config{Host: host, BearerToken: "of the controller"})
	if err != nil {
		t.Fatal(err)
	}
	errs := map[string]error{}
	for name, watch := range map[string]bool{"a list": false, "a watch": true} {
		key := watchKey{account: account, resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, namespace: "ns"}
		body, err := open(ctx, clients, key, schema.GroupKind{Kind: "ConfigMap"}, metav1.ListOptions{Watch: watch})
		if err == nil {
			_ = body.Close()
		}
		errs[name] = err
	}
	return errs
}

func TestNothingIsWatchedWithoutAnIdentity(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		t.Errorf("%s %s was sent as %q", req.Method, req.URL, req.Header.Values("Impersonate-User"))
	}))
	t.Cleanup(server.Close)
	for _, account := range []types.NamespacedName{{}, {Namespace: "ns"}, {Name: "installer"}} {
		for name, err := range openEach(t.Context(), t, server.URL, account) {
			if !errors.Is(err, impersonation.ErrNoIdentity) {
				t.Errorf("%s as %q: %v, want ErrNoIdentity", name, account, err)
			}
		}
	}
}

func TestWatchesFollowNoRedirects(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		t.Errorf("%s %s was led elsewhere, with the headers %v", req.Method, req.URL, req.Header)
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{
		http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
	} {
		for _, location := range []string{elsewhere.URL + "/api", "/led-astray"} {
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, req *http.Request) {
				requests.Add(1)
				if got := req.Header.Get("Impersonate-User"); got != "system:serviceaccount:ns:installer" || req.URL.Path == location {
					t.Errorf("%s %s as %q", req.Method, req.URL, got)
				}
				http.Redirect(writer, req, location, status)
			}))
			errs := openEach(t.Context(), t, server.URL, types.NamespacedName{Namespace: "ns", Name: "installer"})
			for name, err := range errs {
				if err == nil {
					t.Errorf("%s: a redirect is a success", name)
				}
			}
			if got := requests.Load(); got != int64(len(errs)) {
				t.Errorf("%d requests arrived, want %d", got, len(errs))
			}
			server.Close()
		}
	}
}
