package patches_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// kinds are those that the API server reads into Go types.
var kinds = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(apiregistrationv1.AddToScheme(scheme))
	return scheme
}()

// widget has the fields of the custom resource, all of which can be null.
type widget struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec *struct {
		Size      *int            `json:"size"`
		Mode      *string         `json:"mode"`
		Note      *string         `json:"note"`
		Nullable  *string         `json:"nullable"`
		Defaulted *string         `json:"defaulted"`
		Limit     *string         `json:"limit"`
		Flag      *bool           `json:"flag"`
		Ratio     *float64        `json:"ratio"`
		Names     *[]string       `json:"names"`
		Labels    *map[string]any `json:"labels"`
		Block     *struct {
			Open *bool   `json:"open"`
			Text *string `json:"text"`
		} `json:"block"`
		Items []struct {
			Name *string `json:"name"`
			Open *bool   `json:"open"`
			Text *string `json:"text"`
		} `json:"items"`
	} `json:"spec"`
}

func isBuiltin(kind schema.GroupVersionKind) bool { return kinds.Recognizes(kind) }

// typeOf is the Go type of a kind.
func typeOf(kind schema.GroupVersionKind) reflect.Type {
	if t, found := kinds.AllKnownTypes()[kind]; found {
		return t
	}
	return reflect.TypeFor[widget]()
}

// fieldsOf are the fields of a struct by their names in JSON; none for any other type.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	if t = pointedAt(t); t == nil || t.Kind() != reflect.Struct || isWhole(t) {
		return fields
	}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			fields[name] = field
		case name == "" && field.Anonymous:
			maps.Copy(fields, fieldsOf(field.Type))
		}
	}
	return fields
}

// isWhole says that a type has a form of its own in JSON, such as a quantity.
func isWhole(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func pointedAt(t reflect.Type) reflect.Type {
	if t != nil && t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// below is the type of what is under a key of a map, or of the items of a list; nil if it is
// not known.
func below(t reflect.Type, key any) reflect.Type {
	if t = pointedAt(t); t == nil || isWhole(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice:
		return t.Elem()
	case reflect.Struct:
		name, _ := key.(string)
		return fieldsOf(t)[name].Type
	default:
		return nil
	}
}

// mergeKeyAt is the field by which the items of the list at a path merge; empty if they do
// not.
func mergeKeyAt(t reflect.Type, path []any) string {
	for _, step := range path[:len(path)-1] {
		t = below(t, step)
	}
	name, _ := path[len(path)-1].(string)
	return mergeKeyOf(t, name)
}

// mergeKeyOf is [mergeKeyAt] for a field of a struct. The imagePullSecrets of a ServiceAccount merge here, although the
// API server replaces them (F15).
func mergeKeyOf(t reflect.Type, field string) string {
	if t == reflect.TypeFor[corev1.ServiceAccount]() && field == "imagePullSecrets" {
		return "name"
	}
	return fieldsOf(t)[field].Tag.Get("patchMergeKey")
}

// each visits a value and all that is in it, with their types.
func each(value any, t reflect.Type, path []any, visit func(path []any, value any, t reflect.Type)) {
	visit(path, value, t)
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			each(value[key], below(t, key), append(slices.Clip(path), key), visit)
		}
	case []any:
		for i, item := range value {
			each(item, below(t, i), append(slices.Clip(path), i), visit)
		}
	}
}

// storable leaves out what is not there any more when an object is read back: empty lists and
// maps, if the type can only be that.
func storable(value any, t reflect.Type) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for key, inner := range value {
			innerType := below(t, key)
			if inner = storable(inner, innerType); inner == nil {
				continue
			}
			isEntry := pointedAt(t) == reflect.TypeFor[map[string][]byte]() // an empty entry counts
			isCollection := innerType != nil && !isEntry && (innerType.Kind() == reflect.Map || innerType.Kind() == reflect.Slice)
			if isCollection && reflect.ValueOf(inner).Len() == 0 {
				continue
			}
			kept[key] = inner
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, item := range value {
			kept[i] = storable(item, below(t, i))
		}
		return kept
	}
	return value
}

// withoutNulls leaves out what is null in a map. An entry of a map of texts has an empty one
// instead.
func withoutNulls(value any, t reflect.Type) any {
	fields, isMap := value.(map[string]any)
	if !isMap {
		return value
	}
	kept := make(map[string]any, len(fields))
	for key, inner := range fields {
		switch {
		case inner != nil:
			kept[key] = withoutNulls(inner, below(t, key))
		case t != nil && t == reflect.TypeFor[map[string]string]():
			kept[key] = ""
		}
	}
	return kept
}
