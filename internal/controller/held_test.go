package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
)

// TestHeldExtensionsTellOfTheirWorkloads: as long as a deletion is held up, what is installed is
// looked after, and what is told of it is true.
func TestHeldExtensionsTellOfTheirWorkloads(t *testing.T) {
	t.Parallel()
	inUse := [][]installation.Use{{{Definition: "things.p", Count: 1}}}
	for name, tc := range map[string]struct {
		uses      [][]installation.Use
		suspend   bool
		others    []string // finalizers
		available string
		suspended bool
		told      string
	}{
		"a workload is gone": {uses: inUse, available: "False Unavailable"},
		"nobody repairs it": {
			uses: inUse, suspend: true, available: "False Unavailable", suspended: true,
			told: "; what is installed is not repaired, as the extension is suspended",
		},
		"nobody looks at it any more": {others: []string{"somebody.else/holds"}, available: "False Unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := sampleExtension()
			ext.Finalizers = append(slices.Clone(finalizers), tc.others...)
			ext.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
			ext.Spec.Suspend = tc.suspend
			ext.Status.Conditions = []metav1.Condition{
				{Type: ocv1.TypeAvailable, Status: metav1.ConditionTrue, Reason: ocv1.ReasonAvailable, Message: "all workloads are available"},
			}
			if !tc.suspend { // it was
				ext.Status.Conditions = append(ext.Status.Conditions, metav1.Condition{Type: ocv1.TypeSuspended, Status: metav1.ConditionTrue, Reason: ocv1.ReasonUserRequested})
			}
			w := newWorld(t, ext)
			w.reconciler.UninstallPolicy = UninstallRefuseWhileInUse
			w.uses, w.installation.Installed = tc.uses, installed("1.0.0")
			w.workloads = []health.Workload{{Key: keyOf("Deployment", "ns", "d"), Available: metav1.ConditionFalse, Reason: "it is gone"}}
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			conditions := w.extension(t).Status.Conditions
			available := meta.FindStatusCondition(conditions, ocv1.TypeAvailable)
			if got := string(available.Status) + " " + available.Reason; got != tc.available {
				t.Errorf("Available is %s %q, want %s", got, available.Message, tc.available)
			}
			if is := meta.IsStatusConditionTrue(conditions, ocv1.TypeSuspended); is != tc.suspended {
				t.Errorf("Suspended is %t", is)
			}
			ready := meta.FindStatusCondition(conditions, ocv1.TypeReady)
			if !strings.HasSuffix(ready.Message, tc.told) || tc.told == "" && strings.Contains(ready.Message, "suspended") {
				t.Errorf("Ready is %+v", ready)
			}
		})
	}
}

// TestContentThatGoesIsNotLookedAt: nothing is told of it any more.
func TestContentThatGoesIsNotLookedAt(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeAvailable, Status: metav1.ConditionTrue, Reason: ocv1.ReasonAvailable}}
	status := terminating(ext, uninstallProgress{reason: ocv1.ReasonTerminating, text: "goes"}, time.Unix(1000, 0))
	if available := meta.FindStatusCondition(status.Conditions, ocv1.TypeAvailable); available.Status != metav1.ConditionUnknown || available.Message != messageNotLookedAt {
		t.Errorf("Available is %+v", available)
	}
	ext.Status.Conditions = nil
	status = terminating(ext, uninstallProgress{reason: ocv1.ReasonTerminating, text: "goes"}, time.Unix(1000, 0))
	if available := meta.FindStatusCondition(status.Conditions, ocv1.TypeAvailable); available != nil {
		t.Errorf("of what was never looked at, Available is %+v", available)
	}
}
