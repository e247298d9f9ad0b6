package impersonation

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// TestWarningsAreCollected: those of the requests of one context, each text once, and none
// of another context's.
func TestWarningsAreCollected(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Warning", `299 - "the same"`)
		w.Header().Add("Warning", fmt.Sprintf("299 - %q", "of "+r.URL.Path))
		w.Header().Add("Warning", `199 - "of a proxy"`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"}}`)
	}))
	t.Cleanup(server.Close)
	clients, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	client, err := As(clients, types.NamespacedName{Namespace: "ns", Name: "installer"}, dynamic.NewForConfigAndClient)
	if err != nil {
		t.Fatal(err)
	}
	get := func(ctx context.Context, name string) {
		t.Helper()
		configMaps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("ns")
		if _, err := configMaps.Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, warnings := CollectWarnings(t.Context())
	other, others := CollectWarnings(t.Context())
	get(ctx, "b")
	get(ctx, "a")
	get(ctx, "b")
	get(t.Context(), "c")
	const path = "of /api/v1/namespaces/ns/configmaps/"
	if diff := cmp.Diff([]string{path + "a", path + "b", "the same"}, warnings.Texts()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if got := others.Texts(); len(got) > 0 {
		t.Errorf("warnings of requests that were made with another context: %v", got)
	}
	get(other, "d")
	if got := others.Texts(); len(got) != 2 {
		t.Errorf("warnings %v, want two", got)
	}
}

// TestWarningsAreBounded: as many as the bound are kept whole, and one more is dropped; one
// that is too long ends with a whole character.
func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	warn := func(ctx context.Context, text string) {
		collector{}.HandleWarningHeaderWithContext(ctx, warningCode, "-", text)
	}
	ctx, warnings := CollectWarnings(t.Context())
	for i := range maxWarnings + 1 {
		warn(ctx, fmt.Sprintf("%03d", i))
	}
	texts := warnings.Texts()
	if len(texts) != maxWarnings || texts[maxWarnings-1] != "099" {
		t.Errorf("%d warnings are kept, the last is %q; want %d", len(texts), texts[len(texts)-1], maxWarnings)
	}

	longest := strings.Repeat("x", maxWarningBytes)
	const wide = "\u4f60" // three bytes
	for text, want := range map[string]string{
		longest:       longest,
		longest + "x": longest[:maxWarningBytes-len("…")] + "…",
		strings.Repeat(wide, maxWarningBytes/len(wide)+1): strings.Repeat(wide, (maxWarningBytes-len("…"))/len(wide)) + "…",
		"two\nlines": "two lines",
	} {
		ctx, warnings := CollectWarnings(t.Context())
		warn(ctx, text)
		if diff := cmp.Diff([]string{want}, warnings.Texts()); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
	}
}
