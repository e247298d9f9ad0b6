package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestWhatOfAServiceAccountMatters: tokens and labels are none of our business, but
// a pull that was refused may succeed with another pull secret.
func TestWhatOfAServiceAccountMatters(t *testing.T) {
	t.Parallel()
	account := func(change func(*corev1.ServiceAccount)) *corev1.ServiceAccount {
		made := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa"}}
		change(made)
		return made
	}
	before := account(func(*corev1.ServiceAccount) {})
	moved := accountMoved()
	if !moved.Create(event.CreateEvent{Object: before}) || !moved.Delete(event.DeleteEvent{Object: before}) {
		t.Error("a ServiceAccount that appears or goes is not noticed")
	}
	tests := map[string]struct {
		after *corev1.ServiceAccount
		want  bool
	}{
		"label":       {after: account(func(a *corev1.ServiceAccount) { a.Labels = map[string]string{"a": "b"} })},
		"token":       {after: account(func(a *corev1.ServiceAccount) { a.Secrets = []corev1.ObjectReference{{Name: "token"}} })},
		"pull secret": {after: account(func(a *corev1.ServiceAccount) { a.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}} }), want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := moved.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("noticed: %t, want %t", got, tc.want)
			}
		})
	}
}
