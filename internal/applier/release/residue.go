package release

import (
	"bytes"
	"encoding/json"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// residueOf gives the objects of a revision as far as it matters what they were when
// others have been tried after it: their keys and owner labels, whether they are kept, which permissions
// they granted, which kinds they defined, and which Secrets cert-manager has created for them. It is a manifest that [objectsOf]
// reads, with the objects in the same order.
func residueOf(objects []*unstructured.Unstructured) ([]byte, error) {
	text := bytes.NewBuffer([]byte{})
	encoder := json.NewEncoder(text)
	for _, object := range objects {
		if err := encoder.Encode(residual(object).Object); err != nil {
			return nil, fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return text.Bytes(), nil
}

func residual(obj *unstructured.Unstructured) *unstructured.Unstructured {
	kind := obj.GroupVersionKind()
	if kind.Group == rbacv1.GroupName {
		return obj
	}
	rest := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	rest.SetAPIVersion(obj.GetAPIVersion())
	rest.SetKind(obj.GetKind())
	rest.SetNamespace(obj.GetNamespace())
	rest.SetName(obj.GetName())
	keep(obj, rest, "metadata", "labels", object.LabelOwnerName)
	keep(obj, rest, "metadata", "annotations", object.AnnotationPolicy)
	switch kind.GroupKind() {
	case object.CertificateKind:
		keep(obj, rest, "spec", "secretName")
	case object.DefinitionKind:
		for _, field := range []string{"group", "scope", "names"} {
			keep(obj, rest, "spec", field)
		}
		keepVersions(obj, rest)
	}
	return rest
}

// keep copies a field.
func keep(from, to *unstructured.Unstructured, field ...string) {
	if value, found, err := unstructured.NestedFieldNoCopy(from.Object, field...); err == nil && found {
		_ = unstructured.SetNestedField(to.Object, value, field...) // all above it is made here
	}
}

// keepVersions copies which versions a definition has, without their schemas.
func keepVersions(from, to *unstructured.Unstructured) {
	versions, _, _ := unstructured.NestedSlice(from.Object, "spec", "versions")
	kept := make([]any, 0, len(versions))
	for _, version := range versions {
		version, ok := version.(map[string]any)
		if !ok {
			continue
		}
		kept = append(kept, map[string]any{
			"name": version["name"], "served": version["served"], "storage": version["storage"],
		})
	}
	_ = unstructured.SetNestedSlice(to.Object, kept, "spec", "versions")
}

// NamedAs selects the objects that have the kind and name of one of these, in whatever
// namespace.
func NamedAs(objects []*unstructured.Unstructured) func(*unstructured.Unstructured) bool {
	key := func(obj *unstructured.Unstructured) object.Key {
		key := object.KeyOf(obj)
		key.Namespace = ""
		return key
	}
	names := make(map[object.Key]struct{}, len(objects))
	for _, object := range objects {
		names[key(object)] = struct{}{}
	}
	return func(object *unstructured.Unstructured) bool {
		_, found := names[key(object)]
		return found
	}
}

// None selects no object to be given whole.
func None(*unstructured.Unstructured) bool { return false }

func every(*unstructured.Unstructured) bool { return true }
