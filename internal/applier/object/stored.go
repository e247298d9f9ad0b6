package object

import (
	"encoding/base64"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/quantity"
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

// typed is an object in its Go type, in which the same has one form: a quantity in other
// words, an empty list and none, and false where that is the default. It is false for an
// object that is not of the type and, strictly, for one with fields that the type does not
// have: what they say would be lost. Definitions are not told apart by it, because fields
// that are not known are lost in their schemas without an error.
func typed(kind schema.GroupVersionKind, fields map[string]any, strictly bool) (runtime.Object, bool) {
	object, err := builtins.New(kind)
	if err != nil || kind.Group == apiextensionsv1.GroupName || hasHugeNumber(fields) {
		return nil, false
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, object, strictly)
	return object, err == nil
}

// hasHugeNumber reports a number that would wrap around in a small Go type, and a quantity
// with which nobody can calculate.
func hasHugeNumber(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			if hasHugeNumber(inner) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(value, hasHugeNumber)
	case string:
		return quantity.IsHuge(value)
	case int64:
		return value > math.MaxInt32 || value < math.MinInt32
	case float64:
		return value > math.MaxInt32 || value < math.MinInt32
	}
	return false
}
