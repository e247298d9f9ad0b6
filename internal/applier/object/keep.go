package object

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
)

// keepStored has what is wanted, and was, agree with the live object where that is as it
// should be. The API server fills in defaults inside of lists that are replaced whole, and of
// unions whose other members go: these would differ for ever.
func keepStored(wanted, before, live map[string]any, t goType) {
	if before == nil {
		before = map[string]any{}
	}
	dropExcluded(wanted, before, live, t)
	followDefaults(wanted, before, live, t)
	keepOthers(wanted, before, live, t)
	for key := range before {
		if _, said := wanted[key]; !said && live[key] == nil {
			delete(before, key) // it is gone already
		}
	}
	for key, value := range wanted {
		inner := t.below(key)
		switch {
		case live[key] == nil && t.isStruct() && isUnset(value, inner):
			delete(wanted, key)
			delete(before, key)
		case isAsWanted(value, before[key], live[key], inner):
			wanted[key] = runtime.DeepCopyJSONValue(live[key])
			before[key] = wanted[key]
		case before[key] == nil:
			added := map[string]any{}
			keepBelow(value, added, live[key], inner.of(value))
			if len(added) > 0 {
				before[key] = added
			}
		default:
			keepBelow(value, before[key], live[key], inner.of(value))
		}
	}
}

// keepBelow is [keepStored] for all that is in a value; for that of a list only if its items
// merge, by a field.
func keepBelow(wanted, before, live any, t goType) {
	switch wanted := wanted.(type) {
	case map[string]any:
		before, _ := before.(map[string]any)
		live, _ := live.(map[string]any)
		keepStored(wanted, before, live, t)
	case []any:
		if t.mergeKey != "" {
			keepItems(wanted, byKey(before, t.mergeKey), byKey(live, t.mergeKey), t.items())
		}
	}
}

// keepItems is [keepStored] for a list.
func keepItems(wanted []any, before, live itemsByKey, t goType) {
	for _, item := range wanted {
		item, isMap := item.(map[string]any)
		if !isMap {
			continue
		}
		was, is := before.next(item), live.next(item)
		if is == nil || !isAsWanted(item, was, is, t) {
			keepStored(item, was, is, t.of(item))
			continue
		}
		clear(item)
		maps.Copy(item, is)
		if was != nil {
			clear(was)
			maps.Copy(was, is)
		}
	}
}

// isAsWanted reports that a live value has all that is wanted, and that nothing of it was wanted
// before and is not any more.
func isAsWanted(wanted, before, live any, t goType) bool {
	return covers(live, wanted, t) && (before == nil || covers(wanted, before, t))
}

// itemsByKey are the items of a list that merges, by their keys. There can be two of one key.
type itemsByKey struct {
	field string
	items map[any][]map[string]any
}

func byKey(list any, field string) itemsByKey {
	found := itemsByKey{field: field, items: map[any][]map[string]any{}}
	items, _ := list.([]any)
	for _, item := range items {
		if key := found.keyOf(item); key != nil {
			item, _ := item.(map[string]any)
			found.items[key] = append(found.items[key], item)
		}
	}
	return found
}

// keyOf is nil for what cannot be a key.
func (i itemsByKey) keyOf(item any) any {
	fields, _ := item.(map[string]any)
	switch key := fields[i.field].(type) {
	case string, int64:
		return key
	default:
		return nil
	}
}

// has reports that there is an item with the key of another one.
func (i itemsByKey) has(item any) bool { return len(i.items[i.keyOf(item)]) > 0 }

// next gives an item with the key of another one, each item once; nil if there is none left.
func (i itemsByKey) next(like any) map[string]any {
	key := i.keyOf(like)
	items := i.items[key]
	if len(items) == 0 {
		return nil
	}
	i.items[key] = items[1:]
	return items[0]
}
