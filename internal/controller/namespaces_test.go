package controller

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func accountIn(namespace, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// TestLacksNamespace: a namespace is known by the ServiceAccounts in it.
func TestLacksNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, accountIn("there", "default"), accountIn("own", "sa"))
	for namespace, want := range map[string]bool{"there": false, "own": false, "gone": true} {
		if got := LacksNamespace(w.client)(t.Context(), namespace); got != want {
			t.Errorf("%q is lacking: %t", namespace, got)
		}
	}
}

// TestNamespaceThatIsWaitedFor is what N3 and N8 of the specification ask for: nothing is tried
// until the namespace comes, and then at once.
func TestNamespaceThatIsWaitedFor(t *testing.T) {
	t.Parallel()
	missing := &object.MissingNamespacesError{Namespaces: []string{"a", "b"}}
	tests := map[string]struct {
		reason    string
		installed string
		change    func(w *world)
		account   *corev1.ServiceAccount
		want      bool // the extension is woken by the account
	}{
		"one of them":        {change: func(w *world) { w.applyErr = missing }, account: accountIn("b", "default"), want: true},
		"another one":        {change: func(w *world) { w.applyErr = missing }, account: accountIn("c", "default")},
		"another account":    {reason: "a namespace has one from the start", change: func(w *world) { w.applyErr = missing }, account: accountIn("b", "builder")},
		"nothing is missing": {change: func(*world) {}, account: accountIn("b", "default")},
		"another failure":    {change: func(w *world) { w.applyErr = errors.New("boom") }, account: accountIn("b", "default")},
		"of what is installed": {
			installed: "1.0.0", change: func(w *world) { w.repairErr = errors.Join(missing) }, account: accountIn("a", "default"), want: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			if tc.installed != "" {
				w.installation.Installed = installed(tc.installed)
				w.installation.Installed.Inputs = digestOf(nil)
			}
			tc.change(w)
			w.observed(t)
			_, _ = w.reconcile(t)
			woken := func() bool { return len(w.matching(t, w.reconciler.using(t.Context(), tc.account))) > 0 }
			if woken() != tc.want || len(w.called) > 0 {
				t.Errorf("woken: %t, want %t, called: %v: %s", woken(), tc.want, w.called, tc.reason)
			}
			w.applyErr, w.repairErr = nil, nil
			w.mustReconcile(t)
			if woken() {
				t.Error("it is woken although nothing is missing any more")
			}
		})
	}
}

// TestNothingIsTriedForAMissingNamespace until it is there: a pass for other reasons, as time
// brings one, tries nothing.
func TestNothingIsTriedForAMissingNamespace(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.observed(t)
	w.applyErr = &object.MissingNamespacesError{Namespaces: []string{"b"}}
	for range 3 {
		if result, err := w.reconcileInTime(t); err != nil || result.RequeueAfter > 0 && result.RequeueAfter < maxBackoff {
			t.Errorf("the next pass comes after %s, error %v", result.RequeueAfter, err)
		}
	}
	if tries := slices.DeleteFunc(w.did, func(did string) bool { return did != "apply 1.0.0" }); len(tries) != 1 {
		t.Errorf("it was tried %d times", len(tries))
	}
}

// TestNamespaceThatAppearsMeanwhile is not missed: its event may have come before it was known
// that somebody waits for it.
func TestNamespaceThatAppearsMeanwhile(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	if err := w.client.Create(t.Context(), accountIn("b", "default")); err != nil {
		t.Fatal(err)
	}
	w.applyErr = &object.MissingNamespacesError{Namespaces: []string{"b"}}
	w.observed(t)
	_, _ = w.reconcile(t)
	if !slices.Equal(w.called, []string{"x"}) {
		t.Errorf("called: %v", w.called)
	}
}
