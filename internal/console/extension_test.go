package console

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// An extension is upgraded from catalogs that its selector takes and that are served, and what
// is shown of it is from those.
func TestEligibleCatalogs(t *testing.T) {
	t.Parallel()
	catalog := func(name string, change func(*ocv1.ClusterCatalog)) *ocv1.ClusterCatalog {
		one := served(name)
		one.Labels = map[string]string{"team": "blue"}
		change(one)
		return one
	}
	catalogs := []*ocv1.ClusterCatalog{
		catalog("a", func(*ocv1.ClusterCatalog) {}),
		catalog("b", func(c *ocv1.ClusterCatalog) { c.Spec.Priority = 10 }),
		catalog("c", func(c *ocv1.ClusterCatalog) { c.Labels = nil }),
		catalog("d", func(c *ocv1.ClusterCatalog) { c.Spec.AvailabilityMode = ocv1.AvailabilityModeUnavailable }),
		catalog("e", func(c *ocv1.ClusterCatalog) { c.Status.Conditions = nil }),
	}
	for want, change := range map[string]func(*ocv1.ClusterExtension){
		"b a c": func(*ocv1.ClusterExtension) {},
		"b a": func(ext *ocv1.ClusterExtension) {
			ext.Spec.Source.Catalog.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
		},
		"": func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog = nil },
	} {
		var names []string
		for _, one := range eligible(catalogs, installed("x", "1.0.0", change)) {
			names = append(names, one.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
