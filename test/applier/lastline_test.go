package applier_test

import (
	"context"
	"errors"
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
