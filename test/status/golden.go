package status

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What stands in goldens for what is different in each run.
const (
	someTime     = "2026-01-01T00:00:00Z"
	someUID      = "00000000-0000-0000-0000-000000000000"
	someRevision = "1"
)

var (
	digests   = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	addresses = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	times     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	uids      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// Names that end in a digest of what the object holds, or in what the API server
	// makes up, are left: they are the same each time, or in no status.
)

// Moment is a capture that has a name.
type Moment struct {
	Name string
	Capture
}

// Golden writes moments as kubectl get -o yaml would print them one after the
// other, without what is different in each run. Conditions are sorted: their order
// tells which of them came first, which differs too.
func Golden(moments []Moment) ([]byte, error) {
	var text bytes.Buffer
	for _, moment := range moments {
		object, err := yaml.Marshal(normalised(moment.Object).Object)
		if err != nil {
			return nil, fmt.Errorf("writing %q: %w", moment.Name, err)
		}
		fmt.Fprintf(&text, "---\n# %s\n# kstatus: %s\n# Argo CD: %s\n# kubectl get: %s\n", moment.Name, moment.Kstatus(), moment.Argo.Status, rowText(moment.Row))
		text.Write(object)
	}
	return text.Bytes(), nil
}

// rowText leaves out cells that tell of time.
func rowText(row map[string]string) string {
	var cells []string
	for _, column := range slices.Sorted(maps.Keys(row)) {
		if column != "AGE" && column != "LASTUNPACKED" && column != "NAME" {
			cells = append(cells, column+"="+row[column])
		}
	}
	return strings.Join(cells, ", ")
}

func normalised(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	object.SetResourceVersion(someRevision)
	if conditions, found, _ := unstructured.NestedSlice(object.Object, "status", "conditions"); found {
		slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(conditionType(a), conditionType(b)) })
		// The path was just found.
		_ = unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions")
	}
	object.Object, _ = replaced(object.Object).(map[string]any)
	return object
}

func conditionType(condition any) string {
	fields, _ := condition.(map[string]any)
	kind, _ := fields["type"].(string)
	return kind
}

// replaced is a value with all texts in it made the same in each run.
func replaced(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			value[name] = replaced(field)
		}
		return value
	case []any:
		for i, item := range value {
			value[i] = replaced(item)
		}
		return value
	case string:
		value = digests.ReplaceAllString(value, "sha256:"+strings.Repeat("0", 64))
		value = addresses.ReplaceAllString(value, "127.0.0.1:80")
		value = times.ReplaceAllString(value, someTime)
		return uids.ReplaceAllString(value, someUID)
	}
	return value
}
