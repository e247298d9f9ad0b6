package object

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Compare orders by kind, namespace, name and group.
func (k Key) Compare(b Key) int {
	return cmp.Or(
		cmp.Compare(k.Kind, b.Kind), cmp.Compare(k.Namespace, b.Namespace),
		cmp.Compare(k.Name, b.Name), cmp.Compare(k.Group, b.Group),
	)
}

// KeyOf is the key of an object as it is written, which may leave the namespace out.
func KeyOf(object *unstructured.Unstructured) Key {
	return Key{
		GroupKind: object.GroupVersionKind().GroupKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}
