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
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// UnknownKindsError says that the cluster does not serve kinds of the bundle.
// An operation that fails with nothing else has written nothing; a repair has put
// back the objects of other kinds.
type UnknownKindsError struct {
	// Kinds is sorted and never empty.
	Kinds []string

	// BuiltIn are those among them that only another version of Kubernetes brings.
	BuiltIn []string

	missing []error
}

// isBuiltIn says that a group of kinds is served by the API server itself.
func isBuiltIn(group string) bool {
	return clientgoscheme.Scheme.IsGroupRegistered(group) || group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io"
}

func newUnknownKindsError(kinds map[schema.GroupVersionKind]struct{}) *UnknownKindsError {
	result := &UnknownKindsError{}
	for kind := range maps.Keys(kinds) {
		name := fmt.Sprintf("%s (%s)", kind.Kind, kind.GroupVersion())
		result.Kinds = append(result.Kinds, name)
		if isBuiltIn(kind.Group) {
			result.BuiltIn = append(result.BuiltIn, name)
		}
		result.missing = append(result.missing, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}})
	}
	slices.Sort(result.Kinds)
	slices.Sort(result.BuiltIn)
	return result
}

func (e *UnknownKindsError) Error() string {
	text := "the cluster does not serve kinds of the bundle: " + strings.Join(e.Kinds, ", ")
	if len(e.BuiltIn) > 0 {
		return text + "; only another version of Kubernetes has " + strings.Join(e.BuiltIn, ", ")
	}
	return text + "; install what brings them"
}

// Unwrap gives a [*meta.NoKindMatchError] for each kind, in no order.
func (e *UnknownKindsError) Unwrap() []error { return e.missing }

// Summary names the first of the kinds, and what to do.
func (e *UnknownKindsError) Summary() string {
	if len(e.BuiltIn) > 0 {
		return fmt.Sprintf("only another version of Kubernetes has kinds of the bundle: %s: choose another version of the bundle",
			excerpt.Of(e.BuiltIn, maxListed))
	}
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
