package applier

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// served leaves out objects of kinds that the cluster does not serve: there are none
// of them, and nobody can bring them back. What is left can be repaired all the same.
// It gives those kinds as [*UnknownKindsError], and nothing if there are none.
func (p *planner) served(objects []*unstructured.Unstructured) (served []*unstructured.Unstructured, unserved error) {
	unknown := map[schema.GroupVersionKind]struct{}{}
	known := map[schema.GroupVersionKind]bool{}
	for _, object := range objects {
		kind := object.GroupVersionKind()
		if _, asked := known[kind]; !asked {
			_, err := p.mapper.RESTMapping(kind.GroupKind(), kind.Version)
			known[kind] = !meta.IsNoMatchError(err)
		}
		if known[kind] {
			served = append(served, object)
		} else {
			unknown[kind] = struct{}{}
		}
	}
	if len(unknown) > 0 {
		unserved = newUnknownKindsError(unknown)
	}
	return served, unserved
}
