package health

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestHealthOfKinds is F1: each kind that runs pods is available only if these are.
func TestHealthOfKinds(t *testing.T) {
	t.Parallel()
	const selector = "selector: {matchLabels: {app: x}}"
	tests := map[string]struct {
		kind   string
		object string // metadata, spec and status
		want   Workload
	}{
		"StatefulSet, all there": {
			kind:   "StatefulSet.apps",
			object: "metadata: {generation: 1}\nspec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, availableReplicas: 2}",
			want:   Workload{Available: metav1.ConditionTrue},
		},
		"StatefulSet that never runs": {
			kind:   "StatefulSet.apps",
			object: "metadata: {generation: 1}\nspec: {replicas: 1, " + selector + "}\nstatus: {observedGeneration: 1, replicas: 1, currentRevision: a, updateRevision: a}",
			want:   Workload{Available: metav1.ConditionFalse, Reason: "0 of 1 replicas are available", Selector: "app=x"},
		},
		"StatefulSet of an earlier generation": {
			kind:   "StatefulSet.apps",
			object: "metadata: {generation: 2}\nspec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}",
			want:   Workload{Available: metav1.ConditionUnknown, RollingOut: true, Reason: "its last change has not been taken up yet"},
		},
		"StatefulSet during a rollout": {
			kind:   "StatefulSet.apps",
			object: "metadata: {generation: 2}\nspec: {replicas: 3}\nstatus: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, availableReplicas: 2, currentRevision: a, updateRevision: b}",
			want:   Workload{Available: metav1.ConditionTrue, RollingOut: true, Reason: "1 of 3 replicas are of the new version"},
		},
		"F1: StatefulSet whose old pods were never ready": {
			kind:   "StatefulSet.apps",
			object: `{"spec":{"replicas":2},"status":{"replicas":2,"readyReplicas":1,"availableReplicas":1,"currentRevision":"a","updateRevision":"b"}}`,
			want: Workload{
				Available: metav1.ConditionFalse,
				Reason:    "its rollout waits for pods of the old version that are not ready: delete them if they do not become ready",
			},
		},
		"StatefulSet with a partition": {
			kind:   "StatefulSet.apps",
			object: "metadata: {generation: 2}\nspec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}}\nstatus: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, availableReplicas: 3, currentRevision: a, updateRevision: b}",
			want:   Workload{Available: metav1.ConditionTrue},
		},
		"StatefulSet with the strategy OnDelete": {
			kind:   "StatefulSet.apps",
			object: "metadata: {generation: 2}\nspec: {replicas: 1, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, replicas: 1, availableReplicas: 1, currentRevision: a, updateRevision: b}",
			want:   Workload{Available: metav1.ConditionTrue},
		},
		"StatefulSet with the strategy OnDelete that never runs": {
			kind:   "StatefulSet.apps",
			object: "metadata: {generation: 1}\nspec: {replicas: 1, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, replicas: 1}",
			want:   Workload{Available: metav1.ConditionFalse, Reason: "0 of 1 replicas are available"},
		},
		"StatefulSet scaled to zero": {
			kind:   "StatefulSet.apps",
			object: "metadata: {generation: 1}\nspec: {replicas: 0}\nstatus: {observedGeneration: 1}",
			want:   Workload{Available: metav1.ConditionTrue, Idle: true},
		},
		"DaemonSet that never runs": {
			kind:   "DaemonSet.apps",
			object: "metadata: {generation: 1}\nstatus: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2}",
			want:   Workload{Available: metav1.ConditionFalse, Reason: "0 of 2 replicas are available"},
		},
		"DaemonSet without a node": {
			kind: "DaemonSet.apps", object: "metadata: {generation: 1}\nstatus: {observedGeneration: 1}",
			want: Workload{Available: metav1.ConditionTrue, Idle: true},
		},
		"DaemonSet with the strategy OnDelete": {
			kind:   "DaemonSet.apps",
			object: "metadata: {generation: 2}\nspec: {updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, desiredNumberScheduled: 2, currentNumberScheduled: 2, numberAvailable: 2}",
			want:   Workload{Available: metav1.ConditionTrue},
		},
		"ReplicaSet that never runs": {
			kind: "ReplicaSet.apps", object: "metadata: {generation: 1}\nspec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 1}",
			want: Workload{Available: metav1.ConditionFalse, Reason: "0 of 1 replicas are available"},
		},
		"ReplicationController that never runs": {
			kind: "ReplicationController", object: "metadata: {generation: 1}\nspec: {selector: {app: x}}\nstatus: {observedGeneration: 1, replicas: 1}",
			want: Workload{Available: metav1.ConditionFalse, Reason: "0 of 1 replicas are available", Selector: "app=x"},
		},
		"failed Job": {
			kind:   "Job.batch",
			object: "spec: {" + selector + "}\nstatus: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: has reached the limit}]}",
			want:   Workload{Available: metav1.ConditionFalse, Stuck: true, Reason: "the Job has failed: BackoffLimitExceeded: has reached the limit", Selector: "app=x"},
		},
		"Job that runs":    {kind: "Job.batch", object: "status: {active: 1}", want: Workload{Available: metav1.ConditionTrue, Idle: true}},
		"Job that is done": {kind: "Job.batch", object: "status: {conditions: [{type: Complete, status: 'True'}]}", want: Workload{Available: metav1.ConditionTrue, Idle: true}},
		"F18: Job that is done and expires": {
			kind: "Job.batch", object: "spec: {ttlSecondsAfterFinished: 0}\nstatus: {conditions: [{type: Complete, status: 'True'}]}",
			want: Workload{Available: metav1.ConditionTrue, Idle: true, Ended: true},
		},
		"F18: Job that runs and will expire": {
			kind: "Job.batch", object: "spec: {ttlSecondsAfterFinished: 0}\nstatus: {conditions: [{type: SuccessCriteriaMet, status: 'True'}]}",
			want: Workload{Available: metav1.ConditionTrue, Idle: true},
		},
		"Pod that nothing schedules": {
			kind:   "Pod",
			object: "status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/1 nodes are available}]}",
			want:   Workload{Available: metav1.ConditionFalse, Reason: "it is not ready: Unschedulable: 0/1 nodes are available"},
		},
		"Pod that is ready": {kind: "Pod", object: "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", want: Workload{Available: metav1.ConditionTrue}},
		"Pod that is done":  {kind: "Pod", object: "status: {phase: Succeeded}", want: Workload{Available: metav1.ConditionTrue, Idle: true}},
		"Pod that has failed": {
			kind: "Pod", object: "status: {phase: Failed, reason: Evicted, message: out of memory}",
			want: Workload{Available: metav1.ConditionFalse, Stuck: true, Reason: "it has failed: Evicted: out of memory"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.object), &live.Object); err != nil {
				t.Fatal(err)
			}
			key := object.Key{GroupKind: schema.ParseGroupKind(test.kind), Namespace: "ns", Name: "x"}
			test.want.Key = key
			got := Of(map[object.Key]*unstructured.Unstructured{key: live})[key]
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("workload (-want +got):\n%s", diff)
			}
			// A watch tells the same.
			data, err := json.Marshal(live.Object)
			if err != nil {
				t.Fatal(err)
			}
			_, at, err := Decode(key.GroupKind, data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, at(key)); diff != "" {
				t.Errorf("workload of an event (-object +event):\n%s", diff)
			}
		})
	}
}

// TestStarting: a workload without a history is starting in its first minutes, and unavailable later.
func TestStarting(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	certificate := object.Key{GroupKind: object.CertificateKind}
	for _, test := range []struct {
		after    time.Duration
		workload Workload
		want     bool
	}{
		{after: time.Minute, workload: Workload{Available: metav1.ConditionFalse, Created: created}, want: true},
		{after: startTime, workload: Workload{Available: metav1.ConditionFalse, Created: created}},
		{after: time.Minute, workload: Workload{Available: metav1.ConditionFalse, Stuck: true, Created: created}},
		{after: time.Minute, workload: Workload{Available: metav1.ConditionFalse}},
		{after: readyTime / 2, workload: Workload{Key: certificate, Available: metav1.ConditionFalse, Created: created}, want: true},
		{after: readyTime, workload: Workload{Key: certificate, Available: metav1.ConditionFalse, Created: created}},
	} {
		got, left := Starting([]Workload{test.workload}, created.Add(test.after))
		if got[0].RollingOut != test.want || left > 0 != test.want {
			t.Errorf("%+v after %s: rolling out %t, for %s", test.workload, test.after, got[0].RollingOut, left)
		}
	}
}
