package object

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestCheckSizes(t *testing.T) {
	t.Parallel()
	object := func(kind, field, value string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, field: map[string]any{"k": value}}}
		object.SetName("a")
		return object
	}
	full := strings.Repeat("x", maxDataBytes)
	encoded := base64.StdEncoding.EncodeToString([]byte(full))
	replaced := object("Secret", "data", encoded)
	replaced.Object["stringData"] = map[string]any{"k": "x", "other": "x"}
	tests := map[string]struct {
		object *unstructured.Unstructured
		want   string
	}{
		"F19: a full ConfigMap":           {object: object("ConfigMap", "data", full)},
		"F19: one byte more":              {object: object("ConfigMap", "data", full+"x"), want: `ConfigMap "a" is too large: it has 1048577 bytes of data, and API servers accept at most 1048576`},
		"F19: a full ConfigMap in base64": {object: object("ConfigMap", "binaryData", encoded)},
		"F19: a full Secret":              {object: object("Secret", "data", encoded)},
		"F19: a Secret in plain text":     {object: object("Secret", "stringData", full+"x"), want: `Secret "a" is too large: it has 1048577 bytes of data, and API servers accept at most 1048576`},
		"F19: data that is replaced":      {object: replaced},
		"F19: data that is no text":       {object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": int64(1)}}}},
		"F19: a large built-in kind":      {object: object("Service", "spec", strings.Repeat("x", 2<<20))},
		"F19: a larger one":               {object: object("Service", "spec", strings.Repeat("x", 3<<20)), want: `Service "a" is too large: it has 3145804 bytes, and API servers accept at most 3145728`},
		"F19: a large custom resource":    {object: object("Widget", "spec", strings.Repeat("x", 2<<20-100))},
		"F19: a larger custom resource":   {object: object("Widget", "spec", strings.Repeat("x", 2<<20)), want: `Widget "a" is too large: it has 2097227 bytes, and API servers accept at most 2097152`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := CheckSizes([]*unstructured.Unstructured{object("ConfigMap", "data", "small"), tc.object})
			if (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want {
				t.Errorf("err = %v\nwant  %s", err, tc.want)
			}
			if tooLarge := (*TooLargeError)(nil); err != nil && !errors.As(err, &tooLarge) {
				t.Errorf("the error is a %T", err)
			}
		})
	}
}
