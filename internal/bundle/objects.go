package bundle

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// source is an object together with where it comes from.
type source struct {
	object *unstructured.Unstructured

	// file that ships the object, empty for one that this package made.
	file string

	// pod that a made Service leads to.
	pod *corev1.PodTemplateSpec
}

func (s source) origin() string {
	if s.file == "" {
		return "what the " + kindCSV + " asks for"
	}
	return s.file
}

// objectSet has each identity once.
type objectSet struct {
	sources []source
}

func (s *objectSet) add(added source) {
	s.sources = append(s.sources, added)
}

// sorted merges objects of the same identity and cleans all of them. It fails
// with an [*InvalidError] that names those that contradict each other.
func (s *objectSet) sorted() ([]*unstructured.Unstructured, error) {
	for _, source := range s.sources {
		clean(source.object)
	}
	slices.SortStableFunc(s.sources, func(a, b source) int {
		// What was made comes before what is shipped.
		return cmp.Or(compareIdentity(a.object, b.object), cmp.Compare(a.file, b.file))
	})
	var found findings
	var merged []source
	for _, next := range s.sources {
		last := len(merged) - 1
		if last < 0 || compareIdentity(merged[last].object, next.object) != 0 {
			merged = append(merged, next)
			continue
		}
		both, err := mergeSources(merged[last], next)
		if err != nil {
			found.add(next.file, "", "%s %q contradicts %s: %v", next.object.GetKind(), next.object.GetName(), merged[last].origin(), err)
			continue
		}
		merged[last] = both
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(merged))
	for i, source := range merged {
		objects[i] = source.object
	}
	return objects, nil
}

func compareIdentity(a, b *unstructured.Unstructured) int {
	return cmp.Or(
		strings.Compare(a.GroupVersionKind().Group, b.GroupVersionKind().Group),
		strings.Compare(a.GetKind(), b.GetKind()),
		strings.Compare(a.GetNamespace(), b.GetNamespace()),
		strings.Compare(a.GetName(), b.GetName()),
	)
}

// clean removes what is not part of a desired state.
func clean(object *unstructured.Unstructured) {
	unstructured.RemoveNestedField(object.Object, "status")
	if created, ok, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "creationTimestamp"); ok && created == nil {
		unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	}
	removeHelmControls(object)
}

// removeHelmControls removes the annotations that would have Helm run an object
// as a hook.
func removeHelmControls(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	authored := len(annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key == "helm.sh/hook" || strings.HasPrefix(key, "helm.sh/hook-")
	})
	switch len(annotations) {
	case authored:
	case 0:
		object.SetAnnotations(nil)
	default:
		object.SetAnnotations(annotations)
	}
}

func toUnstructured(object any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", object, err)
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("decoding %T: %w", object, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// Digest names a set of objects: "sha256:" and 64 hexadecimal digits, the same
// for the same objects in any order. The objects are as [Render] returns them.
func Digest(objects []*unstructured.Unstructured) string {
	texts := make([]string, len(objects))
	for i, object := range objects {
		texts[i] = canonical(object)
	}
	slices.Sort(texts)
	hash := sha256.New()
	for _, text := range texts {
		// JSON has no line breaks of its own, so that this one ends an object.
		hash.Write([]byte(text + "\n"))
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// canonical is the JSON of an object, keys sorted. What comes from a decoder
// can always be encoded.
func canonical(object *unstructured.Unstructured) string { return encoded(object.Object) }

// encoded is the JSON of a value, keys sorted.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%v", value)
	}
	return string(text)
}
