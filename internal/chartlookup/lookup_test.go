package chartlookup_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/chartlookup"
)

func kinds() meta.RESTMapper {
	// As what discovery makes: a kind without a version is found.
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}})
	mapper.Add(schema.FromAPIVersionAndKind("v1", "Secret"), meta.RESTScopeNamespace)
	mapper.Add(schema.FromAPIVersionAndKind("v1", "Namespace"), meta.RESTScopeRoot)
	mapper.Add(schema.FromAPIVersionAndKind("apps/v1", "Deployment"), meta.RESTScopeNamespace)
	return mapper
}

// answer is that of an API server to all requests, which it notes.
type answer struct {
	code int
	body string

	paths []string
}

func (a *answer) ServeHTTP(to http.ResponseWriter, request *http.Request) {
	a.paths = append(a.paths, request.Method+" "+request.URL.RequestURI())
	to.Header().Set("Content-Type", "application/json")
	to.WriteHeader(a.code)
	_, _ = io.WriteString(to, a.body)
}

func (a *answer) lookup(t *testing.T) bundle.ChartLookup {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return lookupAt(t, server.URL)
}

func lookupAt(t *testing.T, host string) bundle.ChartLookup {
	t.Helper()
	client, err := chartlookup.ClientFor(&rest.Config{Host: host}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	return chartlookup.New(client, kinds(), `ServiceAccount "installer"`)
}

func ask(apiVersion, kind, namespace, name string) bundle.LookupRequest {
	return bundle.LookupRequest{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
}

// TestPaths are those that Helm asks for.
func TestPaths(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		asked bundle.LookupRequest
		want  []string
		fails string
	}{
		"an object":                      {asked: ask("v1", "Secret", "ns", "db"), want: []string{"GET /api/v1/namespaces/ns/secrets/db"}},
		"of the core, spelled out":       {asked: ask("/v1", "Secret", "ns", "db"), want: []string{"GET /api/v1/namespaces/ns/secrets/db"}},
		"of a group":                     {asked: ask("apps/v1", "Deployment", "ns", "db"), want: []string{"GET /apis/apps/v1/namespaces/ns/deployments/db"}},
		"a list":                         {asked: ask("v1", "Secret", "ns", ""), want: []string{"GET /api/v1/namespaces/ns/secrets"}},
		"a list of all namespaces":       {asked: ask("v1", "Secret", "", ""), want: []string{"GET /api/v1/secrets"}},
		"without its namespace":          {asked: ask("v1", "Secret", "", "db"), want: []string{"GET /api/v1/secrets/db"}},
		"of the cluster":                 {asked: ask("v1", "Namespace", "", "ns"), want: []string{"GET /api/v1/namespaces/ns"}},
		"of the cluster, in a namespace": {asked: ask("v1", "Namespace", "other", "ns"), want: []string{"GET /api/v1/namespaces/ns"}},
		"a name that is a path":          {asked: ask("v1", "Secret", "ns", "../configmaps/a"), fails: "no object can have this name"},
		"a namespace that is one":        {asked: ask("v1", "Secret", "..", "db"), fails: "no object can have this name"},
		"a kind that is not served":      {asked: ask("v1", "Hunter2", "ns", "db"), fails: "the cluster does not serve such a kind"},
		"a group that is not":            {asked: ask("a/b/c", "Secret", "ns", "db"), fails: "the cluster does not serve such a kind"},
		"no version":                     {asked: ask("", "Secret", "ns", "db"), fails: "the cluster does not serve such a kind"},
		"another version":                {asked: ask("apps/v2", "Deployment", "ns", "db"), fails: "the cluster does not serve such a kind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &answer{code: http.StatusOK, body: `{"kind":"x"}`}
			got, err := server.lookup(t)(t.Context(), test.asked)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) || strings.Contains(err.Error(), "Hunter2") {
					t.Errorf("error = %v, want one with %q", err, test.fails)
				}
			} else if err != nil || string(got) != server.body {
				t.Errorf("got %s, error %v", got, err)
			}
			if diff := cmp.Diff(test.want, server.paths); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFailures have nothing in them of what was asked for, nor of what there is.
func TestFailures(t *testing.T) {
	t.Parallel()
	status := func(code, reason string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"secrets \"hunter2\" of ns is what it is","reason":"` + reason + `","code":` + code + `}`
	}
	for name, test := range map[string]struct {
		server answer
		asked  bundle.LookupRequest
		want   string // empty for no object
		denied bool
	}{
		"none": {server: answer{code: 404, body: status("404", "NotFound")}, asked: ask("v1", "Secret", "ns", "hunter2")},
		"no right to read it": {
			server: answer{code: 403, body: status("403", "Forbidden")}, asked: ask("v1", "Secret", "ns", "hunter2"), denied: true,
			want: `ServiceAccount "installer" may not get secrets: grant that right, or have lookup find nothing, without spec.config.inline.allowLookup`,
		},
		"no right to list them": {
			server: answer{code: 403, body: status("403", "Forbidden")}, asked: ask("apps/v1", "Deployment", "", ""), denied: true,
			want: `ServiceAccount "installer" may not list deployments.apps: grant that right, or have lookup find nothing, without spec.config.inline.allowLookup`,
		},
		"its server is away": {
			server: answer{code: 503, body: status("503", "ServiceUnavailable")}, asked: ask("v1", "Secret", "ns", "hunter2"),
			want: "the API server answers 503 ServiceUnavailable",
		},
		"too much": {
			server: answer{code: 200, body: strings.Repeat("x", 1<<20+1)}, asked: ask("v1", "Secret", "ns", ""),
			want: "there are more than 1048576 bytes of it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.server.lookup(t)(t.Context(), test.asked)
			switch {
			case test.want == "" && (err != nil || got != nil):
				t.Errorf("got %q, error %v; want nothing", got, err)
			case test.want != "" && (err == nil || err.Error() != test.want):
				t.Errorf("error = %v, want %s", err, test.want)
			}
			if status, isStatus := errors.AsType[*apierrors.StatusError](err); isStatus != test.denied || isStatus && !apierrors.IsForbidden(status) {
				t.Errorf("the cause is %v: who waits for rights is not woken by others", status)
			}
		})
	}
}

// TestEnds has nobody at the other end, and one that does not answer.
func TestEnds(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	if _, err := lookupAt(t, gone.URL)(t.Context(), ask("v1", "Secret", "ns", "hunter2")); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error = %v, want one without the name", err)
	}
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }))
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lookupAt(t, silent.URL)(ctx, ask("v1", "Secret", "ns", "hunter2")); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error = %v, want that of the context", err)
	}
}

// TestRefusalWithoutAnEnd: the server of an API may be a stranger's, and an error have no end either.
func TestRefusalWithoutAnEnd(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) {
		to.WriteHeader(http.StatusInternalServerError)
		chunk := make([]byte, 1<<16)
		for written.Load() < 256<<20 {
			n, err := to.Write(chunk)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	if _, err := lookupAt(t, server.URL)(t.Context(), ask("v1", "Secret", "ns", "hunter2")); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error = %v, want one without the name", err)
	}
	if got := written.Load(); got > 64<<20 { // the kernel takes some that nobody reads
		t.Errorf("%d bytes of the answer are read", got)
	}
}
