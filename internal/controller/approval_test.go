package controller

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

const (
	oneDigest   = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	otherDigest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"

	unknownImage = "unknown"
)

// offer is what a catalog offers: versions, each of which upgrades all that are lower.
type offer struct {
	image    string // of all of them, without the repository
	versions []string
}

func skipping(image string, versions ...string) offer { return offer{image: image, versions: versions} }

func (o offer) ref() string { return "registry.test/p" + o.image }

func (o offer) catalog() resolve.Catalog {
	versions := o.versions
	pkg := resolve.Package{Name: "p", Channels: []resolve.Channel{{Name: "stable"}}}
	for i, version := range versions {
		pkg.Bundles = append(pkg.Bundles, resolve.Bundle{Name: "p.v" + version, Version: version, Image: o.ref()})
		entry := resolve.Entry{Name: "p.v" + version}
		if i > 0 {
			entry.Replaces = "p.v" + versions[i-1]
		}
		for _, lower := range versions[:max(i-1, 0)] {
			if entry.Skips == nil {
				entry.Skips = &resolve.Skips{}
			}
			entry.Skips.Bundles = append(entry.Skips.Bundles, "p.v"+lower)
		}
		pkg.Channels[0].Entries = append(pkg.Channels[0].Entries, entry)
	}
	return resolve.Catalog{Name: "c", Package: resolve.Prepare(pkg)}
}

func TestAgreedTarget(t *testing.T) {
	t.Parallel()
	manual := func(version, digest string) Approval { return Approval{Manual: true, Version: version, Digest: digest} }
	tests := map[string]struct {
		reason    string
		approval  Approval
		growth    bool
		policy    resolve.Policy
		versions  string
		inputs    string
		installed string
		image     string // of what is installed; that of the catalog if empty
		catalog   offer
		action    Action
		version   string
		pending   string
		digest    string
		refusal   string
		err       string
	}{
		"automatic": {
			reason:    "nobody is asked",
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0"), action: Upgrade, version: "1.1.0",
		},
		"automatic, and approved": {
			reason:   "an approval that nobody asks for decides nothing",
			approval: Approval{Version: "1.1.0"}, installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0", "1.2.0"), action: Upgrade, version: "1.2.0",
		},
		"first installation": {
			reason: "who creates an extension has agreed to it", approval: manual("", ""),
			catalog: skipping(":v", "1.0.0", "1.1.0"), action: Install, version: "1.1.0",
		},
		"first installation of another version": {
			reason: "it begins with what is agreed to", approval: manual("1.0.0", ""),
			catalog: skipping(":v", "1.0.0", "1.1.0"), action: Install, version: "1.0.0",
		},
		"first installation of what there is not": {
			reason: "nothing else is installed in its place", approval: manual("1.0.5", ""),
			catalog: skipping(":v", "1.0.0", "1.1.0"), action: None,
			err: `version "1.0.5" is approved, and no catalog leads to it; "p.v1.1.0" version "1.1.0" is not approved`,
		},
		"first installation of another image": {
			reason: "content is agreed to", approval: manual("1.1.0", oneDigest),
			catalog: skipping("@"+otherDigest, "1.1.0"), action: None,
			err: `version "1.1.0" is approved with the image ` + oneDigest + `, and its image is ` + otherDigest + `; "p.v1.1.0" version "1.1.0" is not approved`,
		},
		"upgrade": {
			reason: "it waits", approval: manual("", ""),
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0"), action: Keep, version: "1.0.0", pending: "1.1.0",
		},
		"upgrade that is agreed to": {
			reason: "it goes", approval: manual("1.1.0", ""),
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0"), action: Upgrade, version: "1.1.0",
		},
		"upgrade after the one that is agreed to": {
			reason: "an approval is no range", approval: manual("1.1.0", ""),
			installed: "1.1.0", catalog: skipping(":v", "1.1.0", "1.2.0"), action: Keep, version: "1.1.0", pending: "1.2.0",
		},
		"a newer version, and the one that is agreed to can be reached": {
			reason: "what is agreed to is done", approval: manual("1.1.0", ""),
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0", "1.2.0"), action: Upgrade, version: "1.1.0",
		},
		"a newer version, and the one that is agreed to is gone": {
			reason: "both are told", approval: manual("1.1.0", ""),
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.2.0"), action: Keep, version: "1.0.0", pending: "1.2.0",
			refusal: `version "1.1.0" is approved, and no catalog leads to it from what is installed`,
		},
		"an approval of what the spec does not want": {
			reason: "the range of the spec holds", approval: manual("1.1.0", ""), versions: "1.2.x || 1.0.0",
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0", "1.2.0"), action: Keep, version: "1.0.0", pending: "1.2.0",
			refusal: `version "1.1.0" is approved, and spec.source.catalog.version "1.2.x || 1.0.0" leaves it out`,
		},
		"no version": {
			reason: "it can be no bundle's, and nothing that was meant", approval: manual("latest", ""),
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0"), action: Keep, version: "1.0.0", pending: "1.1.0",
		},
		"an approval from before": {
			reason: "it does not lead back", approval: manual("1.0.0", ""), policy: resolve.SelfCertified,
			installed: "1.1.0", catalog: skipping(":v", "1.0.0", "1.1.0", "1.2.0"), action: Keep, version: "1.1.0", pending: "1.2.0",
		},
		"a downgrade": {
			reason: "it waits as any other", approval: manual("", ""), policy: resolve.SelfCertified, versions: "1.0.0",
			installed: "1.1.0", catalog: skipping(":v", "1.0.0", "1.1.0"), action: Keep, version: "1.1.0", pending: "1.0.0",
		},
		"a downgrade that is agreed to": {
			reason: "the spec wants it, and somebody agrees", approval: manual("1.0.0", ""), policy: resolve.SelfCertified, versions: "1.0.0",
			installed: "1.1.0", catalog: skipping(":v", "1.0.0", "1.1.0"), action: Upgrade, version: "1.0.0",
		},
		"another image of the same version": {
			reason: "it is other content", approval: manual("1.0.0", oneDigest), image: "registry.test/p@" + oneDigest,
			installed: "1.0.0", catalog: skipping("@"+otherDigest, "1.0.0"), action: Keep, version: "1.0.0", pending: "1.0.0", digest: otherDigest,
			refusal: `version "1.0.0" is approved with the image ` + oneDigest + `, and its image is ` + otherDigest,
		},
		"the same image somewhere else": {
			reason: "it is no other content", approval: manual("", ""), image: "mirror.test/p@" + oneDigest,
			installed: "1.0.0", catalog: skipping("@"+oneDigest, "1.0.0"), action: Upgrade, version: "1.0.0",
		},
		"an image that is not known": {
			reason: "whoever only explains does not know it", approval: manual("", ""), image: unknownImage,
			installed: "1.0.0", catalog: skipping(":v", "1.0.0"), action: Upgrade, version: "1.0.0",
		},
		"the image that is agreed to": {
			reason: "it goes", approval: manual("1.1.0", oneDigest),
			installed: "1.0.0", catalog: skipping("@"+oneDigest, "1.0.0", "1.1.0"), action: Upgrade, version: "1.1.0",
		},
		"another image than is agreed to": {
			reason: "both are told", approval: manual("1.1.0", oneDigest),
			installed: "1.0.0", catalog: skipping("@"+otherDigest, "1.0.0", "1.1.0"), action: Keep, version: "1.0.0", pending: "1.1.0", digest: otherDigest,
			refusal: `version "1.1.0" is approved with the image ` + oneDigest + `, and its image is ` + otherDigest,
		},
		"a release": {
			reason: "it is chosen, and not another one of the version", approval: manual("1.1.0+1", ""),
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0", "1.1.0+1", "1.1.0+2"), action: Upgrade, version: "1.1.0+1",
		},
		"no release, of a version with some": {
			reason: "no later release was agreed to", approval: manual("1.1.0", ""),
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0", "1.1.0+1"), action: Upgrade, version: "1.1.0",
		},
		"a release of what is installed": {
			reason: "it is later", approval: manual("1.0.0+1", ""),
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.0.0+1", "1.0.0+2"), action: Upgrade, version: "1.0.0+1",
		},
		"a release that is gone": {
			reason: "no other one was agreed to", approval: manual("1.1.0+1", ""),
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0", "1.1.0+2"), action: Keep, version: "1.0.0", pending: "1.1.0+2",
			refusal: `version "1.1.0+1" is approved, and no catalog leads to it from what is installed`,
		},
		"an earlier version, with another image than is agreed to": {
			reason: "what is in the way is told", approval: manual("1.1.0", oneDigest),
			installed: "1.0.0", catalog: skipping("@"+otherDigest, "1.0.0", "1.1.0", "1.2.0"), action: Keep, version: "1.0.0", pending: "1.2.0", digest: otherDigest,
			refusal: `version "1.1.0" is approved with the image ` + oneDigest + `, and its image is ` + otherDigest,
		},
		"an image by tag": {
			reason: "what it stands for is looked at when it was pulled", approval: manual("1.1.0", oneDigest),
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0"), action: Upgrade, version: "1.1.0",
		},
		"other configuration": {
			reason: "who changes it has agreed to that, and to nothing else", approval: manual("", ""), inputs: inputsOther,
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0"), action: Upgrade, version: "1.0.0", pending: "1.1.0",
		},
		"with a policy for rights": {
			reason: "what the upgrade grants is found out before it waits", approval: manual("", ""), growth: true,
			installed: "1.0.0", catalog: skipping(":v", "1.0.0", "1.1.0"), action: Upgrade, version: "1.1.0", pending: "1.1.0",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wanted := Wanted{
				Request:   resolve.Request{Package: "p", Range: mustRange(t, tc.versions), Policy: tc.policy},
				Approval:  tc.approval,
				Preflight: preflight.Policy{Growth: preflight.Growth{Approve: tc.growth}},
				Inputs:    inputsNow,
			}
			observed := Observed{Catalogs: []resolve.Catalog{tc.catalog.catalog()}}
			if tc.installed != "" {
				is := &installation.Revision{Bundle: identity(tc.installed), Image: cmp.Or(tc.image, tc.catalog.ref()), Inputs: inputsNow}
				if tc.image == unknownImage {
					is.Image = ""
				}
				if tc.inputs != "" {
					is.Inputs = tc.inputs
				}
				observed.Installation.Installed = is
			}
			got := decide(wanted, nil, observed)
			if got.Action != tc.action || tc.version != "" && got.Bundle != identity(tc.version) {
				t.Errorf("%s: %s %q, want %s %q", tc.reason, got.Action, got.Bundle.Version, tc.action, tc.version)
			}
			if (got.Err != nil) != (tc.err != "") || got.Err != nil && !strings.Contains(got.Err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %q", tc.reason, got.Err, tc.err)
			}
			pending := PendingError{}
			if got.Pending != nil {
				pending = *got.Pending
			}
			if pending.Bundle.Version != tc.pending || pending.Digest != tc.digest || pending.Refusal != tc.refusal {
				t.Errorf("%s: pending is %+v", tc.reason, got.Pending)
			}
			if got.isWithheld() != tc.growth {
				t.Errorf("%s: withheld is %t", tc.reason, got.isWithheld())
			}
		})
	}
}

// A catalog offers under the approved version what another catalog, which comes first, has with
// another image.
func TestApprovedImageOfAnotherCatalog(t *testing.T) {
	t.Parallel()
	first, second := skipping("@"+otherDigest, "1.0.0", "1.1.0").catalog(), skipping("@"+oneDigest, "1.0.0", "1.1.0").catalog()
	first.Priority, second.Name = 1, "d"
	wanted := Wanted{
		Request:  resolve.Request{Package: "p", Range: mustRange(t, "")},
		Approval: Approval{Manual: true, Version: "1.1.0", Digest: oneDigest}, Inputs: inputsNow,
	}
	observed := Observed{Catalogs: []resolve.Catalog{first, second}}
	observed.Installation.Installed = &installation.Revision{Bundle: identity("1.0.0"), Image: "registry.test/p@" + otherDigest, Inputs: inputsNow}
	if got := decide(wanted, nil, observed); got.Action != Upgrade || digestOfImage(got.Image) != oneDigest {
		t.Errorf("%s %s, want what was agreed to", got.Action, got.Image)
	}
}

// manualWorld has an extension with version 1.0.0, of which each upgrade waits.
func manualWorld(t *testing.T, change func(*ocv1.ClusterExtension)) *world {
	t.Helper()
	w := sampleWorld(t)
	w.editSpec(t, func(ext *ocv1.ClusterExtension) {
		ext.Spec.Source.Catalog.UpgradeApproval = ocv1.UpgradeApprovalManual
		change(ext)
	})
	w.installation.Installed = installed("1.0.0")
	w.installation.Installed.Inputs = digestOf(nil)
	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	return w
}

// editSpec is what a person does: the API server counts generations, and the fake client does
// not.
func (w *world) editSpec(t *testing.T, change func(*ocv1.ClusterExtension)) {
	t.Helper()
	ext := w.extension(t)
	change(ext)
	ext.Generation++
	if err := w.client.Update(t.Context(), ext); err != nil {
		t.Fatal(err)
	}
}

// TestManualUpgradeWaits has an upgrade wait, be approved, and the one after it wait again.
func TestManualUpgradeWaits(t *testing.T) {
	t.Parallel()
	w := manualWorld(t, func(*ocv1.ClusterExtension) {})
	result, err := w.reconcile(t)
	if err != nil || !result.IsZero() {
		t.Errorf("got %+v, error %v: nothing is to be tried again", result, err)
	}
	if diff := gocmp.Diff([]string{"repair", "fetch registry.test/p:v1.1.0", "foresee 1.1.0", "close"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	began := metav1.NewTime(w.reconciler.Now())
	waits := func(version string, since metav1.Time) {
		t.Helper()
		status := w.extension(t).Status
		want := &ocv1.PendingUpgrade{
			Bundle: ocv1.BundleMetadata{Name: "p.v" + version, Version: version}, Since: since,
			PlanSummary: `1 to create; create ConfigMap "made-by-` + version + `"`,
		}
		if diff := gocmp.Diff(want, status.Pending); diff != "" {
			t.Errorf("pending (-want +got):\n%s", diff)
		}
		ready := meta.FindStatusCondition(status.Conditions, ocv1.TypeReady)
		told := `the upgrade to version "` + version + `" waits for approval; to agree, set spec.source.catalog.approvedVersion to "` + version + `"; ` +
			"`kubectl extension approve x` does so"
		if ready.Status != metav1.ConditionTrue || ready.Reason != ocv1.ReasonApprovalPending || !strings.Contains(ready.Message, told) {
			t.Errorf("Ready is %+v", ready)
		}
		progressing := meta.FindStatusCondition(status.Conditions, ocv1.TypeProgressing)
		if progressing.Status != metav1.ConditionTrue || progressing.Reason != ocv1.ReasonSucceeded {
			t.Errorf("Progressing is %+v", progressing)
		}
	}
	waits("1.1.0", began)

	w.passed, w.writes = time.Hour, nil
	w.mustReconcile(t)
	if len(w.writes) > 0 {
		t.Errorf("a pass over what waits has written %v", w.writes)
	}
	waits("1.1.0", began)

	w.catalog["p"] = skipping(":v", "1.0.0", "1.1.0", "1.2.0").catalog().Package
	w.events = nil
	w.mustReconcile(t)
	w.mustReconcile(t)
	waits("1.2.0", metav1.NewTime(w.reconciler.Now()))
	if len(w.events) != 1 || !strings.HasPrefix(w.events[0], "Normal ApprovalPending: ") {
		t.Errorf("a new target has the events %q", w.events)
	}

	w.take()
	w.editSpec(t, func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog.ApprovedVersion = "1.1.0" })
	w.mustReconcile(t)
	if diff := gocmp.Diff([]string{"fetch registry.test/p:v", "apply 1.1.0", "write", "close", "fetch registry.test/p:v", "foresee 1.2.0", "close"}, w.take()); diff != "" {
		t.Errorf("done when it was approved (-want +got):\n%s", diff)
	}
	waits("1.2.0", metav1.NewTime(w.reconciler.Now()))
}

// TestPendingIsKeptWhileNothingCanBeChosen: that a catalog is away says nothing of what waits.
func TestPendingIsKeptWhileNothingCanBeChosen(t *testing.T) {
	t.Parallel()
	w := manualWorld(t, func(*ocv1.ClusterExtension) {})
	w.mustReconcile(t)
	before := w.extension(t).Status.Pending
	w.passed, w.catalogErr = time.Hour, errors.New("the catalog is away")
	w.mustReconcile(t)
	if diff := gocmp.Diff(before, w.extension(t).Status.Pending); diff != "" {
		t.Errorf("pending (-before +after):\n%s", diff)
	}
	w.edit(t)
	_, _ = w.reconcile(t)
	if pending := w.extension(t).Status.Pending; pending != nil {
		t.Errorf("another spec has pending %+v", pending)
	}
}

// TestImageThatIsNotApprovedWaits has the tag of an image stand for something else.
func TestImageThatIsNotApprovedWaits(t *testing.T) {
	t.Parallel()
	w := manualWorld(t, func(ext *ocv1.ClusterExtension) {
		ext.Spec.Source.Catalog.ApprovedVersion, ext.Spec.Source.Catalog.ApprovedDigest = "1.1.0", oneDigest
	})
	w.mustReconcile(t)
	if diff := gocmp.Diff([]string{"fetch registry.test/p:v1.1.0", "repair", "close", "fetch registry.test/p:v1.1.0", "foresee 1.1.0", "close"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	status := w.extension(t).Status
	ready := meta.FindStatusCondition(status.Conditions, ocv1.TypeReady)
	const is = "sha256:registry.test/p:v1.1.0"
	if ready.Reason != ocv1.ReasonApprovalPending || !strings.Contains(ready.Message, oneDigest) || !strings.Contains(ready.Message, is) {
		t.Errorf("Ready is %+v", ready)
	}
	if status.Pending == nil || status.Pending.Digest != is {
		t.Errorf("pending is %+v", status.Pending)
	}
	if _, err := w.reconcileInTime(t); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]string{"repair"}, w.take()); diff != "" {
		t.Errorf("done in a pass that nobody has asked for (-want +got):\n%s", diff)
	}
}

// TestOneApprovalAnswersBoth has an upgrade wait that gives the operator more rights, where
// each upgrade waits.
func TestOneApprovalAnswersBoth(t *testing.T) {
	t.Parallel()
	growth := &ocv1.ClusterExtensionInstallConfig{Preflight: &ocv1.PreflightConfig{
		Permissions: &ocv1.PermissionsPreflightConfig{Growth: ocv1.PermissionGrowthApprove},
	}}
	w := manualWorld(t, func(ext *ocv1.ClusterExtension) { ext.Spec.Install = growth })
	w.preflight = func(policy preflight.Policy) error {
		if policy.Growth.Withheld || policy.Growth.Approved != "1.1.0" {
			return &preflight.ApprovalError{Version: "1.1.0", Gains: []permission.Gain{{Subject: "s", Role: "all"}}}
		}
		return nil
	}
	w.mustReconcile(t)
	w.mustReconcile(t)
	if diff := gocmp.Diff([]string{"fetch registry.test/p:v1.1.0", "apply 1.1.0", "repair", "close", "fetch registry.test/p:v1.1.0", "foresee 1.1.0", "close", "fetch registry.test/p:v1.1.0", "apply 1.1.0", "repair", "close"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	status := w.extension(t).Status
	ready := meta.FindStatusCondition(status.Conditions, ocv1.TypeReady)
	if ready.Reason != ocv1.ReasonApprovalPending || !strings.Contains(ready.Message, "would gain: s: Namespace") || !strings.Contains(ready.Message, "spec.source.catalog.approvedVersion") {
		t.Errorf("Ready is %+v", ready)
	}
	if status.Pending == nil || status.Pending.Digest != "sha256:registry.test/p:v1.1.0" {
		t.Errorf("pending is %+v", status.Pending)
	}
	w.editSpec(t, func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog.ApprovedVersion = "1.1.0" })
	w.mustReconcile(t)
	if got := w.extension(t).Status; got.Install.Bundle.Version != "1.1.0" || got.Pending != nil {
		t.Errorf("status is %+v", got)
	}
}
