package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/leadership"
)

// apiServer has one extension, and tells of another one once it is told to. Catalogs may not
// be read.
func apiServer(t *testing.T, second <-chan struct{}) *rest.Config {
	t.Helper()
	extension := func(name string) map[string]any {
		return map[string]any{
			"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
			"metadata": map[string]any{"name": name, "resourceVersion": "2", "managedFields": []any{map[string]any{"manager": "m"}}},
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !strings.HasSuffix(r.URL.Path, "/clusterextensions"):
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "you may not"}`))
		case r.URL.Query().Get("watch") == "":
			_ = json.NewEncoder(w).Encode(map[string]any{
				"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtensionList",
				"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{extension("b")},
			})
		default:
			_ = http.NewResponseController(w).Flush()
			select {
			case <-second:
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": extension("a")})
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
			}
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1, Timeout: time.Minute}
}

// What may be listed is there from the start and follows the cluster; what may not says why.
func TestTheClusterIsFollowed(t *testing.T) {
	t.Parallel()
	second := make(chan struct{})
	l, err := follow(t.Context(), apiServer(t, second))
	if err != nil {
		t.Fatal(err)
	}
	names := func() string {
		var all []string
		for _, ext := range l.Extensions().Items {
			if len(ext.ManagedFields) > 0 {
				t.Errorf("the managers of %s are kept", ext.Name)
			}
			all = append(all, ext.Name)
		}
		return fmt.Sprint(all)
	}
	if got := names(); got != "[b]" || l.Extensions().Err != nil {
		t.Errorf("got %s, %v", got, l.Extensions().Err)
	}
	if catalogs := l.Catalogs(); len(catalogs.Items) > 0 || catalogs.Err == nil || !strings.Contains(catalogs.Err.Error(), "you may not") {
		t.Errorf("got %v, %v", catalogs.Items, catalogs.Err)
	}
	close(second)
	deadline := time.After(30 * time.Second)
	for names() != "[a b]" {
		_, next := l.News()
		if names() == "[a b]" {
			break
		}
		select {
		case <-next:
		case <-deadline:
			t.Fatalf("got %s", names())
		}
	}
}

// TestTheLeaseIsFollowed (F9) has a controller that ends, and pages that are told.
func TestTheLeaseIsFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		holder, renewed := "", metav1.NowMicro()
		api := fake.NewClientset(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olmv1-system", Name: leadership.Lock},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed},
		})
		l := &live{next: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		_, next := l.News()
		go l.followLeader(ctx, leadership.Watcher{API: api.CoordinationV1(), Namespace: "olmv1-system", Now: time.Now})
		<-next
		if !strings.Contains(l.Absence(), "no controller is running") {
			t.Errorf("got %q", l.Absence())
		}
		if err := api.CoordinationV1().Leases("olmv1-system").Delete(ctx, leadership.Lock, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		_, next = l.News()
		<-next
		if l.Absence() != "" {
			t.Errorf("got %q", l.Absence())
		}
		cancel()
	})
}
