package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func growthApprove(ext *ocv1.ClusterExtension) {
	ext.Spec.Install = &ocv1.ClusterExtensionInstallConfig{Preflight: &ocv1.PreflightConfig{
		Permissions: &ocv1.PermissionsPreflightConfig{Growth: ocv1.PermissionGrowthApprove},
	}}
}

// What waits is an upgrade, and what is refused for its rights is another configuration of what
// is installed: the digest of the one is not that of the other.
func TestPendingHasItsOwnDigest(t *testing.T) {
	t.Parallel()
	w := manualWorld(t, growthApprove)
	w.installation.Installed.Inputs = inputsOther // the configuration was changed
	w.preflight = func(policy preflight.Policy) error {
		if policy.Growth.Approved == "" {
			return &preflight.ApprovalError{Version: "1.0.0", Gains: []permission.Gain{{Subject: "s", Role: "of the configuration"}}}
		}
		return nil
	}
	w.mustReconcile(t)
	status := w.extension(t).Status
	ready := meta.FindStatusCondition(status.Conditions, ocv1.TypeReady)
	if status.Pending == nil || status.Pending.Bundle.Version != "1.1.0" {
		t.Fatalf("pending is %+v", status.Pending)
	}
	if strings.Contains(status.Pending.Digest, "v1.0.0") {
		t.Errorf("pending is version 1.1.0 with the digest of what is installed: %+v", status.Pending)
	}
	if strings.Contains(ready.Message, `the upgrade to version "1.1.0" waits for approval, as the operator would gain: s: Namespace "": of the configuration`) {
		t.Errorf("rights of another configuration are said to be those of the upgrade: %s", ready.Message)
	}
	if !strings.Contains(ready.Message, "the change of spec.config waits, too") {
		t.Errorf("nothing tells that the configuration waits: %s", ready.Message)
	}
	w.take()
	if _, err := w.reconcileInTime(t); err != nil {
		t.Fatal(err)
	}
	if did := w.take(); slices.Contains(did, "apply 1.0.0") {
		t.Errorf("did %q, although nothing has changed", did)
	}
}

// An approval of the catalog source answers both, and a plan is to know that.
func TestPlanKnowsOfTheApproval(t *testing.T) {
	t.Parallel()
	w := manualWorld(t, func(ext *ocv1.ClusterExtension) {
		growthApprove(ext)
		ext.Spec.Source.Catalog.ApprovedVersion = "1.1.0"
	})
	w.editStatusInstalled(t)
	plan, err := w.reconciler.Plan(t.Context(), w.extension(t))
	if err != nil {
		t.Fatal(err)
	}
	if plan.Preflight.Growth.Waits(plan.Resolution.Identity.Version, true) {
		t.Error("what is approved is planned to wait for approval")
	}
}

func (w *world) editStatusInstalled(t *testing.T) {
	t.Helper()
	ext := w.extension(t)
	ext.Status.Install = &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Name: "p.v1.0.0", Version: "1.0.0"}}
	if err := w.client.Status().Update(t.Context(), ext); err != nil {
		t.Fatal(err)
	}
}

// An approval without a digest is for the way to a version. When that is installed, another image
// under its name is something else to agree to.
func TestUsedApprovalIsNotForAnotherImage(t *testing.T) {
	t.Parallel()
	wanted := Wanted{
		Request:  resolve.Request{Package: "p", Range: mustRange(t, "")},
		Approval: Approval{Manual: true, Version: "1.1.0"}, Inputs: inputsNow,
	}
	observed := Observed{Catalogs: []resolve.Catalog{skipping("@"+otherDigest, "1.1.0").catalog()}}
	observed.Installation.Installed = &installation.Revision{
		Bundle: identity("1.1.0"), Image: "registry.test/p@" + oneDigest, Digest: oneDigest, Inputs: inputsNow,
	}
	if got := decide(wanted, nil, observed); got.Action != Keep || got.Pending == nil {
		t.Errorf("%s %s, pending %+v: nobody has agreed to this image", got.Action, got.Image, got.Pending)
	}
}

// Somebody takes an approval back while a pass checks what it would write, after a try that has
// failed.
func TestApprovalThatIsTakenBackBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	w := manualWorld(t, func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog.ApprovedVersion = "1.1.0" })
	w.preflight = func(preflight.Policy) error { return errors.New("the API server is busy") }
	_, _ = w.reconcile(t)
	w.take()
	w.preflight = func(preflight.Policy) error {
		w.editSpec(t, func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog.ApprovedVersion = "" })
		return nil
	}
	w.passed = time.Hour
	if _, err := w.reconciler.Reconcile(t.Context(), requestFor("x")); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if did := w.take(); slices.Contains(did, "write") {
		t.Errorf("did %q, although nobody agrees to it any more", did)
	}
}

// A deletion that is held up goes on as ever while the extension is suspended, and nothing is
// put back then either.
func TestNothingIsRepairedWhileSuspendedAndHeldUp(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.Spec.Suspend = true
	ext.Finalizers = append(slices.Clone(finalizers), ocv1.UninstallPolicyFinalizer)
	ext.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
	w := newWorld(t, ext)
	w.reconciler.UninstallPolicy = UninstallRefuseWhileInUse
	w.installation.Installed = &installation.Revision{}
	w.uses = [][]installation.Use{{{Definition: "widgets.p", Count: 1, First: []installation.StoredObject{storedWidget("a")}}}}
	_, _ = w.reconcile(t)
	if slices.Contains(w.did, "repair") {
		t.Errorf("did %q, although it is suspended", w.did)
	}
}

// What is told to be pending stays as it was told until something else is known.
func TestPendingStays(t *testing.T) {
	t.Parallel()
	since, now := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(1000, 0))
	next := Target{Action: Upgrade, Bundle: identity("1.1.0"), Image: "registry.test/p:v", Resolution: &resolve.Resolution{}}
	waits := &PendingError{Bundle: identity("1.1.0"), Image: next.Image, Manual: true}
	withheld, other := next, next
	withheld.Pending, other.Bundle = waits, identity("1.2.0")
	pinned := *waits
	pinned.Digest = otherDigest
	for name, tc := range map[string]struct {
		reason  string
		outcome Outcome
		anew    bool // the spec is another one
		want    *ocv1.PendingUpgrade
	}{
		"by tag, while suspended": {
			reason: "nothing was pulled", anew: true, outcome: Outcome{Suspended: &Suspension{Target: withheld}, Pending: waits},
			want: &ocv1.PendingUpgrade{Digest: oneDigest, Since: since},
		},
		"of another digest": {
			reason: "it is other content", outcome: Outcome{Target: withheld, Pending: &pinned},
			want: &ocv1.PendingUpgrade{Digest: otherDigest, Since: now},
		},
		"while it is pulled": {
			reason: "it waits whatever that is", anew: true, outcome: Outcome{Target: withheld, Waiting: true, Fetching: true},
			want: &ocv1.PendingUpgrade{Digest: oneDigest, Since: since},
		},
		"while it is pulled, for its rights": {
			reason: "whether they grow is not known yet, and nothing has changed", outcome: Outcome{Target: next, Waiting: true, Fetching: true},
			want: &ocv1.PendingUpgrade{Digest: oneDigest, Since: since},
		},
		"while it is pulled, after an edit": {
			reason: "somebody may have agreed to it", anew: true, outcome: Outcome{Target: next, Waiting: true, Fetching: true},
		},
		"while another one is pulled": {reason: "it is that one now", outcome: Outcome{Target: other, Waiting: true, Fetching: true}},
		"before the first write":      {reason: "it waits no more", outcome: Outcome{Target: next}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := &ocv1.ClusterExtension{}
			ext.Generation, ext.Status.ObservedGeneration = 2, 2
			if tc.anew {
				ext.Generation = 3
			}
			ext.Status.Pending = &ocv1.PendingUpgrade{Bundle: ocv1.BundleMetadata{Name: "p.v1.1.0", Version: "1.1.0"}, Digest: oneDigest, Since: since}
			if tc.want != nil {
				tc.want.Bundle = ext.Status.Pending.Bundle
			}
			tc.outcome.Installed = &installation.Revision{Bundle: identity("1.0.0")}
			if diff := cmp.Diff(tc.want, pendingOf(ext, tc.outcome, now)); diff != "" {
				t.Errorf("%s: pending (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
