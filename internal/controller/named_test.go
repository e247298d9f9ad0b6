package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

func TestTargetOfImage(t *testing.T) {
	t.Parallel()
	const (
		one   = "registry.test/p@sha256:1111111111111111111111111111111111111111111111111111111111111111"
		two   = "registry.test/p@sha256:2222222222222222222222222222222222222222222222222222222222222222"
		tag   = "registry.test/p:v1.0.0"
		moved = "mirror.test/p@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	)
	revision := func(image string) *installation.Revision {
		found := installed("1.0.0")
		found.Image, found.Digest = image, digestOfImage(one)
		return found
	}
	other := bundle.Identity{Package: "q", Name: "q.v1.0.0", Version: "1.0.0"}
	for name, test := range map[string]struct {
		image     string
		inputs    string
		named     namedBundle
		installed *installation.Revision
		anew      bool
		want      Target
		err       string
	}{
		"nothing is installed, and nobody has looked": {image: one, want: Target{Action: Install, Image: one}},
		"nothing is installed": {
			image: tag, named: namedBundle{image: tag, identity: identity("1.0.0"), digest: digestOfImage(one)},
			want: Target{Action: Install, Image: tag, Bundle: identity("1.0.0"), Digest: digestOfImage(one)},
		},
		"it is installed": {
			image: one, installed: revision(one),
			want: Target{Action: Keep, Image: one, Bundle: identity("1.0.0"), Digest: digestOfImage(one)},
		},
		"it is installed, by a tag that may have moved": {
			image: tag, installed: revision(tag),
			want: Target{Action: Keep, Image: tag, Bundle: identity("1.0.0"), Digest: digestOfImage(one)},
		},
		"a catalog has named it elsewhere": {
			image: one, installed: revision(moved),
			want: Target{Action: Keep, Image: one, Bundle: identity("1.0.0"), Digest: digestOfImage(one)},
		},
		"a tag, of which nobody knows what it is": {
			image: tag, installed: revision(one), want: Target{Action: Upgrade, Image: tag},
		},
		"a tag of what is installed": {
			image: tag, installed: revision(one), named: namedBundle{image: tag, identity: identity("1.0.0"), digest: digestOfImage(one)},
			want: Target{Action: Keep, Image: tag, Bundle: identity("1.0.0"), Digest: digestOfImage(one)},
		},
		"another image": {image: two, installed: revision(one), want: Target{Action: Upgrade, Image: two}},
		"another configuration": {
			image: one, installed: revision(one), inputs: inputsOther,
			want: Target{Action: Upgrade, Image: one, Bundle: identity("1.0.0"), Digest: digestOfImage(one)},
		},
		"once more": {
			image: one, installed: revision(one), anew: true,
			want: Target{Action: Upgrade, Image: one, Bundle: identity("1.0.0"), Digest: digestOfImage(one)},
		},
		"another package": {
			image: two, installed: revision(one), named: namedBundle{image: two, identity: other, digest: digestOfImage(two)},
			want: Target{Action: Keep, Image: one, Bundle: identity("1.0.0")},
			err:  `has a bundle of package "q", and package "p" is installed`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wanted := Wanted{Image: test.image, Inputs: inputsNow}
			if test.inputs != "" {
				wanted.Inputs = test.inputs
			}
			observed := Observed{Named: test.named, Installation: installation.State{Installed: test.installed, Unfinished: test.anew}}
			got := decide(wanted, nil, observed)
			err := got.Err
			got.Err, test.want.IsNamed = nil, true
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			invalid, isInvalid := errors.AsType[*InvalidSpecError](err)
			if (test.err != "") != isInvalid || isInvalid && !strings.Contains(invalid.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

// A tag stands for what it was until the spec changes, and for nothing that another image was. A
// digest stands for the same for ever, and so does a tag of what is installed.
func TestWhatAnImageStandsFor(t *testing.T) {
	t.Parallel()
	const tag, byDigest = "registry.test/p:v1", "registry.test/p@" + digestOne
	installed := func(image, digest string) *installation.Revision {
		return &installation.Revision{Bundle: identity("1.0.0"), Image: image, Digest: digest}
	}
	known := func(image string) namedBundle {
		return namedBundle{image: image, identity: identity("1.0.0"), digest: digestOne, generation: 1}
	}
	for name, test := range map[string]struct {
		image      string
		generation int64
		looked     namedBundle
		resolved   namedBundle
		installed  *installation.Revision
		want       string
	}{
		"nothing is known":                {image: tag, generation: 1},
		"a tag":                           {image: tag, generation: 1, looked: known(tag), want: digestOne},
		"a tag, by the status":            {image: tag, generation: 1, resolved: known(tag), want: digestOne},
		"a tag, after an edit":            {image: tag, generation: 2, looked: known(tag), resolved: known(tag)},
		"another image":                   {image: "registry.test/p:v2", generation: 1, looked: known(tag), resolved: known(tag)},
		"a digest, after an edit":         {image: byDigest, generation: 2, looked: known(byDigest), want: digestOne},
		"a tag that is installed":         {image: tag, generation: 2, installed: installed(tag, digestTwo), want: digestTwo},
		"a tag of what a catalog named":   {image: tag, generation: 2, resolved: known(tag), installed: installed("mirror.test/p:a", digestOne), want: digestOne},
		"a tag of what was there before":  {image: tag, generation: 2, resolved: known(tag), installed: installed("mirror.test/p:a", digestTwo)},
		"installed, of an unknown digest": {image: tag, generation: 2, resolved: known(tag), installed: installed("mirror.test/p:a", "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Reconciler
			wanted := Wanted{Image: test.image, Generation: test.generation, Resolved: test.resolved}
			wanted.Owner.Name = "e"
			r.named.Store("e", test.looked)
			if got := r.namedBy(wanted, test.installed); got.digest != test.want {
				t.Errorf("got %+v, want the digest %q", got, test.want)
			}
		})
	}
}

const (
	digestOne = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	digestTwo = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

// naming makes the extension of a world name an image, of which the registry has a digest.
func (w *world) naming(t *testing.T, ref, digest string) {
	t.Helper()
	w.digest = digest
	w.editSpec(t, func(ext *ocv1.ClusterExtension) {
		ext.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeBundle, Bundle: &ocv1.BundleSource{Ref: ref}}
	})
}

// TestTagOfANamedBundleOverARestart: what a tag stood for when it was looked up is what is gone
// on with, also by a process that has not looked.
func TestTagOfANamedBundleOverARestart(t *testing.T) {
	t.Parallel()
	const tag = "registry.test/q:v1"
	t.Run("nothing was written yet", func(t *testing.T) {
		t.Parallel()
		w := sampleWorld(t)
		w.naming(t, tag, digestOne)
		w.applyErr = errors.New("boom")
		_, _ = w.reconcile(t)
		if got := w.extension(t).Status.ResolvedSource; got == nil || got.Ref != tag || got.Digest != digestOne {
			t.Errorf("the status has %+v", got)
		}
		w.reconciler.named.Clear()
		w.digest, w.applyErr, w.did = digestTwo, nil, nil
		_, _ = w.reconcile(t)
		if !slices.Contains(w.take(), "fetch "+tag+" "+digestOne) || w.installation.Installed.Digest != digestOne {
			t.Errorf("installed is %+v", w.installation.Installed)
		}
	})
	t.Run("it is told before the first write", func(t *testing.T) {
		t.Parallel()
		w := sampleWorld(t)
		w.naming(t, tag, digestOne)
		w.fetching = true
		_, _ = w.reconcile(t)
		w.passed = slow
		_, _ = w.reconcile(t) // which says that the pull takes long
		w.fetching, w.began, w.applyErr = false, true, errors.New("boom")
		w.during = func(stage string) {
			if stage == "apply" && w.extension(t).Status.ResolvedSource == nil {
				t.Error("the status does not have the digest")
			}
		}
		_, _ = w.reconcile(t)
	})
	t.Run("a catalog has installed it", func(t *testing.T) {
		t.Parallel()
		w := sampleWorld(t)
		w.installation.Installed = installed("1.0.0")
		w.installation.Installed.Inputs, w.installation.Installed.Digest = digestOf(nil), digestOne
		w.naming(t, tag, digestOne)
		_, _ = w.reconcile(t)
		w.reconciler.named.Clear()
		w.digest, w.did = digestTwo, nil
		for range 2 { // the second after an edit that is none of the image
			_, _ = w.reconcile(t)
			w.editSpec(t, func(ext *ocv1.ClusterExtension) { ext.Spec.ProgressDeadlineMinutes = 20 })
		}
		if did := w.take(); !slices.Equal(did, []string{"repair", "repair"}) {
			t.Errorf("did %q", did)
		}
	})
}

// TestStatusOfADigestThatIsNone: what somebody wrote into the status in the place of a digest
// is not asked for.
func TestStatusOfADigestThatIsNone(t *testing.T) {
	t.Parallel()
	ext := &ocv1.ClusterExtension{}
	ext.Status.ResolvedSource = &ocv1.ResolvedBundleSource{Ref: "r", Digest: "v1"}
	if got := resolvedIn(ext); got != (namedBundle{}) {
		t.Errorf("got %+v", got)
	}
}

// TestVetoOfANamedBundle: the operator is asked when it is known what the image is, and not where
// that is another image of what is installed.
func TestVetoOfANamedBundle(t *testing.T) {
	t.Parallel()
	const ref, asked = "registry.test/p:new", "claims of p.v0.9.0"
	for name, test := range map[string]struct {
		installed string
		claim     metav1.ConditionStatus
		want      []string
		version   string
		ready     string
	}{
		"it objects": {
			installed: "0.9.0", claim: metav1.ConditionFalse, version: "0.9.0", want: []string{"fetch " + ref, asked, "repair", "close", asked, "repair"},
			ready: `the upgrade to "p.v1.0.0" version "1.0.0" is held`,
		},
		"it does not": {
			installed: "0.9.0", claim: metav1.ConditionTrue, version: "1.0.0",
			want: []string{"fetch " + ref, asked, "apply 1.0.0", "write", "close", "repair"},
		},
		"another image of the same": {
			installed: "1.0.0", claim: metav1.ConditionFalse, version: "1.0.0",
			want: []string{"fetch " + ref, "apply 1.0.0", "write", "close", "repair"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.installation.Installed = installed(test.installed)
			w.installation.Installed.Inputs, w.installation.Installed.OperatorCondition = digestOf(nil), "p.v"+test.installed
			w.claims = installation.Claims{Operator: &installation.Claim{Status: test.claim}}
			w.naming(t, ref, digestTwo)
			for range 2 {
				w.mustReconcile(t)
			}
			if did := w.take(); !slices.Equal(did, test.want) {
				t.Errorf("did %q, want %q", did, test.want)
			}
			if got := w.installation.Installed.Bundle.Version; got != test.version {
				t.Errorf("installed is %s", got)
			}
			if got := w.ready(t).Message; !strings.Contains(got, test.ready) {
				t.Errorf("Ready says %q", got)
			}
		})
	}
}

// TestPlanOfAnotherPackage has nothing chosen, and nothing built.
func TestPlanOfAnotherPackage(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.naming(t, "registry.test/p:v1", digestOne)
	ext := w.extension(t)
	ext.Status.Install = &ocv1.ClusterExtensionInstallStatus{PackageName: "q", Bundle: ocv1.BundleMetadata{Name: "q.v1.0.0", Version: "1.0.0"}}
	plan, err := w.reconciler.Plan(t.Context(), ext)
	if err != nil || plan.Resolution != nil || plan.Objects != nil || plan.Err == nil || !strings.Contains(plan.Err.Error(), `package "q" is installed`) {
		t.Errorf("%d objects of %+v, %v, error %v", len(plan.Objects), plan.Resolution, plan.Err, err)
	}
}

// TestRightsOfANamedBundleAreApprovedByDigest: a version is only what an image says of itself.
func TestRightsOfANamedBundleAreApprovedByDigest(t *testing.T) {
	t.Parallel()
	const ref = "registry.test/p:new"
	w := sampleWorld(t)
	w.installation.Installed = installed("0.9.0")
	w.installation.Installed.Inputs = digestOf(nil)
	w.preflight = func(policy preflight.Policy) error {
		if policy.Growth.Waits("1.0.0", true) {
			return &preflight.ApprovalError{Version: "1.0.0", Gains: []permission.Gain{{Subject: "s", Role: "r"}}}
		}
		return nil
	}
	w.naming(t, ref, digestOne)
	approve := func(version, digest string) {
		w.editSpec(t, func(ext *ocv1.ClusterExtension) {
			growthApprove(ext)
			ext.Spec.Install.Preflight.Permissions.ApprovedVersion, ext.Spec.Install.Preflight.Permissions.ApprovedDigest = version, digest
		})
	}
	for _, digest := range []string{"", digestTwo} {
		approve("1.0.0", digest)
		w.mustReconcile(t)
		pending := w.extension(t).Status.Pending
		if got := w.installation.Installed.Bundle.Version; got != "0.9.0" || pending == nil || pending.Digest != digestOne {
			t.Fatalf("approved is the digest %q, and %s is installed; pending is %+v", digest, got, pending)
		}
		want := `to agree, set spec.install.preflight.permissions.approvedVersion to "1.0.0" and approvedDigest to "` + digestOne + `"`
		if got := w.ready(t).Message; !strings.Contains(got, want) {
			t.Errorf("Ready says %q, want %q", got, want)
		}
	}
	// What it would do is found out from the image that waits.
	w.digest, w.did = digestTwo, nil
	w.reconciler.prospects.Clear()
	ext := w.extension(t)
	ext.Status.Pending.PlanSummary = ""
	if err := w.client.Status().Update(t.Context(), ext); err != nil {
		t.Fatal(err)
	}
	w.mustReconcile(t)
	if did := w.take(); !slices.Contains(did, "foresee 1.0.0") || slices.Contains(did, "fetch "+ref+" "+digestTwo) {
		t.Errorf("did %q", did)
	}
	w.digest = digestOne
	approve("1.0.0", digestOne)
	w.mustReconcile(t)
	if got := w.installation.Installed; got.Bundle.Version != "1.0.0" || got.Digest != digestOne {
		t.Errorf("installed is %+v", got)
	}
}

// A named bundle needs no catalog: that they may not be listed is not known, and no more.
func TestNamedBundleIsExplainedWithoutCatalogs(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.naming(t, "registry.test/p:v1", digestOne)
	w.reconciler.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // what newWorld made
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, isCatalogs := list.(*ocv1.ClusterCatalogList); isCatalogs {
				return errors.New("not you")
			}
			return c.List(ctx, list, options...)
		},
	})
	found, err := w.reconciler.ExplainExtension(t.Context(), w.extension(t))
	if err != nil || found.Image != "registry.test/p:v1" || !slices.Contains(found.Unknown, "listing ClusterCatalogs: not you") {
		t.Errorf("got image %q, not known %q, error %v", found.Image, found.Unknown, err)
	}
}
