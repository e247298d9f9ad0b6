package bundlecheck

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// takenName is a name within an API group. Kinds and resources have names of their own.
type takenName struct {
	group, name string
	isKind      bool
}

// definitions reports names that two CustomResourceDefinitions of the bundle have: the API server serves only the first
// of them. It warns about a short name that is another name of the same kind.
func (c *checker) definitions(objects []*unstructured.Unstructured) {
	holders := map[takenName]string{}
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" || object.GroupVersionKind().Group != apiextensionsv1.GroupName {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd) != nil {
			continue // the API server refuses it
		}
		names := crd.Spec.Names
		for _, name := range names.ShortNames {
			if name == names.Plural || name == names.Singular {
				c.warnf("", "spec.names.shortNames", "CustomResourceDefinition %s has the short name %s, which is its plural or singular, too: remove the short name",
					excerpt.Quote(crd.Name), excerpt.Quote(name))
			}
		}
		others := sets.New[string]()
		for _, name := range namesOf(crd) {
			first, isTaken := holders[name]
			if !isTaken {
				holders[name] = crd.Name
			} else if first != crd.Name && !others.Has(first) {
				others.Insert(first)
				c.errorf("", "spec.names", "CustomResourceDefinition %s has the name %s, which CustomResourceDefinition %s of the same group has, too: the API server serves only one of them",
					excerpt.Quote(crd.Name), excerpt.Quote(name.name), excerpt.Quote(first))
			}
		}
	}
}

// namesOf returns the names that the API server accepts once within a group, the kind first.
func namesOf(crd *apiextensionsv1.CustomResourceDefinition) []takenName {
	names := crd.Spec.Names
	list := names.ListKind
	if list == "" {
		list = names.Kind + "List"
	}
	var found []takenName
	for _, kind := range []string{names.Kind, list} {
		found = append(found, takenName{group: crd.Spec.Group, name: kind, isKind: true})
	}
	for _, resource := range slices.Concat([]string{names.Plural, names.Singular}, names.ShortNames) {
		if resource != "" {
			found = append(found, takenName{group: crd.Spec.Group, name: resource})
		}
	}
	return found
}
