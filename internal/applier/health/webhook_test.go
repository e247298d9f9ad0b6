package health

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

const ownWebhook = `Internal error occurred: failed calling webhook "mpods.p.test": failed to call webhook: Post "https://p-service.p.svc:443/mutate?timeout=2s": ` +
	`no endpoints available for service "p-service"`

// TestPodsThatAWebhookPrevents is F23: the deadlock of a webhook on its own pods is named, with the way out.
func TestPodsThatAWebhookPrevents(t *testing.T) {
	t.Parallel()
	const want = `no pod can be created because webhook "mpods.p.test" does not answer: no endpoints available for service "p-service". ` +
		`If these pods serve it, set spec.suspend, delete its webhook configuration, and remove spec.suspend when a pod is ready`
	deployment := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: ownWebhook},
	}}}
	workload := OfDeployment(object.Key{}, deployment)
	if workload.Reason != want {
		t.Errorf("F23: of a Deployment is reported %q", workload.Reason)
	}
	if got := workload.With(Cause{Reason: "FailedCreate", Text: "FailedCreate: " + want}).Reason; got != want {
		t.Errorf("F23: with an event is reported %q", got)
	}
	event := func(kind, message string) []Event {
		made := Event{Reason: "FailedCreate", Message: message, LastSeen: metav1.Now()}
		made.Involved.Kind, made.Involved.Name = kind, "kiosk"
		return []Event{made}
	}
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		got := CauseOfEvents(object.Key{GroupKind: schema.GroupKind{Group: "apps", Kind: kind}, Name: "kiosk"}, event(kind, "create Pod kiosk-0 in "+kind+" kiosk failed error: "+ownWebhook), time.Now())
		if got.Text != "FailedCreate: "+want {
			t.Errorf("F23: of a %s is reported %q", kind, got.Text)
		}
	}
	quota := `pods "p-1" is forbidden: exceeded quota`
	if got := ofPodCreation(quota); got != quota {
		t.Errorf("another failure is told as %q", got)
	}
	long := ofPodCreation(ownWebhook + strings.Repeat("x", 1000))
	if len(long) > len(want)+maxWebhookCause {
		t.Errorf("a failure is told in %d bytes", len(long))
	}
}

// TestAnswers is F23: a server answers as soon as one pod of the latest revision is ready, and no other pod is left.
func TestAnswers(t *testing.T) {
	t.Parallel()
	three := int32(3)
	deployment := func(status appsv1.DeploymentStatus) Workload {
		return OfDeployment(object.Key{}, &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &three}, Status: status})
	}
	set := func(status appsv1.StatefulSetStatus) Workload {
		return OfStatefulSet(object.Key{}, &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &three}, Status: status})
	}
	for name, tc := range map[string]struct {
		workload Workload
		want     bool
	}{
		"one pod of three":         {deployment(appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 1}), true},
		"no pod":                   {deployment(appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3}), false},
		"a pod of the old version": {deployment(appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 3, ReadyReplicas: 4}), false},
		"a StatefulSet":            {set(appsv1.StatefulSetStatus{Replicas: 1, ReadyReplicas: 1}), true},
		"an updated StatefulSet":   {set(appsv1.StatefulSetStatus{Replicas: 3, ReadyReplicas: 3, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "b"}), false},
		"a DaemonSet": {OfDaemonSet(object.Key{}, &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{
			DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberReady: 1,
		}}), true},
	} {
		t.Run("F23: "+name, func(t *testing.T) {
			t.Parallel()
			if got := tc.workload.Serves(); got != tc.want {
				t.Errorf("Serves() = %t of %+v", got, tc.workload)
			}
		})
	}
}
