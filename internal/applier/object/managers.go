package object

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FieldManager is that of the reference implementation, so that its objects
// change hands without a trace.
const FieldManager = "operator-controller"

// writersOf are the other field managers that wrote any of what is to change, sorted.
func writersOf(live *unstructured.Unstructured, change map[string]any) []string {
	found := map[string]struct{}{}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == FieldManager || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err == nil && touches(fields, change) {
			found[entry.Manager] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// touches says whether a set of fields, in the form of managed fields, has one
// that a patch changes.
func touches(fields map[string]any, change any) bool {
	switch change := change.(type) {
	case map[string]any:
		for key, value := range change {
			inner, ok := fields["f:"+key].(map[string]any)
			if ok && (isLeaf(inner) || touches(inner, value)) {
				return true
			}
		}
		return false
	case []any:
		for name, inner := range fields {
			inner, _ := inner.(map[string]any)
			if name != "." && touchesItem(name, inner, change) {
				return true
			}
		}
		return false
	default:
		return true
	}
}

// touchesItem says the same about one item of a list. Items that have no key are
// only ever changed all together.
func touchesItem(name string, fields map[string]any, items []any) bool {
	text, hasKey := strings.CutPrefix(name, "k:")
	var key map[string]any
	if !hasKey || json.Unmarshal([]byte(text), &key) != nil {
		return true
	}
	for _, item := range items {
		item, ok := item.(map[string]any)
		if ok && covers(item, key, goType{}) && (item["$patch"] == "delete" || touches(fields, restOf(item, key))) {
			return true
		}
	}
	return false
}

// restOf an item is what is not its key.
func restOf(item, key map[string]any) map[string]any {
	rest := maps.Clone(item)
	maps.DeleteFunc(rest, func(name string, _ any) bool {
		_, found := key[name]
		return found
	})
	return rest
}

func isLeaf(fields map[string]any) bool { return len(fields) == 0 }

// maxManagers bounds the field managers that are named.
const maxManagers = 3

// managersOf names the first of those that wrote an object, sorted.
func managersOf(live *unstructured.Unstructured) []string {
	found := map[string]struct{}{}
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource == "" && entry.Manager != "" {
			found[entry.Manager] = struct{}{}
		}
	}
	managers := slices.Sorted(maps.Keys(found))
	return managers[:min(len(managers), maxManagers)]
}

// NameManagers names field managers for people. Each has at most 128 bytes, by rule of the
// API.
func NameManagers(managers []string) string {
	quoted := make([]string, len(managers))
	for i, manager := range managers {
		quoted[i] = strconv.Quote(manager)
	}
	return strings.Join(quoted, " and ")
}
