package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

func TestTransitions(t *testing.T) {
	t.Parallel()
	status := func(ready ...metav1.Condition) *ocv1.ClusterExtensionStatus {
		return &ocv1.ClusterExtensionStatus{Conditions: ready}
	}
	ready := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: ocv1.TypeReady, Status: status, Reason: reason, Message: message}
	}
	edited := func(condition metav1.Condition) metav1.Condition {
		condition.ObservedGeneration++
		return condition
	}
	succeeded := ready(metav1.ConditionTrue, ocv1.ReasonSucceeded, "1.0.0")
	tests := map[string]struct {
		before, after *ocv1.ClusterExtensionStatus
		want          *transition
	}{
		"nothing to tell":    {before: status(), after: status()},
		"as before":          {before: status(succeeded), after: status(succeeded)},
		"ready at last":      {before: status(), after: status(succeeded), want: &transition{kind: corev1.EventTypeNormal, reason: ocv1.ReasonSucceeded, note: "1.0.0"}},
		"another text":       {before: status(succeeded), after: status(ready(metav1.ConditionTrue, ocv1.ReasonSucceeded, "1.1.0")), want: &transition{kind: corev1.EventTypeNormal, reason: ocv1.ReasonSucceeded, note: "1.1.0"}},
		"a rollout":          {before: status(succeeded), after: status(ready(metav1.ConditionUnknown, ocv1.ReasonRollingOut, "d")), want: &transition{kind: corev1.EventTypeNormal, reason: ocv1.ReasonRollingOut, note: "d"}},
		"a step of it":       {before: status(ready(metav1.ConditionUnknown, ocv1.ReasonRollingOut, "d")), after: status(ready(metav1.ConditionUnknown, ocv1.ReasonRollingOut, "e"))},
		"another rollout":    {before: status(ready(metav1.ConditionUnknown, ocv1.ReasonRollingOut, "d")), after: status(edited(ready(metav1.ConditionUnknown, ocv1.ReasonRollingOut, "e"))), want: &transition{kind: corev1.EventTypeNormal, reason: ocv1.ReasonRollingOut, note: "e"}},
		"the end of it":      {before: status(ready(metav1.ConditionUnknown, ocv1.ReasonRollingOut, "d")), after: status(succeeded), want: &transition{kind: corev1.EventTypeNormal, reason: ocv1.ReasonSucceeded, note: "1.0.0"}},
		"cannot be told":     {before: status(succeeded), after: status(ready(metav1.ConditionUnknown, ocv1.ReasonRetrying, "e")), want: &transition{kind: corev1.EventTypeWarning, reason: ocv1.ReasonRetrying, note: "e"}},
		"something is amiss": {before: status(succeeded), after: status(ready(metav1.ConditionFalse, ocv1.ReasonBlocked, "e")), want: &transition{kind: corev1.EventTypeWarning, reason: ocv1.ReasonBlocked, note: "e"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, transitionOf(tc.before, tc.after), cmp.AllowUnexported(transition{})); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemovalIsTold(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]*transition{
		"let go of; the cluster deletes the 3 objects that it has installed":        goneOf(departure{objects: 3}),
		"let go of; nothing was installed":                                          goneOf(departure{}),
		"let go of; the cluster deletes all that it has installed":                  goneOf(departure{objects: -1, isInstalled: true}),
		"let go of; the cluster deletes the object that it has installed":           goneOf(departure{objects: 1}),
		"let go of; the cluster deletes what it has installed, if that is anything": goneOf(departure{objects: -1, policy: UninstallKeep}),
		"let go of; all that it has installed is to stay":                           goneOf(departure{stay: true}),
	} {
		if diff := cmp.Diff(&transition{kind: corev1.EventTypeNormal, reason: eventRemoved, note: want}, got, cmp.AllowUnexported(transition{})); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	}
}
