package controller

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestTranslateRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*ocv1.CatalogFilter)
		want   string
	}{
		"range":    {func(c *ocv1.CatalogFilter) { c.Version = "foobar" }, `desired version range "foobar" is invalid: improper constraint: "foobar"`},
		"selector": {func(c *ocv1.CatalogFilter) { c.Selector = badSelector() }, `desired catalog selector is invalid: "bad" is not a valid label selector operator`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := sampleExtension()
			tc.change(ext.Spec.Source.Catalog)
			wanted, err := translate(ext)
			var invalid *InvalidSpecError
			if !errors.As(err, &invalid) || err.Error() != tc.want {
				t.Errorf("err = %v, want %s", err, tc.want)
			}
			if want := (object.Owner{Name: "x", UID: "uid", Namespace: "ns", ServiceAccount: "sa", Package: "p"}); !cmp.Equal(wanted.Owner, want) {
				t.Errorf("owner = %+v, want %+v: what is installed is kept all the same", wanted.Owner, want)
			}
		})
	}
}

// TestPredecessor: an extension comes after an operator of classic OLM only if it says so, and is in its namespace.
func TestPredecessor(t *testing.T) {
	t.Parallel()
	for annotation, want := range map[string]object.Predecessor{
		"":            {},
		"ns/any":      {Namespace: "ns", Package: "p"},
		"another/any": {},
		"ns":          {},
	} {
		ext := sampleExtension()
		ext.Annotations = map[string]string{ocv1.MigratedFromSubscriptionAnnotation: annotation}
		if got := OwnerOf(ext).Predecessor; got != want {
			t.Errorf("%q: got %+v, want %+v", annotation, got, want)
		}
	}
}

func badSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "bad"}}}
}

func TestAbsentSelectorSelectsEveryCatalog(t *testing.T) {
	t.Parallel()
	for name, selector := range map[string]*metav1.LabelSelector{"nil": nil, "empty": {}} {
		got, err := selectorOf(selector)
		if err != nil || !got.Matches(labels.Set{"any": "label"}) {
			t.Errorf("%s selector = %v, %v, want everything", name, got, err)
		}
	}
}

func TestInputsDependOnWhatIsConfiguredOnly(t *testing.T) {
	t.Parallel()
	inputs := func(inline string) string {
		ext := sampleExtension()
		if inline != "" {
			ext.Spec.Config = &ocv1.ClusterExtensionConfig{
				ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: []byte(inline)},
			}
		}
		wanted, err := translate(ext)
		if err != nil {
			t.Fatal(err)
		}
		return wanted.Inputs
	}
	if inputs(`{"a":1,"b":2}`) != inputs(`{ "b": 2, "a": 1 }`) {
		t.Error("the order of keys and white space matter")
	}
	if inputs(`{"a":1}`) == inputs(`{"a":2}`) || inputs("") == inputs(`{"a":1}`) {
		t.Error("a change of configuration does not show")
	}
}

func TestWhatMayBeReplaced(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.Spec.Install = &ocv1.ClusterExtensionInstallConfig{ReplaceImmutable: []ocv1.ReplaceableKind{"Deployment", "Service", "Secret"}}
	wanted, err := translate(ext)
	want := []schema.GroupKind{{Group: "apps", Kind: "Deployment"}, {Group: "", Kind: "Service"}}
	if diff := cmp.Diff(want, wanted.Owner.Replaceable); diff != "" || err != nil {
		t.Errorf("err = %v, replaceable (-want +got):\n%s", err, diff)
	}
}
