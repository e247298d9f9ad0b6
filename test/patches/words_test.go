package patches_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Ways to write a manifest that may mean the same, made up for each manifest from the Go type
// of its kind.
var wordings = map[string]func(*subject) []edit{
	"nulls": func(s *subject) []edit {
		return s.unsaid(func(field reflect.Type) (any, bool) { return nil, true })
	},
	"empty lists and maps": func(s *subject) []edit {
		return s.unsaid(func(field reflect.Type) (any, bool) {
			switch field.Kind() {
			case reflect.Slice:
				if field == reflect.TypeFor[[]byte]() {
					return "", true
				}
				return []any{}, true
			case reflect.Map:
				return map[string]any{}, true
			case reflect.Struct:
				return map[string]any{}, !isWhole(field)
			}
			return nil, false
		})
	},
	"zeros": func(s *subject) []edit {
		return s.unsaid(func(field reflect.Type) (any, bool) {
			switch {
			case field == reflect.TypeFor[intstr.IntOrString](), field.Kind() >= reflect.Int && field.Kind() <= reflect.Uint64:
				return int64(0), true
			case field == reflect.TypeFor[resource.Quantity]():
				return "0", true
			case field.Kind() == reflect.String:
				return "", true
			case field.Kind() == reflect.Bool:
				return false, true
			}
			return nil, false
		})
	},
	"defaults that are said": func(s *subject) (edits []edit) {
		each(s.first.Object, typeOf(s.kind), nil, func(path []any, value any, _ reflect.Type) {
			_, inManifest := at(s.manifest.Object, path)
			_, parent := at(s.manifest.Object, path[:max(len(path)-1, 0)])
			if !inManifest && parent && isSettable(path) {
				edits = append(edits, edit{path: path, value: value})
			}
		})
		return edits
	},
	"unsaid": func(s *subject) (edits []edit) {
		s.eachValue(func(path []any, value any, _ reflect.Type) {
			if _, inList := path[len(path)-1].(int); !inList && !isCollection(value) {
				edits = append(edits, edit{path: path, remove: true})
			}
		})
		return edits
	},
	"quantities": func(s *subject) (edits []edit) {
		s.eachValue(func(path []any, value any, t reflect.Type) {
			if pointedAt(t) == reflect.TypeFor[resource.Quantity]() {
				for _, other := range otherQuantities(value) {
					edits = append(edits, edit{path: path, value: other})
				}
			}
		})
		return edits
	},
	"times": func(s *subject) (edits []edit) {
		s.eachValue(func(path []any, value any, t reflect.Type) {
			text, _ := value.(string)
			moment, err := time.Parse(time.RFC3339, text)
			if t := pointedAt(t); err == nil && (t == reflect.TypeFor[metav1.Time]() || t == reflect.TypeFor[metav1.MicroTime]()) {
				layout := time.RFC3339
				if t == reflect.TypeFor[metav1.MicroTime]() {
					layout = metav1.RFC3339Micro
				}
				edits = append(edits, edit{path: path, value: moment.In(time.FixedZone("elsewhere", 3600)).Format(layout)})
			}
		})
		return edits
	},
	"base64 in lines": func(s *subject) (edits []edit) {
		s.eachValue(func(path []any, value any, t reflect.Type) {
			if text, _ := value.(string); t == reflect.TypeFor[[]byte]() && len(text) > 4 {
				edits = append(edits, edit{path: path, value: text[:4] + "\n" + text[4:] + "\n"})
			}
		})
		return edits
	},
	"data as texts": func(s *subject) (edits []edit) {
		data, _, _ := unstructured.NestedStringMap(s.manifest.Object, "data")
		for key, value := range data {
			if text, err := base64.StdEncoding.DecodeString(value); err == nil && s.kind.Kind == "Secret" {
				edits = append(edits, edit{path: []any{"data", key}, remove: true}, edit{path: []any{"stringData"}, value: map[string]any{}},
					edit{path: []any{"stringData", key}, value: string(text)})
			}
		}
		return edits
	},
}

func wordingsInOrder() []func(*subject) []edit {
	var all []func(*subject) []edit
	for _, name := range slices.Sorted(maps.Keys(wordings)) {
		all = append(all, wordings[name])
	}
	return all
}

// eachValue visits all of the manifest that it can set.
func (s *subject) eachValue(visit func(path []any, value any, t reflect.Type)) {
	each(s.manifest.Object, typeOf(s.kind), nil, func(path []any, value any, t reflect.Type) {
		if isSettable(path) {
			visit(path, value, t)
		}
	})
}

// unsaid are the fields that the manifest does not have, with a value for each.
func (s *subject) unsaid(valueOf func(field reflect.Type) (any, bool)) (edits []edit) {
	each(s.manifest.Object, typeOf(s.kind), nil, func(path []any, value any, t reflect.Type) {
		said, isMap := value.(map[string]any)
		if !isMap {
			return
		}
		fields := fieldsOf(t)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			path := append(slices.Clip(path), name)
			if _, found := said[name]; found || !isSettable(path) {
				continue
			}
			if value, ok := valueOf(fields[name].Type); ok {
				edits = append(edits, edit{path: path, value: value})
			}
		}
	})
	return edits
}

// isSettable tells what is up to a manifest.
func isSettable(path []any) bool {
	if len(path) == 0 {
		return false
	}
	switch path[0] {
	case "apiVersion", "kind", "status":
		return false
	case "metadata":
		return len(path) > 1 && (path[1] == "labels" || path[1] == "annotations" || path[1] == "finalizers")
	}
	return true
}

func isCollection(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// otherQuantities are the same quantity in other forms.
func otherQuantities(value any) []any {
	text, isText := value.(string)
	if !isText {
		return nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return nil
	}
	others := []any{quantity.AsDec().String()}
	if milli := quantity.MilliValue(); milli != 0 {
		others = append(others, fmt.Sprintf("%dm", milli))
	}
	if whole, exact := quantity.AsInt64(); exact {
		others = append(others, whole, fmt.Sprintf("%de0", whole))
	}
	return others
}
