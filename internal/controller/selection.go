package controller

import (
	"maps"

	"k8s.io/apimachinery/pkg/labels"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// catalogLabels are the labels of a catalog as selectors see them. The one with its
// name has its name, whatever is written there: it is corrected only after it was
// written, and until then whoever may edit one catalog could offer its content to
// those who have selected another by name.
type catalogLabels struct{ catalog *ocv1.ClusterCatalog }

var _ labels.Labels = catalogLabels{}

// Lookup gives the value of a label, and whether there is one.
func (l catalogLabels) Lookup(label string) (string, bool) {
	if label == ocv1.MetadataNameLabel {
		return l.catalog.Name, true
	}
	value, ok := l.catalog.Labels[label]
	return value, ok
}

// Has says whether there is a label.
func (l catalogLabels) Has(label string) bool {
	_, ok := l.Lookup(label)
	return ok
}

// Get gives the value of a label, empty if there is none.
func (l catalogLabels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}

// sameForSelectors says that no selector tells two states of a catalog apart.
func sameForSelectors(before, after *ocv1.ClusterCatalog) bool {
	isName := func(label, _ string) bool { return label == ocv1.MetadataNameLabel }
	had, has := maps.Clone(before.Labels), maps.Clone(after.Labels)
	maps.DeleteFunc(had, isName)
	maps.DeleteFunc(has, isName)
	return maps.Equal(had, has)
}

// selects says whether an extension draws from a catalog.
func selects(filter *ocv1.CatalogFilter, catalog *ocv1.ClusterCatalog) bool {
	if filter == nil {
		return false
	}
	selector, err := selectorOf(filter.Selector)
	return err == nil && selector.Matches(catalogLabels{catalog})
}
