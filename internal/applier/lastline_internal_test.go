package applier

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

var installer = object.Owner{Name: "last-lines", UID: "an-extension", Namespace: "tenant", ServiceAccount: "installer", Package: "p"}

type answer func(*http.Request) (status int, body string)

func (a answer) RoundTrip(req *http.Request) (*http.Response, error) {
	status, body := a(req)
	if err := req.Context().Err(); err != nil {
		return nil, fmt.Errorf("gave up: %w", err)
	}
	header := http.Header{"Content-Type": []string{"application/json"}}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

// answeredBy returns an applier on an API server that answers all requests with a. Each request has
// to act as the ServiceAccount of installer.
func answeredBy(t *testing.T, a answer) *Applier {
	t.Helper()
	checked := answer(func(req *http.Request) (int, string) {
		if got, want := req.Header.Get("Impersonate-User"), "system:serviceaccount:tenant:installer"; got != want {
			t.Errorf("%s is requested as %q, want %q", req.URL, got, want)
		}
		return a(req)
	})
	config := &rest.Config{Host: "http://cluster.test", QPS: -1}
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return checked })
	made, err := New(Config{
		REST:            config,
		Mapper:          meta.NewDefaultRESTMapper(nil),
		SystemNamespace: "olmv1-system",
		Changed:         func(string) {},
		LacksNamespace:  func(context.Context, string) bool { return false },
		Now:             time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestLastLine reads the logs of pods.
func TestLastLine(t *testing.T) {
	t.Parallel()
	const pods = `{"kind": "PodList", "apiVersion": "v1", "items": [
		{"metadata": {"name": "j-1", "creationTimestamp": "2026-01-01T00:00:00Z"}},
		{"metadata": {"name": "j-3", "creationTimestamp": "2026-01-01T00:02:00Z"}},
		{"metadata": {"name": "j-2", "creationTimestamp": "2026-01-01T00:01:00Z"}}]}`
	tests := map[string]struct {
		reason string
		kind   string
		pods   string
		log    string
		pod    string // whose log is asked for
		want   string
	}{
		"a Pod":                  {kind: "Pod", log: "first\nlast\n", pod: "j", want: "last"},
		"a Job":                  {reason: "it is the newest that has ended it", kind: "Job", pods: pods, log: "last", pod: "j-3", want: "last"},
		"a Job without pods":     {kind: "Job", pods: `{"kind": "PodList", "apiVersion": "v1", "items": []}`},
		"empty lines at the end": {kind: "Pod", log: "last\n \r\n\n", pod: "j", want: "last"},
		"nothing but them":       {kind: "Pod", log: "\n\n", pod: "j"},
		"a line without end":     {reason: "a part of it tells more than nothing", kind: "Pod", log: strings.Repeat("0123456789", 100_000), pod: "j", want: "0123456789"},
		"what looks like a secret": {
			reason: "those who read a status need not be those who read logs",
			kind:   "Pod", log: "panic: postgres://admin:hunter2@db.test/prod, password=hunter2\n", pod: "j", want: "panic: postgres://db.test/prod, password=…",
		},
		"what no terminal shows": {kind: "Pod", log: "a\x00\x1b[2J\u202eb\xff\n", pod: "j", want: "a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := ""
			a := answeredBy(t, func(req *http.Request) (int, string) {
				query := req.URL.Query()
				switch {
				case strings.HasSuffix(req.URL.Path, "/log"):
					asked = strings.TrimPrefix(strings.TrimSuffix(req.URL.Path, "/log"), "/api/v1/namespaces/"+installer.Namespace+"/pods/")
					if query.Get("tailLines") != "1" || query.Get("limitBytes") != "4096" {
						t.Errorf("the log is asked for by %s", req.URL.RawQuery)
					}
					return http.StatusOK, tc.log
				case query.Get("labelSelector") != "batch.kubernetes.io/controller-uid=the-uid":
					t.Errorf("pods are asked for by %s", req.URL.RawQuery)
				}
				return http.StatusOK, tc.pods
			})
			version := map[string]string{"Pod": "v1", "Job": "batch/v1"}[tc.kind]
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": tc.kind, "metadata": map[string]any{"name": "j", "namespace": installer.Namespace, "uid": "the-uid"}}}
			got := a.lastLine(t.Context(), installer, live)
			if asked != tc.pod || !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") || len(got) > 200 {
				t.Errorf("the log of %q says %q, want %q of %q: %s", asked, got, tc.want, tc.pod, tc.reason)
			}
			if strings.ContainsAny(got, "\x00\x1b\u202e\n") {
				t.Errorf("it says %q", got)
			}
		})
	}
}

// TestLogThatCannotBeHad: without it, less is told.
func TestLogThatCannotBeHad(t *testing.T) {
	t.Parallel()
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "j", "namespace": installer.Namespace, "uid": "u"}}}
	t.Run("no right to it", func(t *testing.T) {
		t.Parallel()
		a := answeredBy(t, func(*http.Request) (int, string) {
			return http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`
		})
		if got := a.lastLine(t.Context(), installer, live); got != "" {
			t.Errorf("it says %q", got)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		a := answeredBy(t, func(req *http.Request) (int, string) {
			<-req.Context().Done()
			return 0, ""
		})
		began := time.Now()
		if got := a.lastLine(t.Context(), installer, live); got != "" {
			t.Errorf("it says %q", got)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
