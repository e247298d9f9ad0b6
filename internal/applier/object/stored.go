package object

import (
	"encoding/base64"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What is wanted and what the API server has stored can be the same and written in two
// ways. A patch from one to the other would change nothing, each time it is sent.

// asStored is an object with those fields replaced that the API server replaces before it
// stores one: no live object has them as they were. What is not an object of its kind stays
// as it is, for the API server to refuse. It shares the rest with the object.
func asStored(object *unstructured.Unstructured) *unstructured.Unstructured {
	switch object.GroupVersionKind() {
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		return &unstructured.Unstructured{Object: withStringData(object.Object)}
	case corev1.SchemeGroupVersion.WithKind("Service"):
		return &unstructured.Unstructured{Object: withTargetPorts(object.Object)}
	}
	return object
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

// withTargetPorts gives ports of a Service that say zero, or an empty name, for where they
// lead the default, which is the port itself.
func withTargetPorts(service map[string]any) map[string]any {
	spec, _ := service["spec"].(map[string]any)
	ports, _ := spec["ports"].([]any)
	replaced := make([]any, len(ports))
	for i, item := range ports {
		port, isPort := item.(map[string]any)
		if target := port["targetPort"]; isPort && (target == int64(0) || target == float64(0) || target == "") {
			port = maps.Clone(port)
			port["targetPort"] = port["port"]
			item = port
		}
		replaced[i] = item
	}
	if len(ports) == 0 {
		return service
	}
	service, spec = maps.Clone(service), maps.Clone(spec)
	spec["ports"], service["spec"] = replaced, spec
	return service
}

// isStored reports that a live object of a built-in kind has every field that is wanted: the
// other way of writing a quantity, an empty list instead of none, and false for a field that
// is false if nobody says anything, are the same. It is false where that is not known.
func isStored(kind schema.GroupVersionKind, wanted, live map[string]any) bool {
	// A field that this program does not know would be lost, and what it says with it.
	read, ok := reread(kind, wanted, true)
	if !ok {
		return false
	}
	stored, ok := reread(kind, live, false)
	return ok && hasAll(stored, wanted, read)
}

// reread is an object as its Go type writes it.
func reread(kind schema.GroupVersionKind, object map[string]any, strictly bool) (map[string]any, bool) {
	typed, err := builtins.New(kind)
	if err != nil {
		return nil, false
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, typed, strictly); err != nil {
		return nil, false
	}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	return written, err == nil
}

// hasAll reports that a live value has what was written and, in the form of its type, read.
// Lists are the same as a whole.
func hasAll(live, written, read any) bool {
	switch written := written.(type) {
	case map[string]any:
		read, isRead := read.(map[string]any)
		live, isLive := live.(map[string]any)
		if isRead != isLive {
			return false
		}
		for key, value := range written {
			// What its type does not write is what it is without anybody's word.
			valueRead, isWritten := read[key]
			valueLive, isThere := live[key]
			if isWritten != isThere || isWritten && !hasAll(valueLive, value, valueRead) {
				return false
			}
		}
		return true
	case []any:
		read, _ := read.([]any)
		live, _ := live.([]any)
		if len(read) != len(live) || len(read) != len(written) {
			return false
		}
		for i := range live {
			if !hasAll(live[i], written[i], read[i]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(live, read)
	}
}
