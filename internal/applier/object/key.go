package object

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Key names an object whatever version it is written in.
type Key struct {
	schema.GroupKind

	Namespace string
	Name      string
}

// String is the form that messages use: Deployment "x" in namespace "y".
func (k Key) String() string {
	if k.Namespace == "" {
		return fmt.Sprintf("%s %q", k.Kind, k.Name)
	}
	return fmt.Sprintf("%s %q in namespace %q", k.Kind, k.Name, k.Namespace)
}

// maxLoggedName bounds each part of a key in the log, and all that a line says of fields, in
// bytes: the API server does not bound the names of all kinds.
const maxLoggedName = 300

// LoggedKey is a key as a value of a line of the log: without its group, each part in one
// line and at most 300 bytes long.
type LoggedKey struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Logged is the key for the log.
func (k Key) Logged() LoggedKey {
	return LoggedKey{
		Kind:      excerpt.Line(k.Kind, maxLoggedName),
		Namespace: excerpt.Line(k.Namespace, maxLoggedName),
		Name:      excerpt.Line(k.Name, maxLoggedName),
	}
}

// Compare orders by kind, namespace, name and group.
func (k Key) Compare(b Key) int {
	return cmp.Or(
		cmp.Compare(k.Kind, b.Kind), cmp.Compare(k.Namespace, b.Namespace),
		cmp.Compare(k.Name, b.Name), cmp.Compare(k.Group, b.Group),
	)
}

// KeysOf are the keys of a map, in the order of their messages.
func KeysOf[T any](objects map[Key]T) []Key {
	return slices.SortedFunc(maps.Keys(objects), func(a, b Key) int { return cmp.Compare(a.String(), b.String()) })
}

// KeyOf is the key of an object as it is written, which may leave the namespace out.
func KeyOf(object *unstructured.Unstructured) Key {
	return Key{
		GroupKind: object.GroupVersionKind().GroupKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}
