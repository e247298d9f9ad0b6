package judge_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/test/argocd"
	"github.com/clusterextensions/operator-controller/test/judge"
)

// object is one of generation 2 with a status that is about a generation.
func object(observed int64, conditions ...map[string]any) *unstructured.Unstructured {
	list := make([]any, 0, len(conditions))
	for _, condition := range conditions {
		condition["observedGeneration"] = observed
		list = append(list, condition)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"kind":     "ClusterExtension",
		"metadata": map[string]any{"name": "x", "generation": int64(2)},
		"status":   map[string]any{"observedGeneration": observed, "conditions": list},
	}}
}

func is(kind, state, reason string) map[string]any {
	return map[string]any{"type": kind, "status": state, "reason": reason, "message": "m"}
}

func spec(o *unstructured.Unstructured, field string, value any) *unstructured.Unstructured {
	o.Object["spec"] = map[string]any{field: value}
	return o
}

func catalog(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetKind("ClusterCatalog")
	return o
}

func deleted(o *unstructured.Unstructured) *unstructured.Unstructured {
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	return o
}

// TestStatus has each row of the table as it may be, and statuses that mislead one reader or
// another: a check that never complains would be none.
func TestStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		argo   string // what a wrong health check says; ours is asked if empty
		phase  judge.Phase
		want   []string
	}{
		"ready":       {object: object(2, is("Ready", "True", "Succeeded")), phase: judge.Ready},
		"at work":     {object: object(2, is("Reconciling", "True", "RollingOut"), is("Ready", "Unknown", "RollingOut")), phase: judge.Working},
		"stuck":       {object: object(2, is("Stalled", "True", "Retrying"), is("Ready", "False", "Retrying")), phase: judge.Stuck},
		"unavailable": {object: object(2, is("Ready", "False", "Unavailable")), phase: judge.Unavailable},
		"unknown":     {object: object(2, is("Ready", "Unknown", "AvailabilityUnknown")), phase: judge.Unavailable},
		"not looked at": {
			object: object(1, is("Ready", "True", "Succeeded")), phase: judge.Unseen,
		},
		"suspended": {
			object: spec(object(2, is("Ready", "True", "Suspended"), is("Suspended", "True", "UserRequested")), "suspend", true),
			phase:  judge.Suspended,
		},
		"withdrawn": {
			object: spec(catalog(object(2, is("Ready", "True", "UserSpecifiedUnavailable"), is("Serving", "False", "UserSpecifiedUnavailable"))), "availabilityMode", "Unavailable"),
			phase:  judge.Withdrawn,
		},
		"being deleted": {
			object: deleted(object(2, is("Ready", "False", "Terminating"), is("Reconciling", "True", "Terminating"))), phase: judge.Deleted,
		},

		"no generation": {
			object: func() *unstructured.Unstructured {
				o := object(2)
				delete(o.Object["status"].(map[string]any), "observedGeneration")
				return o
			}(),
			phase: judge.Silent,
			want: []string{
				"it is silent, kstatus says Current, and Argo CD Progressing: the table allows kstatus nothing, and Argo CD nothing",
				"kstatus says Current, and kubectl wait for Ready returns: false",
			},
		},
		"nothing": {
			object: func() *unstructured.Unstructured {
				o := object(2)
				delete(o.Object, "status")
				return o
			}(),
			phase: judge.Unseen,
			want: []string{
				"it is not looked at, kstatus says Current, and Argo CD Progressing: the table allows kstatus InProgress, and Argo CD Progressing",
				"kstatus says Current, and kubectl wait for Ready returns: false",
			},
		},
		"ready and at work": {
			object: object(2, is("Reconciling", "True", "RollingOut"), is("Ready", "True", "Succeeded")), phase: judge.Ready,
			want: []string{
				"it is ready, kstatus says InProgress, and Argo CD Healthy: the table allows kstatus Current, and Argo CD Healthy",
				"kstatus says InProgress, and kubectl wait for Ready returns: true",
				"True at once: Ready, Reconciling",
			},
		},
		"ready and stuck": {
			object: object(2, is("Ready", "True", "Succeeded"), is("Stalled", "True", "Blocked")), phase: judge.Ready,
			want: []string{
				"it is ready, kstatus says Failed, and Argo CD Degraded: the table allows kstatus Current, and Argo CD Healthy",
				"kstatus says Failed, and kubectl wait for Ready returns: true",
				"True at once: Ready, Stalled",
			},
		},
		"a person has to act, and work goes on": {
			object: object(2, is("Reconciling", "True", "Blocked"), is("Ready", "False", "Blocked")), phase: judge.Stuck,
			want: []string{"it is stuck, kstatus says InProgress, and Argo CD Progressing: the table allows kstatus Failed, and Argo CD Degraded"},
		},
		"a person has to act, and nobody is told": {
			object: object(2, is("Progressing", "False", "InvalidConfiguration"), is("Ready", "False", "Retrying")), phase: judge.Stuck,
			want: []string{"it is stuck, kstatus says InProgress, and Argo CD Degraded: the table allows kstatus Failed, and Argo CD Degraded"},
		},
		"work before what is stuck": {
			object: object(2, is("Reconciling", "True", "Retrying"), is("Stalled", "True", "Retrying"), is("Ready", "False", "Retrying")), phase: judge.Stuck,
			want: []string{
				"it is stuck, kstatus says InProgress, and Argo CD Degraded: the table allows kstatus Failed, and Argo CD Degraded",
				"True at once: Reconciling, Stalled",
			},
		},
		"nobody says what goes on": {
			object: object(2, is("Ready", "Unknown", "RollingOut")), phase: judge.Silent,
			want: []string{"it is silent, kstatus says InProgress, and Argo CD Progressing: the table allows kstatus nothing, and Argo CD nothing"},
		},
		"being deleted and ready": {
			object: deleted(object(2, is("Ready", "True", "Succeeded"))), phase: judge.Deleted,
			want: []string{
				"it is being deleted, kstatus says Terminating, and Argo CD Healthy: the table allows kstatus Terminating, and Argo CD Progressing or Degraded or Suspended",
				"kubectl wait for Ready returns: it is being deleted",
			},
		},
		"suspended, and its condition is missing": {
			object: spec(object(2, is("Ready", "True", "Suspended")), "suspend", true), phase: judge.Ready,
			want: []string{"it is ready, kstatus says Current, and Argo CD Suspended: the table allows kstatus Current, and Argo CD Healthy"},
		},
		"Argo CD waits while a person has to act": {
			object: object(2, is("Stalled", "True", "Blocked"), is("Ready", "False", "Blocked")), phase: judge.Stuck, argo: argocd.Progressing,
			want: []string{"it is stuck, kstatus says Failed, and Argo CD Progressing: the table allows kstatus Failed, and Argo CD Degraded"},
		},
		"Argo CD is content with what does not serve": {
			object: object(2, is("Ready", "False", "Unavailable")), phase: judge.Unavailable, argo: argocd.Healthy,
			want: []string{
				"it is unavailable, kstatus says InProgress, and Argo CD Healthy: the table allows kstatus InProgress, and Argo CD Progressing or Degraded",
				"nobody works on it, and Argo CD says Healthy",
			},
		},
		"Argo CD waits for what nobody works on": {
			object: object(2, is("Ready", "False", "Unavailable")), phase: judge.Unavailable, argo: argocd.Progressing,
			want: []string{"nobody works on it, and Argo CD says Progressing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reading := read(t, test.object)
			if test.argo != "" {
				reading.Argo.Status = test.argo
			}
			if got := reading.Phase(); got != test.phase {
				t.Errorf("it is %s, not %s", got, test.phase)
			}
			if diff := cmp.Diff(test.want, judge.Status(reading)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestCaptured has nothing to say of the statuses of real runs, and something of each of them
// in which Argo CD or the conditions are made to say what all is like elsewhere.
func TestCaptured(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../status/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	phases := map[judge.Phase]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("---\n")) {
			if len(bytes.TrimSpace(document)) == 0 {
				continue
			}
			heading, _, _ := strings.Cut(string(document), "\n")
			where := filepath.Base(file) + " " + heading
			data, err := yaml.YAMLToJSON(document)
			if err != nil {
				t.Fatal(err)
			}
			captured := &unstructured.Unstructured{}
			if err := captured.UnmarshalJSON(data); err != nil {
				t.Fatal(err)
			}
			reading := read(t, captured)
			phases[reading.Phase()]++
			if lies := judge.Status(reading); len(lies) > 0 {
				t.Errorf("%s: %s\n\t%s", where, strings.Join(lies, "; "), reading)
			}
			healthy := reading
			if healthy.Argo.Status = argocd.Healthy; reading.Argo.Status == argocd.Healthy {
				healthy.Argo.Status = argocd.Degraded
			}
			if lies := judge.Status(healthy); len(lies) == 0 {
				t.Errorf("%s: nothing is said while Argo CD says %s", where, healthy.Argo.Status)
			}
			if reading.Phase() == judge.Deleted || reading.Phase() == judge.Unseen || reading.Phase() == judge.Suspended {
				continue // who reads these does not go by what is turned round here
			}
			if lies := judge.Status(read(t, turned(captured))); len(lies) == 0 {
				t.Errorf("%s: nothing is said when what is ready is stuck, and the other way round\n\t%s", where, reading)
			}
		}
	}
	for _, phase := range []judge.Phase{
		judge.Deleted, judge.Unseen, judge.Suspended, judge.Withdrawn, judge.Ready, judge.Stuck, judge.Working, judge.Unavailable,
	} {
		if phases[phase] == 0 {
			t.Errorf("nothing that was captured is %s", phase)
		}
	}
}

// turned has Stalled where all was well, and Ready where it was not.
func turned(captured *unstructured.Unstructured) *unstructured.Unstructured {
	changed := captured.DeepCopy()
	list, _, _ := unstructured.NestedSlice(changed.Object, "status", "conditions")
	wasReady := slices.ContainsFunc(list, func(one any) bool {
		return one.(map[string]any)["type"] == "Ready" && one.(map[string]any)["status"] == "True"
	})
	for _, one := range list {
		if condition := one.(map[string]any); condition["type"] == "Ready" && !wasReady {
			condition["status"] = "True"
		}
	}
	switch {
	case wasReady:
		list = append(list, map[string]any{"type": "Stalled", "status": "True", "reason": "Retrying", "observedGeneration": changed.GetGeneration()})
	case !slices.ContainsFunc(list, func(one any) bool { return one.(map[string]any)["type"] == "Stalled" }):
		list = append(list, map[string]any{"type": "Reconciling", "status": "True", "reason": "RollingOut", "observedGeneration": changed.GetGeneration()})
	}
	_ = unstructured.SetNestedSlice(changed.Object, list, "status", "conditions") // the path is there
	return changed
}

func TestHope(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		want   string
	}{
		"retries":               {object: object(2, is("Reconciling", "True", "Retrying"), is("Ready", "False", "Retrying")), want: "generation 2, Retrying: m"},
		"does not serve":        {object: object(2, is("Ready", "False", "Unavailable")), want: "generation 2, Unavailable: m"},
		"rolls out":             {object: object(2, is("Reconciling", "True", "RollingOut"), is("Ready", "Unknown", "RollingOut"))},
		"stuck":                 {object: object(2, is("Stalled", "True", "Retrying"), is("Ready", "False", "Retrying"))},
		"serves as before":      {object: catalog(object(2, is("Ready", "True", "Retrying")))},
		"of another spec":       {object: object(1, is("Reconciling", "True", "Retrying"), is("Ready", "False", "Retrying"))},
		"suspended by a person": {object: spec(object(2, is("Suspended", "True", "UserRequested"), is("Ready", "False", "Unavailable")), "suspend", true)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (judge.Reading{Object: test.object}).Hope(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func read(t *testing.T, object *unstructured.Unstructured) judge.Reading {
	t.Helper()
	reading, err := judge.Read(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	return reading
}
