package migration

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

// trialOf is what an operation would make of a ConfigMap that is there.
func trialOf(name string, labels map[string]string, holder *object.Holder) object.Trial {
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	live.SetNamespace("team")
	live.SetName(name)
	live.SetLabels(labels)
	return object.Trial{Key: object.KeyOf(live), Live: live, Holder: holder, Change: object.Unchanged}
}

// TestForeseenObjects: what the controller would leave to somebody else is the operator's if classic OLM has made it
// and it says of nobody else, and is in the way otherwise.
func TestForeseenObjects(t *testing.T) {
	t.Parallel()
	subscription := operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "sample"},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{Package: "sample"},
		Status:     operatorsv1alpha1.SubscriptionStatus{InstalledCSV: "sample.v1.2.0"},
	}
	csv := operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "sample.v1.2.0", UID: "csv"}}
	component := classic.Object{
		Key:  trialOf("component", nil, nil).Key,
		Meta: metav1.ObjectMeta{Namespace: "team", Name: "component", Labels: map[string]string{object.PrefixClassicComponent + "sample.team": ""}},
	}
	// The operator was in another namespace before: what was left there has that label still.
	shared := component
	shared.Key.Name, shared.Meta.Name = "shared", "shared"
	shared.Meta.Labels = map[string]string{object.PrefixClassicComponent + "sample.team": "", object.PrefixClassicComponent + "sample.before": ""}
	cluster := &classic.Cluster{
		Subscriptions: []operatorsv1alpha1.Subscription{subscription}, CSVs: []operatorsv1alpha1.ClusterServiceVersion{csv},
		Objects: []classic.Object{component, shared},
	}
	checked := Checked{Operator: &cluster.Operators()[0]}
	broken := trialOf("broken", nil, nil)
	broken.Err = errors.New("it cannot be")
	made := trialOf("made", nil, nil)
	made.Change = object.Created
	prospect := &classic.Prospect{}
	checked.takeFacts(cluster, preview.Facts{
		Trials: []object.Trial{
			trialOf("component", component.Meta.Labels, nil), broken, made,
			trialOf("of-classic", map[string]string{object.LabelClassicManaged: "true"}, &object.Holder{}),
			trialOf("shared", shared.Meta.Labels, &object.Holder{Kind: "Operator", Name: "sample.before"}),
			trialOf("of-others", map[string]string{object.PrefixClassicComponent + "other.team": ""}, &object.Holder{Kind: "Operator", Name: "other.team"}),
		},
		Obstacles: []string{"something else"}, NoAccount: true,
	}, prospect)

	names := func(keys []object.Key) string {
		var found []string
		for _, key := range keys {
			found = append(found, key.Name)
		}
		return strings.Join(found, " ")
	}
	var adopted []object.Key
	for _, one := range checked.Fates.Adopted {
		adopted = append(adopted, one.Key)
	}
	got := map[string]string{"rendered": names(checked.Rendered), "adopted": names(adopted), "created": names(checked.Created), "unmarked": names(checked.Unmarked)}
	want := map[string]string{"rendered": "component broken made of-classic shared of-others", "adopted": "component of-classic shared", "created": "made", "unmarked": "of-classic"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	slices.Sort(prospect.InTheWay)
	inTheWay := []string{
		`ConfigMap "broken" in namespace "team": it cannot be`,
		`ConfigMap "of-others" in namespace "team" belongs to Operator "other.team", and not to the operator`,
		`ConfigMap "shared" in namespace "team" has marks of another operator of classic OLM besides, which the controller leaves it to: take off operators.coreos.com/sample.before, if that operator is gone`,
		"something else",
	}
	if diff := cmp.Diff(inTheWay, prospect.InTheWay); diff != "" {
		t.Errorf("in the way (-want +got)\n%s", diff)
	}
	if !checked.NoAccount || !prospect.NoAccount || len(checked.Missing) > 0 {
		t.Errorf("account: %v %v %v", checked.NoAccount, prospect.NoAccount, checked.Missing)
	}
}
