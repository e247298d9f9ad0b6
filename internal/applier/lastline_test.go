package applier_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// TestLastLine reads the logs of pods, which no kubelet has here.
func TestLastLine(t *testing.T) { //nolint:tparallel // its subtests share an applier
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
	f := newFixture(t, "last-lines")
	for name, tc := range tests { //nolint:paralleltest // all share an applier
		t.Run(name, func(t *testing.T) {
			asked := ""
			f.requests.answer = func(req *http.Request) string {
				query := req.URL.Query()
				switch {
				case strings.HasSuffix(req.URL.Path, "/log"):
					asked = strings.TrimPrefix(strings.TrimSuffix(req.URL.Path, "/log"), "/api/v1/namespaces/"+f.owner.Namespace+"/pods/")
					if query.Get("tailLines") != "1" || query.Get("limitBytes") != "4096" {
						t.Errorf("the log is asked for by %s", req.URL.RawQuery)
					}
					return tc.log
				case query.Get("labelSelector") != "batch.kubernetes.io/controller-uid=the-uid":
					t.Errorf("pods are asked for by %s", req.URL.RawQuery)
				}
				return tc.pods
			}
			version := map[string]string{"Pod": "v1", "Job": "batch/v1"}[tc.kind]
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": tc.kind, "metadata": map[string]any{"name": "j", "namespace": f.owner.Namespace, "uid": "the-uid"}}}
			got := f.applier.LastLine(t.Context(), f.owner, live)
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
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "j", "uid": "u"}}}
	t.Run("no right to it", func(t *testing.T) {
		t.Parallel()
		f := newPowerlessFixture(t, "no-logs")
		live := live.DeepCopy()
		live.SetNamespace(f.owner.Namespace)
		if got := f.applier.LastLine(t.Context(), f.owner, live); got != "" {
			t.Errorf("it says %q", got)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		f := newPowerlessFixture(t, "slow-logs")
		f.requests.setStop(func(req *http.Request) error {
			<-req.Context().Done()
			return fmt.Errorf("gave up: %w", req.Context().Err())
		})
		began := time.Now()
		if got := f.applier.LastLine(t.Context(), f.owner, live); got != "" {
			t.Errorf("it says %q", got)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// TestWhatAHookSaysIsBounded: its object says much, and so does its log.
func TestWhatAHookSaysIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "long-words")
	desired := f.withHooks(t, "1.0.0", f.hookPod("migrate", "pre-install", ""))
	f.requests.answer = func(req *http.Request) string {
		if strings.HasSuffix(req.URL.Path, "/log") {
			return strings.Repeat("log ", 1<<16)
		}
		return ""
	}
	_ = f.tries(t, desired)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod := f.pod(t, "migrate")
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = "Failed", "Evicted", strings.Repeat("why ", 1<<12)
		return admin.Status().Update(t.Context(), pod)
	})
	if err != nil {
		t.Fatal(err)
	}
	failed := hasFailed(t, f.tries(t, desired), "pre-install", "migrate")
	if len(failed.Why) > 600 || !strings.HasPrefix(failed.Why, "Evicted: why") || !strings.Contains(failed.Why, "its log ends with: log") {
		t.Errorf("%d bytes are told: %s", len(failed.Why), failed.Why)
	}
}

// TestPodsOfAHookAreBounded: the last line of a Job is looked for among its pods. What is read of these is bounded,
// as it is of the pods of a workload: the author of a chart says how large each is, and how many there are.
func TestPodsOfAHookAreBounded(t *testing.T) { //nolint:paralleltest // it measures memory
	f := newFixture(t, "hook-pods")
	work := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "migrate"},
		"spec": map[string]any{"backoffLimit": int64(0), "template": map[string]any{"spec": idlePod("x").Object["spec"]}},
	}}
	desired := f.wantingHooks("1.0.0", []hook.Hook{hookAt(t, work, "pre-install")}, configMap("a", "1"))
	if _, err := f.applier.Apply(t.Context(), f.owner, desired); !isUnderway(err) {
		t.Fatal(err)
	}
	found := &unstructured.Unstructured{}
	found.SetAPIVersion("batch/v1")
	found.SetKind("Job")
	found.SetNamespace(f.owner.Namespace)
	found.SetName("migrate")
	now := time.Now().UTC().Format(time.RFC3339)
	waitFor(t, func(ctx context.Context) (bool, error) {
		patch := `{"status":{"startTime":"` + now + `","failed":1,"active":0,"ready":0,"terminating":0,"conditions":[` +
			`{"type":"FailureTarget","status":"True","reason":"BackoffLimitExceeded","lastTransitionTime":"` + now + `"},` +
			`{"type":"Failed","status":"True","reason":"BackoffLimitExceeded","lastTransitionTime":"` + now + `"}]}}`
		err := admin.Status().Patch(ctx, found, client.RawPatch(types.MergePatchType, []byte(patch)))
		if err != nil {
			t.Log(err)
		}
		return err == nil, nil
	})
	one := `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","args":["` + strings.Repeat("x", 1<<20) + `"]}]}}`
	many := `{"kind":"PodList","apiVersion":"v1","items":[` + strings.Repeat(one+",", 49) + one + `]}`
	f.requests.answer = func(req *http.Request) string {
		if strings.HasSuffix(req.URL.Path, "/pods") && req.Method == http.MethodGet {
			return many
		}
		return ""
	}
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	_, err := f.applier.Apply(t.Context(), f.owner, desired)
	goruntime.ReadMemStats(&after)
	if _, hasFailed := errors.AsType[*installation.HookFailedError](err); !hasFailed {
		t.Fatal(err)
	}
	if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 20 {
		t.Errorf("to look for one line %d MiB were taken", allocated)
	}
}
