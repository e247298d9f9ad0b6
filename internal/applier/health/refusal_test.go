package health

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

const violation = `violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "manager" must set ` +
	`securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "manager" must set ` +
	`securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "manager" must set ` +
	`securityContext.runAsNonRoot=true), seccompProfile (pod or container "manager" must set ` +
	`securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`

// TestRefusedPods is F4: why pods cannot be created stands there once and whole, and without generated names, and the
// workload does not count as on its way.
func TestRefusedPods(t *testing.T) {
	t.Parallel()
	const pod = `pods "w-6d5f9c7b8-x2x4z" is forbidden: `
	for name, test := range map[string]struct{ message, want string }{
		"F4: a quota": {
			message: pod + "exceeded quota: small, requested: pods=1, used: pods=5, limited: pods=5",
			want:    "its pods are forbidden: exceeded quota: small, requested: pods=1, used: pods=5, limited: pods=5",
		},
		"F4: PodSecurity": {message: pod + violation, want: "its pods are forbidden: " + violation},
		"F4: a LimitRange": {
			message: pod + "maximum memory usage per Container is 32Mi, but limit is 64Mi",
			want:    "its pods are forbidden: maximum memory usage per Container is 32Mi, but limit is 64Mi",
		},
		"F4: a priority class": {
			message: `pods "w-6d5f9c7b8-" is forbidden: no PriorityClass with name urgent was found`,
			want:    "its pods are forbidden: no PriorityClass with name urgent was found",
		},
		"F4: a ServiceAccount": {
			message: `pods "w-6d5f9c7b8-" is forbidden: error looking up service account ns/w: serviceaccount "w" not found`,
			want:    `its pods are forbidden: error looking up service account ns/w: serviceaccount "w" not found`,
		},
		"F4: a webhook": {
			message: `admission webhook "pods.test" denied the request: w-6d5f9c7b8-x2x4z has no owner`,
			want:    `its pods cannot be created: admission webhook "pods.test" denied the request: … has no owner`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []string{"Deployment.apps", "ReplicaSet.apps", "ReplicationController"} {
				workload := refusedBy(t, kind, test.message)
				if workload.Available != metav1.ConditionFalse || workload.RollingOut || workload.Reason != test.want {
					t.Errorf("%s is available %s, rolling out %t: %s, want %s", kind, workload.Available, workload.RollingOut, workload.Reason, test.want)
				}
				if again := workload.With(eventCause(kind, "Error creating: "+test.message)); again.Reason != test.want {
					t.Errorf("%s: it stands there twice: %s", kind, again.Reason)
				}
			}
			for _, kind := range []string{"StatefulSet.apps", "DaemonSet.apps"} {
				begin := "Error creating: "
				if strings.HasPrefix(kind, "StatefulSet") {
					begin = "Create Pod w-0 in StatefulSet w failed error: "
				}
				starting := Workload{Available: metav1.ConditionFalse, RollingOut: true, Reason: "0 of 1 replicas are available"}
				got := starting.With(eventCause(kind, begin+test.message))
				if want := "0 of 1 replicas are available: FailedCreate: " + test.want; got.Reason != want || got.RollingOut {
					t.Errorf("%s, rolling out %t: %s, want %s", kind, got.RollingOut, got.Reason, want)
				}
			}
		})
	}
}

// refusedBy is a workload with the condition ReplicaFailure and without pods.
func refusedBy(t *testing.T, kind, message string) Workload {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(`{metadata: {name: w, generation: 1, creationTimestamp: "2026-08-01T12:00:00Z"}, spec: {replicas: 1}, status: {observedGeneration: 1,
  conditions: [{type: Available, status: "False"}, {type: ReplicaFailure, status: "True", reason: FailedCreate, message: '` + message + `'}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	live := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &live.Object); err != nil {
		t.Fatal(err)
	}
	key := object.Key{GroupKind: schema.ParseGroupKind(kind), Name: "w"}
	found, _ := Starting([]Workload{Of(map[object.Key]*unstructured.Unstructured{key: live})[key]}, live.GetCreationTimestamp().Time)
	return found[0]
}

// eventCause returns the cause that an event about the workload itself reports.
func eventCause(kind, message string) Cause {
	key := object.Key{GroupKind: schema.ParseGroupKind(kind), Name: "w"}
	now := time.Now()
	event := Event{Reason: reasonFailedCreate, Message: message}
	event.Involved.Kind, event.Involved.Name, event.LastSeen.Time = key.Kind, key.Name, now
	return CauseOfEvents(key, []Event{event}, now)
}

// TestRefusedDuringARollout: as long as pods of the version before serve, the rollout may go on with fewer of them.
func TestRefusedDuringARollout(t *testing.T) {
	t.Parallel()
	workload := Workload{Available: metav1.ConditionTrue, RollingOut: true}.refused("quota")
	if !workload.RollingOut {
		t.Error("it counts as at rest")
	}
}

// TestEventsOfWorkloads: each kind generates names in its own way.
func TestEventsOfWorkloads(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind, involved, named string
		want                  bool
	}{
		"the pod of a StatefulSet":     {kind: "StatefulSet.apps", involved: "Pod", named: "w-12", want: true},
		"the pod of a DaemonSet":       {kind: "DaemonSet.apps", involved: "Pod", named: "w-x7k2p", want: true},
		"a StatefulSet":                {kind: "StatefulSet.apps", involved: "StatefulSet", named: "w", want: true},
		"a DaemonSet of the same name": {kind: "StatefulSet.apps", involved: "DaemonSet", named: "w"},
		"the pod of a Deployment":      {kind: "StatefulSet.apps", involved: "Pod", named: "w-7d9c-x2x4z"},
		"of another StatefulSet":       {kind: "StatefulSet.apps", involved: "Pod", named: "w-db-0"},
		"a kind without pods":          {kind: "Widget.example.test", involved: "Pod", named: "w-0"},
	} {
		event := Event{}
		event.Involved.Kind, event.Involved.Name = test.involved, test.named
		if got := event.isOf(object.Key{GroupKind: schema.ParseGroupKind(test.kind), Name: "w"}); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
