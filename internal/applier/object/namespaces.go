package object

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// MissingNamespacesError says that namespaces of objects do not exist, or are being deleted.
// Nobody can make anything in them.
type MissingNamespacesError struct {
	// Namespaces are sorted and never empty.
	Namespaces []string

	// Object is the first object in the first of them, with where it comes from, for people; empty
	// if that is not known. Value is the path of a value of a chart that names the namespace; empty
	// if there is none.
	Object, Value string
}

// Error names all of them.
func (e *MissingNamespacesError) Error() string { return e.text(strings.Join(e.quoted(), ", ")) }

// Summary names the first of them, as many as fit into a line.
func (e *MissingNamespacesError) Summary() string { return e.text(excerpt.Of(e.quoted(), maxListed)) }

func (e *MissingNamespacesError) text(names string) string {
	if len(e.Namespaces) == 1 {
		return fmt.Sprintf("namespace %s does not exist, or is being deleted", names)
	}
	return fmt.Sprintf("namespaces %s do not exist, or are being deleted", names)
}

func (e *MissingNamespacesError) quoted() []string {
	names := make([]string, len(e.Namespaces))
	for i, name := range e.Namespaces {
		names[i] = fmt.Sprintf("%q", name)
	}
	return names
}

// Lacking are the namespaces of objects that are lacking, sorted, without those that come with
// the objects.
func Lacking(lacks func(namespace string) bool, objects []*unstructured.Unstructured) []string {
	coming, known := map[string]bool{}, map[string]bool{}
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() == NamespaceKind {
			coming[object.GetName()] = true
		}
	}
	for _, object := range objects {
		name := object.GetNamespace()
		if _, asked := known[name]; name != "" && !asked {
			known[name] = !coming[name] && lacks(name)
		}
	}
	maps.DeleteFunc(known, func(_ string, isLacking bool) bool { return !isLacking })
	return slices.Sorted(maps.Keys(known))
}

// OutsideLacking leaves out objects in namespaces that are lacking: they are gone with them. What is
// left can be repaired all the same. It gives those namespaces as [*MissingNamespacesError],
// and nothing if there are none.
func OutsideLacking(lacks func(namespace string) bool, objects []*unstructured.Unstructured) (elsewhere []*unstructured.Unstructured, missing error) {
	lacking := Lacking(lacks, objects)
	if len(lacking) == 0 {
		return objects, nil
	}
	return Outside(lacking, objects), &MissingNamespacesError{Namespaces: lacking}
}

// Outside leaves out the objects in some namespaces.
func Outside(namespaces []string, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var others []*unstructured.Unstructured
	for _, object := range objects {
		if !slices.Contains(namespaces, object.GetNamespace()) {
			others = append(others, object)
		}
	}
	return others
}
