package object

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/clusterextensions/operator-controller/internal/quantity"
)

// What is wanted and what the API server has stored can be the same and written in two
// ways. A patch from one to the other would change nothing, each time it is sent.

// asStored is an object in the words of the API server. A null says nothing, as when an
// object is created, and neither does an empty value in the place of which the API server
// puts a default. All other empty values stay: they are wanted. What is not of the type stays
// as it is, for the API server to refuse. The object is not changed, and shares values with
// the result.
func asStored(object *unstructured.Unstructured, t goType) *unstructured.Unstructured {
	fields, isObject := stored(object.Object, t).(map[string]any)
	if !isObject {
		return object
	}
	if t.Type == reflect.TypeFor[corev1.Secret]() {
		fields = withStringData(fields)
	}
	return &unstructured.Unstructured{Object: fields}
}

// stored is [asStored] for any value.
func stored(value any, t goType) any {
	if t = t.of(value); !t.isKnown() {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for key, inner := range value {
			if inner, said := storedBelow(t, key, inner); said {
				kept[key] = inner
			}
		}
		if t.Type == reflect.TypeFor[corev1.PodSpec]() {
			setAlias(kept)
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, item := range value {
			kept[i] = storedItem(item, t.items())
		}
		return kept
	default:
		return rewritten(value, t.Type)
	}
}

// storedBelow is the value under a key of a map, and whether it says anything.
func storedBelow(t goType, key string, value any) (_ any, said bool) {
	inner := t.below(key)
	switch {
	case !inner.isKnown():
		return value, true
	case t.isStruct():
		isDefault := slices.Contains(defaulted[t.Type], key) && isEmpty(value)
		return stored(value, inner), value != nil && !isDefault
	case value == nil && (inner.Kind() == reflect.String || inner.Type == reflect.TypeFor[[]byte]()):
		return "", true // an entry without a value
	default:
		return stored(value, inner), true
	}
}

// setAlias sets both names of the ServiceAccount of a pod, as the API server does. To drop one, both must be dropped.
func setAlias(pod map[string]any) {
	const name, alias = "serviceAccountName", "serviceAccount"
	switch {
	case !isEmpty(pod[name]):
		pod[alias] = pod[name]
	case !isEmpty(pod[alias]):
		pod[name] = pod[alias]
	}
}

// storedItem is an item of a list. One that is null becomes an empty one.
func storedItem(item any, t goType) any {
	if item != nil || !t.isKnown() {
		return stored(item, t)
	}
	switch t.Kind() {
	case reflect.Struct:
		return map[string]any{}
	case reflect.String:
		return ""
	default:
		return nil
	}
}

// rewritten is a single value in the one of its forms that the API server writes.
func rewritten(value any, t reflect.Type) any {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		if text, _ := value.(string); quantity.IsHuge(text) {
			return value
		}
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration](), reflect.TypeFor[[]byte]():
	default:
		return value
	}
	text, err := json.Marshal(value)
	if err != nil {
		return value
	}
	read := reflect.New(t).Interface()
	if json.Unmarshal(text, read) != nil {
		return value
	}
	var written any
	if text, err = json.Marshal(read); err != nil || utiljson.Unmarshal(text, &written) != nil {
		return value
	}
	return written
}

// withStringData merges stringData of a Secret into its data, over it.
func withStringData(secret map[string]any) map[string]any {
	texts, isMap, err := unstructured.NestedStringMap(secret, "stringData")
	_, isData := secret["data"].(map[string]any)
	if err != nil || !isMap || !isData && secret["data"] != nil {
		return secret
	}
	data, _ := secret["data"].(map[string]any)
	if data = maps.Clone(data); data == nil {
		data = map[string]any{}
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	secret = maps.Clone(secret)
	delete(secret, "stringData")
	secret["data"] = data
	return secret
}

// isEmpty reports the empty value of any type.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	default:
		return reflect.ValueOf(value).IsZero()
	}
}

// isUnset reports a value that the API server cannot tell from none: an empty one, unless
// the type is a pointer.
func isUnset(value any, t goType) bool {
	if value == nil {
		return true
	}
	if t.isPointer() {
		return false
	}
	if t = t.of(value); !t.isStruct() {
		return t.isKnown() && isEmpty(value)
	}
	fields, isMap := value.(map[string]any)
	for key, inner := range fields {
		if !isUnset(inner, t.below(key)) {
			return false
		}
	}
	return isMap
}

// addsUnset reports that a value, or one in it, is unset where another one has none. Lists
// that are replaced whole are not looked into: nothing of what they were stays.
func addsUnset(value, before any, t goType) bool {
	t = t.of(value)
	switch value := value.(type) {
	case map[string]any:
		before, _ := before.(map[string]any)
		for key, inner := range value {
			innerType := t.below(key)
			isAdded := before[key] == nil && t.isStruct() && isUnset(inner, innerType)
			if isAdded || addsUnset(inner, before[key], innerType) {
				return true
			}
		}
	case []any:
		if t.mergeKey == "" {
			return false
		}
		items := byKey(before, t.mergeKey)
		return slices.ContainsFunc(value, func(item any) bool { return addsUnset(item, items.next(item), t.items()) })
	}
	return false
}

// withoutUnset leaves out the fields that are unset: of two values that the API server would
// store as one, it makes the same.
func withoutUnset(value any, t goType) any {
	if t = t.of(value); !t.isKnown() {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for key, inner := range value {
			if innerType := t.below(key); !t.isStruct() || !innerType.isKnown() || !isUnset(inner, innerType) {
				kept[key] = withoutUnset(inner, innerType)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, item := range value {
			kept[i] = withoutUnset(item, t.items())
		}
		return kept
	default:
		return value
	}
}

// covers reports whether a live value has all of a wanted one, and maybe more: in its maps,
// and in its lists that merge. It has what is null there, whatever it has.
func covers(live, wanted any, t goType) bool {
	if wanted == nil {
		return true
	}
	t = t.of(wanted)
	switch wanted := wanted.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range wanted {
			isNone := live[key] == nil && t.isStruct() && isUnset(value, t.below(key))
			if !isNone && !covers(live[key], value, t.below(key)) {
				return false
			}
		}
		return true
	case []any:
		live, ok := live.([]any)
		return ok && coversItems(live, wanted, t)
	default:
		return reflect.DeepEqual(live, wanted)
	}
}

// coversItems is [covers] for lists. The items of a list that merges are there in their order,
// and those of others are not looked at.
func coversItems(live, wanted []any, t goType) bool {
	switch {
	case t.mergeKey != "":
		keys := byKey(wanted, t.mergeKey)
		live = slices.DeleteFunc(slices.Clone(live), func(item any) bool { return !keys.has(item) })
	case t.merges:
		isMissing := func(item any) bool {
			return !slices.ContainsFunc(live, func(other any) bool { return reflect.DeepEqual(other, item) })
		}
		return !slices.ContainsFunc(wanted, isMissing)
	}
	return slices.EqualFunc(live, wanted, func(live, wanted any) bool {
		return (live == nil) == (wanted == nil) && covers(live, wanted, t.items())
	})
}
