package bundle_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

// scaffold is the label that the scaffold of operators sets on pods.
func scaffold() map[string]string { return map[string]string{"control-plane": "controller-manager"} }

// withWebhook is a bundle whose Deployment d0 serves a webhook, with the labels of the scaffold.
func withWebhook(change func(*bundle.Bundle)) *bundle.Bundle {
	b := withContainers(2, 1)
	b.CSV.Name = "p.v1.0.0"
	for i := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		labels := scaffold()
		if i > 0 {
			labels = map[string]string{"app": "other"}
		}
		spec := &b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i].Spec
		spec.Selector, spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	}
	b.CSV.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{
		Type: operatorsv1alpha1.ValidatingAdmissionWebhook, GenerateName: "v.p.test", DeploymentName: "d0", AdmissionReviewVersions: []string{"v1"},
	}}
	if change != nil {
		change(b)
	}
	return b
}

func firstDeployment(b *bundle.Bundle) *operatorsv1alpha1.StrategyDeploymentSpec {
	return &b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
}

func renderedOf(t *testing.T, b *bundle.Bundle) []*unstructured.Unstructured {
	t.Helper()
	objects, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace, Certificates: bundle.CertManager}))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestShared is F29: a Service of webhooks that selects pods of others is found.
func TestShared(t *testing.T) {
	t.Parallel()
	own := map[string]string{"owner": "p"}
	others := []bundle.Workload{{Name: "another", PodLabels: map[string]string{"control-plane": "controller-manager", "app": "another"}}}
	shared := []bundle.SharedService{{Service: "d0-service", Deployment: "d0", Other: "another"}}
	fixed := []bundle.SharedService{{Service: "d0-service", Deployment: "d0", Other: "another", Fixed: true}}
	for name, test := range map[string]struct {
		change func(*bundle.Bundle)
		live   []bundle.Workload
		want   []bundle.SharedService
	}{
		"nothing else":                  {},
		"F29: another Deployment":       {live: others, want: shared},
		"other labels":                  {live: []bundle.Workload{{Name: "another", PodLabels: map[string]string{"control-plane": "other"}}}},
		"its own of the version before": {live: []bundle.Workload{{Name: "another", Labels: own, PodLabels: scaffold()}}},
		"its own name":                  {live: []bundle.Workload{{Name: "d0", PodLabels: scaffold()}}},
		"another Deployment of the bundle": {
			change: func(b *bundle.Bundle) {
				b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[1].Spec.Template.Labels["control-plane"] = "controller-manager"
			},
			want: []bundle.SharedService{{Service: "d0-service", Deployment: "d0", Other: "d1"}},
		},
		"an API service": {
			change: func(b *bundle.Bundle) {
				b.CSV.Spec.WebhookDefinitions = nil
				b.CSV.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{{
					Name: "things", Group: "p.test", Version: "v1", Kind: "Thing", DeploymentName: "d0", ContainerPort: 5443,
				}}
			},
			live: others, want: shared,
		},
		"no webhooks": {change: func(b *bundle.Bundle) { b.CSV.Spec.WebhookDefinitions = nil }, live: others},
		"the selector excludes the label": {
			change: func(b *bundle.Bundle) {
				firstDeployment(b).Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: bundle.LabelWorkload, Operator: metav1.LabelSelectorOpDoesNotExist}}
			},
			live: others, want: fixed,
		},
		"the author uses the label": {
			change: func(b *bundle.Bundle) { firstDeployment(b).Spec.Template.Labels[bundle.LabelWorkload] = "mine" }, live: others, want: nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := renderedOf(t, withWebhook(test.change))
			if diff := cmp.Diff(test.want, bundle.Shared(objects, test.live, own)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestWithSelection is F29: pods get the label first, and the Service selects by it afterwards.
func TestWithSelection(t *testing.T) {
	t.Parallel()
	labelled := map[string]string{"control-plane": "controller-manager", bundle.LabelWorkload: "d0"}
	for selection, want := range map[bundle.Selection]struct{ pods, selector map[string]string }{
		bundle.SelectAuthored: {pods: scaffold(), selector: scaffold()},
		bundle.SelectLabelled: {pods: labelled, selector: scaffold()},
		bundle.SelectOwn:      {pods: labelled, selector: labelled},
	} {
		t.Run(string(selection), func(t *testing.T) {
			t.Parallel()
			objects := renderedOf(t, withWebhook(nil))
			before := renderedOf(t, withWebhook(nil))
			got, err := bundle.WithSelection(objects, selection)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, objects); diff != "" {
				t.Errorf("the objects themselves (-before +after)\n%s", diff)
			}
			if found := bundle.Selects(got); found != selection {
				t.Errorf("Selects: %q", found)
			}
			for i, one := range got {
				pods, _, _ := unstructured.NestedStringMap(one.Object, "spec", "template", "metadata", "labels")
				selector, _, _ := unstructured.NestedStringMap(one.Object, "spec", "selector")
				switch {
				case one.GetKind() == "Deployment" && one.GetName() == "d0":
					matched, _, _ := unstructured.NestedStringMap(one.Object, "spec", "selector", "matchLabels")
					if !maps.Equal(pods, want.pods) || !maps.Equal(matched, scaffold()) {
						t.Errorf("pods %v, selector %v", pods, matched)
					}
				case one.GetKind() == "Service":
					if !maps.Equal(selector, want.selector) {
						t.Errorf("the Service selects %v", selector)
					}
				case one != objects[i]:
					t.Errorf("%s %s is changed", one.GetKind(), one.GetName())
				}
			}
		})
	}
	fixed := withWebhook(func(b *bundle.Bundle) {
		firstDeployment(b).Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: bundle.LabelWorkload, Operator: metav1.LabelSelectorOpDoesNotExist}}
	})
	objects := renderedOf(t, fixed)
	if got, err := bundle.WithSelection(objects, bundle.SelectOwn); err != nil || !slices.Equal(got, objects) {
		t.Errorf("a selector that excludes the label: changed, %v", err)
	}
	if diff := cmp.Diff([]string{"d0"}, bundle.FixedDeployments(objects)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestSelectionNext is F29: the order of selections, and that none is taken back.
func TestSelectionNext(t *testing.T) {
	t.Parallel()
	shared := []bundle.SharedService{{Fixed: true}, {}}
	for _, test := range []struct {
		before     bundle.Selection
		shared     []bundle.SharedService
		isComplete bool
		want       bundle.Selection
	}{
		{before: bundle.SelectAuthored, isComplete: true, want: bundle.SelectAuthored},
		{before: bundle.SelectAuthored, shared: shared[:1], isComplete: true, want: bundle.SelectAuthored},
		{before: bundle.SelectAuthored, shared: shared, isComplete: true, want: bundle.SelectLabelled},
		{before: bundle.SelectLabelled, want: bundle.SelectLabelled},
		{before: bundle.SelectLabelled, isComplete: true, want: bundle.SelectOwn},
		{before: bundle.SelectOwn, want: bundle.SelectOwn},
		{before: bundle.SelectOwn, isComplete: true, want: bundle.SelectOwn},
	} {
		if got := test.before.Next(test.shared, test.isComplete); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
	if got := bundle.FirstSelection(shared); got != bundle.SelectOwn {
		t.Errorf("first: %q", got)
	}
	if got := bundle.FirstSelection(shared[:1]); got != bundle.SelectAuthored {
		t.Errorf("first, fixed: %q", got)
	}
}
