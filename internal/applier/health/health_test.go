package health

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// noReplicaSet is the message of a Deployment whose ReplicaSet the API server refuses.
const noReplicaSet = `Failed to create new replica set "d-6d5f9c7b8": replicasets.apps "d-6d5f9c7b8" is forbidden: exceeded quota: q`

func TestWorkloadOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		deployment string // generation, spec and status
		want       Workload
	}{
		"all there": {
			deployment: `
metadata: {generation: 2}
spec: {replicas: 2}
status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: "True"}]}`,
			want: Workload{Available: metav1.ConditionTrue},
		},
		"scaled to zero": {
			deployment: `
metadata: {generation: 1}
spec: {replicas: 0}
status: {observedGeneration: 1, conditions: [{type: Available, status: "True"}]}`,
			want: Workload{Available: metav1.ConditionTrue, Idle: true},
		},
		"just made": {
			deployment: `
metadata: {generation: 1}
spec: {}`,
			want: Workload{Available: metav1.ConditionUnknown, RollingOut: true, Reason: "its last change has not been taken up yet"},
		},
		"status of the generation before": {
			deployment: `
metadata: {generation: 3}
spec: {replicas: 1}
status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}]}`,
			want: Workload{Available: metav1.ConditionUnknown, RollingOut: true, Reason: "its last change has not been taken up yet"},
		},
		"half-way, the old pods serve": {
			deployment: `
metadata: {generation: 2}
spec: {replicas: 2}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, availableReplicas: 2, conditions: [{type: Available, status: "True"}]}`,
			want: Workload{Available: metav1.ConditionTrue, RollingOut: true, Reason: "1 of 2 replicas are of the new version"},
		},
		"old pods linger": {
			deployment: `
metadata: {generation: 2}
spec: {replicas: 1}
status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 2, conditions: [{type: Available, status: "True"}]}`,
			want: Workload{Available: metav1.ConditionTrue, RollingOut: true, Reason: "replicas of the old version that are left: 1"},
		},
		"crashing": {
			deployment: `
metadata: {generation: 1}
spec: {replicas: 1}
status:
  {observedGeneration: 1, replicas: 1, updatedReplicas: 1, conditions: [{type: Available, status: "False", message: no minimum availability}]}`,
			want: Workload{Available: metav1.ConditionFalse, RollingOut: true, Reason: "0 of 1 replicas are available"},
		},
		"given up": {
			deployment: `
metadata: {generation: 1}
spec: {replicas: 1}
status:
  observedGeneration: 1
  replicas: 1
  updatedReplicas: 1
  conditions: [{type: Available, status: "False"}, {type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: timed out}]`,
			want: Workload{Available: metav1.ConditionFalse, Stuck: true, Reason: "timed out"},
		},
		"failed, and the old pods serve": {
			deployment: `
metadata: {generation: 2}
spec: {replicas: 1}
status:
  observedGeneration: 2
  replicas: 2
  updatedReplicas: 1
  availableReplicas: 1
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: timed out}]`,
			want: Workload{Available: metav1.ConditionTrue, Stuck: true, Reason: "timed out"},
		},
		"a pod dies after the rollout": {
			deployment: `
metadata: {generation: 1}
spec: {replicas: 1}
status:
  observedGeneration: 1
  replicas: 1
  updatedReplicas: 1
  conditions: [{type: Available, status: "False"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]`,
			want: Workload{Available: metav1.ConditionFalse, Reason: "0 of 1 replicas are available"},
		},
		"one pod of three dies after the rollout": {
			deployment: `
metadata: {generation: 1}
spec: {replicas: 3}
status:
  observedGeneration: 1
  replicas: 3
  updatedReplicas: 3
  availableReplicas: 2
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]`,
			want: Workload{Available: metav1.ConditionTrue, Reason: "2 of 3 replicas are available"},
		},
		"back to an earlier template": {
			deployment: `
metadata: {generation: 3}
spec: {replicas: 1}
status:
  observedGeneration: 3
  replicas: 1
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]`,
			want: Workload{Available: metav1.ConditionTrue, RollingOut: true, Idle: true, Reason: "0 of 1 replicas are of the new version"},
		},
		"paused half-way": {
			deployment: `
metadata: {generation: 2}
spec: {replicas: 1, paused: true}
status:
  observedGeneration: 2
  replicas: 1
  availableReplicas: 1
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: Unknown, reason: DeploymentPaused}]`,
			want: Workload{Available: metav1.ConditionTrue, Stuck: true, Reason: "it is paused, until `kubectl rollout resume`: 0 of 1 replicas are of the new version"},
		},
		"no pods can be made": {
			deployment: `
metadata: {generation: 1}
spec: {replicas: 1}
status: {observedGeneration: 1, conditions: [{type: Available, status: "False"}, {type: ReplicaFailure, status: "True", message: quota exceeded}]}`,
			want: Workload{Available: metav1.ConditionFalse, Refused: true, Reason: "its pods cannot be created: quota exceeded"},
		},
		"F4: no ReplicaSet can be created": {
			deployment: `
metadata: {generation: 1}
spec: {replicas: 1, selector: {matchLabels: {app: d}}}
status:
  conditions:
  - {type: Progressing, status: "False", reason: ReplicaSetCreateError, message: '` + noReplicaSet + `'}`,
			want: Workload{Available: metav1.ConditionFalse, Stuck: true, Refused: true, Reason: "its ReplicaSet cannot be created: exceeded quota: q"},
		},
		"F4: no ReplicaSet can be created, and the old pods serve": {
			deployment: `
metadata: {generation: 3}
spec: {replicas: 1, selector: {matchLabels: {app: d}}}
status:
  observedGeneration: 2
  replicas: 1
  updatedReplicas: 1
  availableReplicas: 1
  conditions:
  - {type: Available, status: "True"}
  - {type: Progressing, status: "False", reason: ReplicaSetCreateError, message: '` + noReplicaSet + `'}`,
			want: Workload{Available: metav1.ConditionTrue, Stuck: true, Refused: true, Reason: "its ReplicaSet cannot be created: exceeded quota: q"},
		},
		"unreadable": {
			deployment: `
metadata: {generation: 1}
status: {replicas: many}`,
			want: Workload{Available: metav1.ConditionUnknown, Reason: "its status cannot be read"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(strings.TrimSpace(tc.deployment)), &obj.Object); err != nil {
				t.Fatal(err)
			}
			key := object.Key{GroupKind: DeploymentKind, Namespace: "ns", Name: "d"}
			tc.want.Key = key
			if diff := cmp.Diff(tc.want, Of(map[object.Key]*unstructured.Unstructured{key: obj})[key]); diff != "" {
				t.Errorf("workload (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSinceWhen is about the times of a Deployment, and whose pods are looked at.
func TestSinceWhen(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason    string
		spec      string
		status    string
		want      string // the time of day; empty for none
		recovered bool
		selector  string
	}{
		"the first rollout": {
			status: `conditions: [{type: Available, status: "True", lastTransitionTime: "2026-11-23T12:00:07Z"},
  {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastTransitionTime: "2026-11-23T12:00:00Z", lastUpdateTime: "2026-11-23T12:00:07Z"}]`,
			want: "12:00:07",
		},
		"a rollout during which the old pods served": {
			reason: "the condition Progressing was True all along, and only its reason has changed",
			status: `conditions: [{type: Available, status: "True", lastTransitionTime: "2026-11-23T12:00:07Z"},
  {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastTransitionTime: "2026-11-23T12:00:00Z", lastUpdateTime: "2026-11-23T13:00:00Z"}]`,
			want: "13:00:00",
		},
		"pods had to be ready for some time before": {
			spec: "minReadySeconds: 3",
			status: `conditions: [{type: Available, status: "True", lastTransitionTime: "2026-11-23T12:00:07Z"},
  {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastUpdateTime: "2026-11-23T12:00:07Z"}]`,
			want: "12:00:04",
		},
		"down for a while after the rollout": {
			status: `conditions: [{type: Available, status: "True", lastTransitionTime: "2026-11-23T14:00:00Z"},
  {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastUpdateTime: "2026-11-23T12:00:07Z"}]`,
			want: "14:00:00", recovered: true,
		},
		"down": {
			status: `conditions: [{type: Available, status: "False", lastTransitionTime: "2026-11-23T14:00:00Z"},
  {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastUpdateTime: "2026-11-23T12:00:07Z"}]`,
			want: "14:00:00", selector: "app=d",
		},
		"given up, and the old pods serve": {
			status: `conditions: [{type: Available, status: "True", lastTransitionTime: "2026-11-23T12:00:07Z"},
  {type: Progressing, status: "False", reason: ProgressDeadlineExceeded, lastUpdateTime: "2026-11-23T13:00:00Z"}]`,
			want: "12:00:07", selector: "app=d",
		},
		"the cluster says no times": {status: `conditions: [{type: Available, status: "True"}]`},
		"its selector says nothing": {
			reason: "all pods of the namespace are not its own",
			spec:   "selector: {}",
			status: `conditions: [{type: Available, status: "False", lastTransitionTime: "2026-11-23T14:00:00Z"}]`,
			want:   "14:00:00",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deployment := &appsv1.Deployment{}
			if err := yaml.Unmarshal([]byte("metadata: {generation: 1}\nspec: {replicas: 1, selector: {matchLabels: {app: d}}}"), deployment); err != nil {
				t.Fatal(err)
			}
			for _, part := range []struct {
				text string
				into any
			}{{tc.spec, &deployment.Spec}, {tc.status, &deployment.Status}} {
				if err := yaml.Unmarshal([]byte(part.text), part.into); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(tc.spec, "selector: {}") {
				deployment.Spec.Selector = &metav1.LabelSelector{}
			}
			deployment.Status.ObservedGeneration = 1
			got := OfDeployment(object.Key{}, deployment)
			since := ""
			if !got.Since.IsZero() {
				since = got.Since.Format(time.TimeOnly)
			}
			if since != tc.want || got.Recovered != tc.recovered || got.Selector != tc.selector {
				t.Errorf("since %q, recovered %t, selector %q; want %q, %t, %q (%s)", since, got.Recovered, got.Selector, tc.want, tc.recovered, tc.selector, tc.reason)
			}
		})
	}
}
