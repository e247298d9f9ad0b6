package controller

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// lonely is a client that does not say which other extensions there are.
type lonely struct{ client.Client }

func (l lonely) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*ocv1.ClusterExtensionList); ok {
		return apierrors.NewForbidden(schema.GroupResource{Group: ocv1.GroupVersion.Group, Resource: "clusterextensions"}, "", nil)
	}
	return l.Client.List(ctx, list, options...)
}

// Which other extensions there are matters to those alone who require some: to
// people who ask, and in a pass.
func TestWhatIsNotKnownMattersOnlyToWhoRequiresIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		requires []*requirement.Property
		fails    bool
	}{
		"nothing is required": {},
		"another package is":  {requires: []*requirement.Property{needsPackage("other", "1.x")}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldWith(t)
			w.catalog["p"] = stating("p", map[string][]*requirement.Property{"1.0.0": test.requires}, "1.0.0")
			w.reconciler.Client = lonely{Client: w.client}
			w.reconciler.Neighbours = NewNeighbours(w.reconciler.Client, w)
			found, err := w.reconciler.Explain(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			if (found.Err != nil) != test.fails || (found.Resolution == nil) != test.fails {
				t.Errorf("resolution %v, error %v, want one: %t", found.Resolution, found.Err, test.fails)
			}
			if len(found.Unknown) != 1 || !strings.HasPrefix(found.Unknown[0], "error listing ClusterExtensions: ") {
				t.Errorf("unknown %q, want the other extensions", found.Unknown)
			}
			_, _ = w.reconcile(t)
			if applied := cmp.Diff([]string{"fetch registry.test/p:v1.0.0", "apply 1.0.0", "write", "close"}, w.take()); (applied != "") != test.fails {
				t.Errorf("(-want +did, if it did not have to fail)\n%s", applied)
			}
		})
	}
}

// What waits for approval, or is not done because the extension is suspended, is what would be
// chosen, and why it is not done is reported.
func TestExplainTellsOfWhatWaits(t *testing.T) {
	t.Parallel()
	w := manualWorld(t, func(*ocv1.ClusterExtension) {})
	w.mustReconcile(t)
	ask := func(report string, waits ...string) {
		t.Helper()
		found, err := w.reconciler.Explain(t.Context(), "x")
		if err != nil || found.Resolution == nil || found.Resolution.Identity.Version != "1.1.0" || !strings.Contains(found.Reported, report) {
			t.Errorf("%+v, reported %q, error %v; want 1.1.0, and %q", found.Resolution, found.Reported, err, report)
		}
		w.take()
		plan, err := w.reconciler.Plan(t.Context(), w.extension(t))
		if diff := cmp.Diff([]string{"fetch registry.test/p:v1.1.0", "close"}, w.take()); err != nil || len(plan.Objects) == 0 || diff != "" {
			t.Errorf("%d objects, error %v (-want +did)\n%s", len(plan.Objects), err, diff)
		}
		for _, part := range waits {
			if !strings.Contains(plan.Waits, part) {
				t.Errorf("the plan waits for %q, want %q", plan.Waits, part)
			}
		}
	}
	const approval = `the upgrade to version "1.1.0" waits for approval`
	ask(approval, approval)
	w.editSpec(t, suspend)
	w.mustReconcile(t)
	ask("suspended since ", "the extension is suspended, until spec.suspend is removed; "+approval)
	w.editSpec(t, func(ext *ocv1.ClusterExtension) {
		ext.Spec.Suspend, ext.Spec.Source.Catalog.ApprovedVersion = false, "1.1.0"
	})
	if plan, err := w.reconciler.Plan(t.Context(), w.extension(t)); err != nil || plan.Waits != "" || plan.Preflight.Growth.Approved != "1.1.0" {
		t.Errorf("the plan waits for %q, with a policy %+v, error %v: it was approved", plan.Waits, plan.Preflight, err)
	}
}

// TestPlanWithPlaceholder is F3: a caBundle without a certificate is left out, and the plan reports it.
func TestPlanWithPlaceholder(t *testing.T) {
	t.Parallel()
	w := worldWith(t)
	w.catalog["p"] = stating("p", nil, "1.0.0")
	files := testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()
	text := strings.Replace(string(files["manifests/crd.yaml"].Data), "\nspec:\n", "\nspec:\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], "+
		"clientConfig: {caBundle: Cg==, service: {name: w, namespace: system}}}}\n", 1)
	files["manifests/crd.yaml"] = &fstest.MapFile{Data: []byte(text)}
	w.files = files
	plan, err := w.reconciler.Plan(t.Context(), w.extension(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`CustomResourceDefinition "things.p.test": spec.conversion.webhook.clientConfig.caBundle contains no certificate and is left out`}
	if diff := cmp.Diff(want, plan.Warnings); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, object := range plan.Objects {
		if _, has, _ := unstructured.NestedString(object.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle"); has {
			t.Errorf("%s still has it", object.GetName())
		}
	}
}

// A plan has the objects of what would be installed, and nothing of it comes true.
func TestPlan(t *testing.T) {
	t.Parallel()
	w := worldWith(t)
	w.catalog["p"] = resolve.Prepare(resolve.Package{Name: "p"})
	ext := w.extension(t)
	plan, err := w.reconciler.Plan(t.Context(), ext)
	if err != nil || plan.Err == nil || plan.Objects != nil {
		t.Errorf("%d objects of nothing, error %v, want why there are none: %v", len(plan.Objects), err, plan.Err)
	}
	w.catalog["p"] = stating("p", nil, "1.0.0")
	ext.Name = "not-there" // such as in a file
	plan, err = w.reconciler.Plan(t.Context(), ext)
	if err != nil || plan.Resolution == nil || len(plan.Objects) == 0 {
		t.Errorf("%d objects, resolution %v, error %v", len(plan.Objects), plan.Resolution, err)
	}
	if diff := cmp.Diff(object.Owner{Name: "not-there", Package: "p", UID: ext.UID, Namespace: "ns", ServiceAccount: "sa"}, plan.Owner); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"fetch registry.test/p:v1.0.0", "close"}, w.take()); diff != "" {
		t.Errorf("(-want +did)\n%s", diff)
	}
	if len(w.writes) > 0 {
		t.Errorf("writes %q", w.writes)
	}
}
