package status_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/test/argocd"
	"github.com/clusterextensions/operator-controller/test/judge"
	"github.com/clusterextensions/operator-controller/test/status"
)

// written is a capture of generation 2 with a status that is about a generation.
func written(observed int64, row map[string]string, conditions ...map[string]any) status.Capture {
	list := make([]any, 0, len(conditions))
	for _, condition := range conditions {
		condition["observedGeneration"] = observed
		list = append(list, condition)
	}
	return seen(row, &unstructured.Unstructured{Object: map[string]any{
		"kind":     "ClusterExtension",
		"metadata": map[string]any{"name": "x", "generation": int64(2)},
		"status":   map[string]any{"observedGeneration": observed, "conditions": list},
	}})
}

// seen is a capture that Argo CD has looked at, too.
func seen(row map[string]string, object *unstructured.Unstructured) status.Capture {
	reading, err := judge.Read(context.Background(), object)
	if err != nil {
		panic(err)
	}
	return status.Capture{Reading: reading, Row: row}
}

func is(kind, state, reason string) map[string]any {
	return map[string]any{"type": kind, "status": state, "reason": reason}
}

func deleted(capture status.Capture) status.Capture {
	now := metav1.Now()
	capture.Object.SetDeletionTimestamp(&now)
	return capture
}

func TestJudge(t *testing.T) {
	t.Parallel()
	var (
		green    = map[string]string{"READY": "True"}
		notGreen = map[string]string{"READY": "Unknown"}
		noColumn = map[string]string{"INSTALLED": "True", "PROGRESSING": "True"}
		missing  = status.Facts{Content: []string{"Service x is missing"}}
		down     = status.Facts{Workloads: []string{"Deployment x is not available"}}
		rolling  = status.Facts{Rollouts: []string{"Deployment x has 1 pods of another revision"}}
	)
	for name, test := range map[string]struct {
		reason  string
		capture status.Capture
		facts   status.Facts
		want    []string
	}{
		"all is well": {
			reason: "green is true",
			capture: written(2, green, is("Ready", "True", "Succeeded"), is("Progressing", "True", "Succeeded"),
				is("Available", "True", "Available")),
		},
		"green while content is missing": {
			reason:  "each reader is told a lie",
			capture: written(2, green, is("Ready", "True", "Succeeded"), is("Progressing", "True", "Succeeded")),
			facts:   missing,
			want: []string{
				"kstatus says Current: Service x is missing",
				"kubectl wait for Ready returns: Service x is missing",
				"kubectl get prints READY True: Service x is missing",
				"Progressing is Succeeded: Service x is missing",
			},
		},
		"green while a workload is down": {
			reason: "Progressing is not about workloads",
			capture: written(2, green, is("Ready", "True", "Succeeded"), is("Progressing", "True", "Succeeded"),
				is("Available", "True", "Available")),
			facts: down,
			want: []string{
				"kstatus says Current: Deployment x is not available",
				"kubectl wait for Ready returns: Deployment x is not available",
				"kubectl get prints READY True: Deployment x is not available",
				"Available is True: Deployment x is not available",
			},
		},
		"available while it rolls out": {
			reason:  "the pods of before serve",
			capture: written(2, notGreen, is("Reconciling", "True", "RollingOut"), is("Ready", "Unknown", "RollingOut"), is("Available", "True", "Available")),
			facts:   rolling,
		},
		"green while it rolls out": {
			reason:  "Ready is about what is installed, not about what was there before",
			capture: written(2, green, is("Ready", "True", "Succeeded")),
			facts:   rolling,
			want: []string{
				"kstatus says Current: Deployment x has 1 pods of another revision",
				"kubectl wait for Ready returns: Deployment x has 1 pods of another revision",
				"kubectl get prints READY True: Deployment x has 1 pods of another revision",
			},
		},
		"a status of the generation before": {
			reason:  "nobody who looks at generations is misled, and the controller has written nothing since",
			capture: written(1, green, is("Ready", "True", "Succeeded"), is("Progressing", "True", "Succeeded")),
			facts:   missing,
		},
		"nothing yet": {
			reason:  "what has no conditions is current for kstatus",
			capture: seen(notGreen, &unstructured.Unstructured{Object: map[string]any{"kind": "ClusterExtension", "metadata": map[string]any{}}}),
			facts:   missing,
			want: []string{
				"it is not looked at, kstatus says Current, and Argo CD Progressing: the table allows kstatus InProgress, and Argo CD Progressing",
				"kstatus says Current, and kubectl wait for Ready returns: false",
				"kstatus says Current: Service x is missing",
			},
		},
		"no column for Ready": {
			reason:  "people read the others, then",
			capture: written(2, noColumn, is("Ready", "False", "Unavailable")),
			facts:   down,
			want: []string{
				"kubectl get prints INSTALLED True, PROGRESSING True: Deployment x is not available",
				"kubectl get has no column READY",
			},
		},
		"ready and at work": {
			reason:  "these exclude each other",
			capture: written(2, green, is("Reconciling", "True", "RollingOut"), is("Ready", "True", "Succeeded")),
			want: []string{
				"it is ready, kstatus says InProgress, and Argo CD Healthy: the table allows kstatus Current, and Argo CD Healthy",
				"kstatus says InProgress, and kubectl wait for Ready returns: true",
				"True at once: Ready, Reconciling",
			},
		},
		"deleted": {
			reason:  "what is being deleted is not well, even while all of it is there",
			capture: deleted(written(2, green, is("Ready", "True", "Succeeded"))),
			want: []string{
				"it is being deleted, kstatus says Terminating, and Argo CD Healthy: the table allows kstatus Terminating, and Argo CD Progressing or Degraded or Suspended",
				"kubectl wait for Ready returns: it is being deleted",
				"kubectl get prints READY True: it is being deleted",
			},
		},
		"just deleted": {
			reason:  "a deletion is another generation, of which the controller does not know yet",
			capture: deleted(written(1, green, is("Ready", "True", "Succeeded"))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, status.Judge(test.capture, test.facts)); diff != "" {
				t.Errorf("%s: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

func TestOverdue(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int, conditions ...map[string]any) status.Capture {
		capture := written(2, nil, conditions...)
		capture.At = begin.Add(time.Duration(seconds) * time.Second)
		return capture
	}
	hope := is("Reconciling", "True", "Retrying")
	stalled := is("Stalled", "True", "Retrying")
	for name, test := range map[string]struct {
		captures []status.Capture
		want     string
	}{
		"told in time": {captures: []status.Capture{at(1, hope), at(100, stalled), at(300, stalled)}},
		"never told": {
			captures: []status.Capture{at(1, hope), at(100, hope)},
			want:     "kstatus never says Failed, while a person has to act",
		},
		"told before": {
			captures: []status.Capture{at(-1, stalled), at(1, hope)},
			want:     "kstatus never says Failed, while a person has to act",
		},
		"told late": {
			captures: []status.Capture{at(1, hope), at(200, stalled)},
			want:     "kstatus says Failed after 3m20s, while a person has to act; it may take 2m0s",
		},
		"told and taken back": {
			captures: []status.Capture{at(1, hope), at(100, stalled), at(101, hope)},
			want:     "kstatus says InProgress after it said Failed, while a person has to act",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := status.Overdue(test.captures, begin, 2*time.Minute); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWaitReturns(t *testing.T) {
	t.Parallel()
	ofStatus := written(1, nil, is("Ready", "True", "Succeeded"))
	ofStatus.Object.Object["status"].(map[string]any)["conditions"] = []any{is("Ready", "True", "Succeeded")}
	for name, test := range map[string]struct {
		capture status.Capture
		want    bool
	}{
		"true for this generation":            {capture: written(2, nil, is("Ready", "True", "Succeeded")), want: true},
		"true for the generation before":      {capture: written(1, nil, is("Ready", "True", "Succeeded"))},
		"true, and the status is of before":   {capture: ofStatus},
		"false":                               {capture: written(2, nil, is("Ready", "False", "Succeeded"))},
		"absent":                              {capture: written(2, nil)},
		"true where nothing has a generation": {capture: status.Capture{Reading: judge.Reading{Object: &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{is("Ready", "True", "Succeeded")}}}}}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.capture.WaitReturns("Ready"); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	digest := "sha256:4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865"
	capture := status.Capture{
		Row: map[string]string{"NAME": "x", "AGE": "2026-11-22T09:00:00Z", "READY": "False", "INSTALLED": ""},
		Reading: judge.Reading{Argo: argocd.Health{Status: argocd.Degraded}, Object: &unstructured.Unstructured{Object: map[string]any{
			"kind": "ClusterExtension",
			"metadata": map[string]any{
				"name": "x", "generation": int64(3), "resourceVersion": "4711", "uid": "0b3e8f0e-0a0c-4d0e-9d5b-6a1f6f5b8c1d",
				"creationTimestamp": "2026-11-22T09:00:00Z", "managedFields": []any{map[string]any{"manager": "x"}},
			},
			"status": map[string]any{"conditions": []any{
				map[string]any{"type": "Ready", "status": "False", "message": "127.0.0.1:4711/x@" + digest + " is not there"},
				map[string]any{"type": "Available", "status": "True", "lastTransitionTime": "2026-11-22T09:00:01Z"},
			}},
		}}},
	}
	const want = `---
# a moment
# kstatus: InProgress
# Argo CD: Degraded
# kubectl get: INSTALLED=, READY=False
kind: ClusterExtension
metadata:
  creationTimestamp: "2026-01-01T00:00:00Z"
  generation: 3
  name: x
  resourceVersion: "1"
  uid: 00000000-0000-0000-0000-000000000000
status:
  conditions:
  - lastTransitionTime: "2026-01-01T00:00:00Z"
    status: "True"
    type: Available
  - message: 127.0.0.1:80/x@sha256:0000000000000000000000000000000000000000000000000000000000000000
      is not there
    status: "False"
    type: Ready
`
	got, err := status.Golden([]status.Moment{{Name: "a moment", Capture: capture}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
