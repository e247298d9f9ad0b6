package patches_test

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// edit is a change of an object in one place.
type edit struct {
	path []any // of keys and of indices

	// value is put there, or added to the list that is there, unless something is removed.
	value  any
	remove bool
	add    bool
}

func (e edit) String() string {
	var path strings.Builder
	for _, step := range e.path {
		if i, isIndex := step.(int); isIndex {
			fmt.Fprintf(&path, "[%d]", i)
		} else {
			fmt.Fprintf(&path, ".%v", step)
		}
	}
	switch {
	case e.remove:
		return fmt.Sprintf("%s removed", &path)
	case e.add:
		return fmt.Sprintf("%s and %v", &path, e.value)
	default:
		return fmt.Sprintf("%s: %v", &path, e.value)
	}
}

// edited gives the object with the edits, one after the other. Those of which the place is
// not there any more have no effect.
func edited(object *unstructured.Unstructured, edits ...edit) *unstructured.Unstructured {
	result := object.DeepCopy()
	for _, edit := range edits {
		result.Object, _ = edit.in(result.Object, edit.path).(map[string]any)
	}
	return result
}

func (e edit) in(value any, path []any) any {
	if len(path) == 0 {
		if list, isList := value.([]any); e.add && isList {
			return append(slices.Clone(list), runtime.DeepCopyJSONValue(e.value))
		}
		return runtime.DeepCopyJSONValue(e.value)
	}
	switch value := value.(type) {
	case map[string]any:
		key, _ := path[0].(string)
		if e.remove && len(path) == 1 {
			delete(value, key)
			return value
		}
		value[key] = e.in(value[key], path[1:])
		return value
	case []any:
		i, _ := path[0].(int)
		if i >= len(value) {
			return value
		}
		if e.remove && len(path) == 1 {
			return slices.Delete(slices.Clone(value), i, i+1)
		}
		value[i] = e.in(value[i], path[1:])
		return value
	}
	return value
}

// at is what an object has in a place; false if there is no such place.
func at(value any, path []any) (any, bool) {
	for _, step := range path {
		switch of := value.(type) {
		case map[string]any:
			key, _ := step.(string)
			inner, found := of[key]
			if !found {
				return nil, false
			}
			value = inner
		case []any:
			i, isIndex := step.(int)
			if !isIndex || i >= len(of) {
				return nil, false
			}
			value = of[i]
		default:
			return nil, false
		}
	}
	return value, true
}
