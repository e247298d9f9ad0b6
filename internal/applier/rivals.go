package applier

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// rivalsOf names the field managers that wrote any of what a step is to change,
// sorted. It tells of fields that were set; who removed one cannot be known.
func rivalsOf(s *step) []string {
	if s.live == nil {
		return nil
	}
	patch, err := patchOf(s)
	if err != nil || patch.isEmpty() {
		return nil
	}
	var change map[string]any
	if err := json.Unmarshal(patch.data, &change); err != nil {
		return nil
	}
	found := map[string]struct{}{}
	for _, entry := range s.live.GetManagedFields() {
		if entry.Manager == fieldManager || entry.FieldsV1 == nil {
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
		if item, ok := item.(map[string]any); ok && covers(item, key) && touches(fields, restOf(item, key)) {
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
