package object

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// UnknownKindsError says that the cluster does not serve kinds of the bundle.
// An operation that fails with nothing else has written nothing; a repair has put
// back the objects of other kinds.
type UnknownKindsError struct {
	// Kinds is sorted and never empty.
	Kinds []string

	missing []error
}

func newUnknownKindsError(kinds map[schema.GroupVersionKind]struct{}) *UnknownKindsError {
	names, missing := make([]string, 0, len(kinds)), make([]error, 0, len(kinds))
	for kind := range maps.Keys(kinds) {
		names = append(names, fmt.Sprintf("%s (%s)", kind.Kind, kind.GroupVersion()))
		missing = append(missing, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}})
	}
	slices.Sort(names)
	return &UnknownKindsError{Kinds: names, missing: missing}
}

func (e *UnknownKindsError) Error() string {
	return "the cluster does not serve kinds of the bundle: " + strings.Join(e.Kinds, ", ") + "; install what brings them"
}

// Unwrap gives a [*meta.NoKindMatchError] for each kind, in no order.
func (e *UnknownKindsError) Unwrap() []error { return e.missing }

// Summary names the first of the kinds, and what to do.
func (e *UnknownKindsError) Summary() string {
	return fmt.Sprintf("the cluster does not serve kinds of the bundle: %s: install what provides them",
		excerpt.Of(e.Kinds, maxListed))
}

// Served leaves out objects of kinds that the cluster does not serve: there are none
// of them, and nobody can bring them back. What is left can be repaired all the same.
// It gives those kinds as [*UnknownKindsError], and nothing if there are none.
func Served(mapper meta.RESTMapper, objects []*unstructured.Unstructured) (served []*unstructured.Unstructured, unserved error) {
	unknown := map[schema.GroupVersionKind]struct{}{}
	known := map[schema.GroupVersionKind]bool{}
	for _, object := range objects {
		kind := object.GroupVersionKind()
		if _, asked := known[kind]; !asked {
			_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
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

// Known maps the objects of earlier revisions to their resources. Later revisions win; kinds that
// the cluster no longer serves have no objects left. Where that cannot be found out it
// fails: an object that is left out is in no record any more.
func Known(mapper meta.RESTMapper, owner Owner, objects []*unstructured.Unstructured) (map[Key]Item, error) {
	known := map[Key]Item{}
	for _, obj := range objects {
		items, err := Items(mapper, owner, []*unstructured.Unstructured{obj})
		if _, unserved := errors.AsType[*UnknownKindsError](err); unserved {
			continue
		}
		if err != nil {
			return nil, err
		}
		known[items[0].Key] = items[0]
	}
	return known, nil
}
