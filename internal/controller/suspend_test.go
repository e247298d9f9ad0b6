package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func suspend(ext *ocv1.ClusterExtension) { ext.Spec.Suspend = true }

// TestSuspended has what is told of an extension that is suspended, and that nothing is done
// for it but what is about certificates.
func TestSuspended(t *testing.T) {
	t.Parallel()
	down := []health.Workload{{Key: keyOf("Deployment", "ns", "d"), Available: metav1.ConditionFalse, Reason: "it does not exist"}}
	tests := map[string]struct {
		reason    string
		change    func(*testing.T, *world)
		installed string
		did       []string
		ready     string
		told      []string
		pending   string
	}{
		"at rest": {
			reason:    "the workloads serve",
			installed: "1.1.0", did: []string{"renew"}, ready: "True Suspended",
			told: []string{`"p.v1.1.0" version "1.1.0" is installed, from catalog "c"; suspended since 1970-01-01T00:16:40Z, so that nothing is written`},
		},
		"an upgrade": {
			reason:    "it is told, and not made",
			installed: "1.0.0", did: []string{"renew"}, ready: "True Suspended", told: []string{`a resume upgrades to "p.v1.1.0" version "1.1.0"`},
		},
		"an upgrade half-way": {
			reason:    "content is neither the one nor the other",
			change:    func(_ *testing.T, w *world) { w.installation.Unfinished = true },
			installed: "1.0.0", did: []string{"renew"}, ready: "False Suspended",
			told: []string{"an upgrade that was begun is left half-way; a resume upgrades to "},
		},
		"other configuration": {
			reason:    "it waits as well",
			change:    func(_ *testing.T, w *world) { w.installation.Installed.Inputs = inputsOther },
			installed: "1.1.0", did: []string{"renew"}, ready: "True Suspended", told: []string{`a resume applies "p.v1.1.0" version "1.1.0" anew`},
		},
		"an installation": {
			reason: "nothing is there", ready: "False Suspended", told: []string{"nothing is installed; suspended since ", `a resume installs "p.v1.1.0" version "1.1.0"`},
		},
		"a workload is gone": {
			reason:    "that is so, whoever has asked for it",
			change:    func(_ *testing.T, w *world) { w.workloads = down },
			installed: "1.1.0", did: []string{"renew"}, ready: "False Unavailable",
			told: []string{"suspended since ", "workloads: Deployment \"d\""},
		},
		"a workload rolls out": {
			reason: "nobody works on it",
			change: func(_ *testing.T, w *world) {
				w.workloads = []health.Workload{{Key: keyOf("Deployment", "ns", "d"), Available: metav1.ConditionTrue, RollingOut: true}}
			},
			installed: "1.1.0", did: []string{"renew"}, ready: "True Suspended",
		},
		"nothing can be chosen": {
			reason:    "that stands in nobody's way now",
			change:    func(_ *testing.T, w *world) { w.catalog = map[string]*resolve.Prepared{} },
			installed: "1.1.0", did: []string{"renew"}, ready: "True Suspended", told: []string{`no upgrades can be found: no catalog has package "p"`},
		},
		"nothing can be chosen, and nothing is installed": {
			reason: "the same",
			change: func(_ *testing.T, w *world) { w.catalog = map[string]*resolve.Prepared{} },
			ready:  "False Suspended", told: []string{"nothing is installed; suspended since ", `no catalog has package "p"`},
		},
		"certificates cannot be renewed": {
			reason:    "webhooks end with them, suspended or not",
			change:    func(_ *testing.T, w *world) { w.repairErr = errors.New("boom") },
			installed: "1.1.0", did: []string{"renew"}, ready: "False Retrying", told: []string{"suspended since ", "boom"},
		},
		"an approval": {
			reason: "it waits on",
			change: func(t *testing.T, w *world) {
				w.editSpec(t, func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog.UpgradeApproval = ocv1.UpgradeApprovalManual })
			},
			installed: "1.0.0", did: []string{"renew", "fetch registry.test/p:v1.1.0", "foresee 1.1.0", "close"}, ready: "True Suspended", pending: "1.1.0",
			told: []string{"suspended since ", `the upgrade to version "1.1.0" waits for approval`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.editSpec(t, suspend)
			w.catalog["p"] = offering("1.0.0", "1.1.0").Package
			if tc.installed != "" {
				w.installation.Installed = installed(tc.installed)
				w.installation.Installed.Inputs = digestOf(nil)
			}
			if tc.change != nil {
				tc.change(t, w)
			}
			_, err := w.reconcile(t)
			if isError := strings.HasSuffix(tc.ready, "Retrying"); (err != nil) != isError {
				t.Error(err)
			}
			if diff := cmp.Diff(tc.did, w.take()); diff != "" {
				t.Errorf("%s: done (-want +got):\n%s", tc.reason, diff)
			}
			status := w.extension(t).Status
			ready := meta.FindStatusCondition(status.Conditions, ocv1.TypeReady)
			if got := string(ready.Status) + " " + ready.Reason; got != tc.ready {
				t.Errorf("%s: Ready is %s, want %s", tc.reason, got, tc.ready)
			}
			for _, text := range tc.told {
				if !strings.Contains(ready.Message, text) {
					t.Errorf("%s: Ready does not say %q: %s", tc.reason, text, ready.Message)
				}
			}
			suspended := meta.FindStatusCondition(status.Conditions, ocv1.TypeSuspended)
			if suspended == nil || suspended.Status != metav1.ConditionTrue || suspended.Reason != ocv1.ReasonUserRequested {
				t.Errorf("Suspended is %+v", suspended)
			}
			if err == nil {
				checkAtRest(t, status)
			}
			if got := status.Pending; (got == nil) != (tc.pending == "") || got != nil && got.Bundle.Version != tc.pending {
				t.Errorf("%s: pending is %+v", tc.reason, got)
			}
			w.passed, w.writes = time.Hour, nil
			if _, _ = w.reconcile(t); err == nil && len(w.writes) > 0 {
				t.Errorf("%s: the second pass writes %v", tc.reason, w.writes)
			}
		})
	}
}

// checkAtRest: nobody works on what is suspended, and nobody has to act.
func checkAtRest(t *testing.T, status ocv1.ClusterExtensionStatus) {
	t.Helper()
	progressing := meta.FindStatusCondition(status.Conditions, ocv1.TypeProgressing)
	if progressing.Status != metav1.ConditionTrue || progressing.Reason != ocv1.ReasonSucceeded || progressing.Message != messageSuspended {
		t.Errorf("Progressing is %+v", progressing)
	}
	for _, kind := range []string{ocv1.TypeReconciling, ocv1.TypeStalled} {
		if found := meta.FindStatusCondition(status.Conditions, kind); found != nil {
			t.Errorf("%s is %+v", kind, found)
		}
	}
}

// TestSuspendedSince is told once, however long a pass takes.
func TestSuspendedSince(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.editSpec(t, suspend)
	calls := 0
	w.reconciler.Now = func() time.Time {
		calls++
		return time.Unix(1000, 0).Add(time.Duration(calls) * 700 * time.Millisecond)
	}
	w.mustReconcile(t)
	first := w.extension(t).Status
	w.writes = nil
	w.mustReconcile(t)
	if len(w.writes) > 0 {
		t.Errorf("the second pass writes %v:\n%s", w.writes, cmp.Diff(first, w.extension(t).Status))
	}
}

// TestResume takes the condition away, and goes on at once.
func TestResume(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.editSpec(t, suspend)
	w.mustReconcile(t)
	w.take()
	w.editSpec(t, func(ext *ocv1.ClusterExtension) { ext.Spec.Suspend = false })
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"fetch registry.test/p:v1.0.0", "apply 1.0.0", "write", "close"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if found := meta.FindStatusCondition(w.extension(t).Status.Conditions, ocv1.TypeSuspended); found != nil {
		t.Errorf("Suspended is %+v", found)
	}
}

// TestSuspendEndsAPass has somebody suspend an extension while it is upgraded, before the pass
// can be told, or while it writes.
func TestSuspendEndsAPass(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]bool{"in the middle": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			before := w.extension(t)
			w.during = func(stage string) {
				if stage != "apply" {
					return
				}
				w.editSpec(t, suspend)
				w.reconciler.removals.noteIfSuspended(before, w.extension(t))
				w.applyErr = context.Canceled
			}
			want := []string{"fetch registry.test/p:v1.0.0", "apply 1.0.0", "write", "close"}
			if !tell {
				w.during, want = func(string) {}, nil
				w.reconciler.Client = &lateClient{Client: w.client, ext: before}
				w.editSpec(t, suspend)
			}
			w.writes = nil
			result, err := w.reconciler.Reconcile(t.Context(), requestFor("x"))
			if err != nil || result.RequeueAfter != atOnce {
				t.Errorf("%+v, %v: another pass is to come at once", result, err)
			}
			if diff := cmp.Diff(want, w.take()); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			w.installation = installation.State{}
			w.mustReconcile(t)
			if diff := cmp.Diff([]string(nil), w.take()); diff != "" {
				t.Errorf("done in the pass after it (-want +got):\n%s", diff)
			}
		})
	}
}

// lateClient has not heard yet of an edit when an extension is read for the first time.
type lateClient struct {
	client.Client

	ext  *ocv1.ClusterExtension
	read bool
}

func (c *lateClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if ext, ok := into.(*ocv1.ClusterExtension); ok && !c.read {
		c.read = true
		c.ext.DeepCopyInto(ext)
		return nil
	}
	return c.Client.Get(ctx, key, into, options...)
}
