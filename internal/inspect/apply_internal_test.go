package inspect

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestCheckUsers has a ServiceAccount that is there before an extension x is applied with it.
func TestCheckUsers(t *testing.T) {
	t.Parallel()
	extension := func(name, namespace, account string) ocv1.ClusterExtension {
		ext := ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}
		ext.Spec.Namespace, ext.Spec.ServiceAccount.Name = namespace, account
		return ext
	}
	for name, test := range map[string]struct {
		extensions []ocv1.ClusterExtension
		refused    string
	}{
		"that of the extension":    {extensions: []ocv1.ClusterExtension{extension("x", "ns", "installer")}},
		"of somebody":              {refused: "exists already, and its users would get"},
		"of another extension":     {extensions: []ocv1.ClusterExtension{extension("y", "ns", "installer")}, refused: `is that of ClusterExtension "y"`},
		"made for another one":     {extensions: []ocv1.ClusterExtension{extension("z", "ns", "installer"), extension("y", "ns", "installer")}, refused: `is that of ClusterExtension "y"`},
		"of both":                  {extensions: []ocv1.ClusterExtension{extension("y", "ns", "installer"), extension("x", "ns", "installer")}},
		"of somebody, with others": {extensions: []ocv1.ClusterExtension{extension("x", "ns", "another")}, refused: "exists already"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkUsers(client.ObjectKey{Namespace: "ns", Name: "installer"}, test.extensions, "x")
			if (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got %v, want %q", err, test.refused)
			}
		})
	}
}

// TestUnintended: whoever tries another image, and has left out the configuration of before, is told
// of that alone.
func TestUnintended(t *testing.T) {
	t.Parallel()
	spec := func(ref string, more map[string]any) map[string]any {
		made := map[string]any{"namespace": "ns", "source": map[string]any{"bundle": map[string]any{"ref": ref}}}
		maps.Copy(made, more)
		return made
	}
	config := map[string]any{"config": map[string]any{"configType": "Inline"}}
	for name, test := range map[string]struct {
		live, wanted map[string]any
		want         []string
	}{
		"the same":                      {spec("a", config), spec("a", config), nil},
		"another image":                 {spec("a", config), spec("b", config), nil},
		"no configuration":              {spec("a", config), spec("a", nil), []string{"spec.config"}},
		"another image, and without it": {spec("a", config), spec("b", nil), []string{"spec.config"}},
	} {
		if got := unintended(test.live, test.wanted); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q differ, want %q", name, got, test.want)
		}
	}
}
