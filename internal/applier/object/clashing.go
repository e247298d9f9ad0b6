package object

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// A strategic patch cannot tell apart two entries of a list with the same key, such as a port for TCP and for UDP. Such a
// list is replaced whole, with the entries that other writers have added. All other lists merge.

// replacingClashing returns a strategic patch that replaces the lists with such entries; false if there are none, or if
// the patch would not lead to the desired object.
func (d documents) replacingClashing(t goType) (Patch, bool) {
	var wanted, before, live map[string]any
	if utiljson.Unmarshal(d.wanted, &wanted) != nil || utiljson.Unmarshal(d.before, &before) != nil || utiljson.Unmarshal(d.live, &live) != nil {
		return Patch{}, false
	}
	found := takeClashing(wanted, before, live, t, nil)
	var rest documents
	var errs [3]error
	rest.wanted, errs[0] = json.Marshal(wanted)
	rest.before, errs[1] = json.Marshal(before)
	rest.live, errs[2] = json.Marshal(live)
	if len(found) == 0 || slices.ContainsFunc(errs[:], func(err error) bool { return err != nil }) {
		return Patch{}, false
	}
	data, _, err := rest.strategicPatch(t)
	var patch map[string]any
	if err != nil || utiljson.Unmarshal(data, &patch) != nil {
		return Patch{}, false
	}
	for _, list := range found {
		list.addTo(patch)
	}
	if data, err = json.Marshal(patch); err != nil {
		return Patch{}, false
	}
	after, err := appliedTo(d.live, data, t)
	return Patch{Kind: types.StrategicMergePatchType, Data: data}, err == nil && d.areReached(after, t)
}

// clashing is a list to replace, and its place in the object.
type clashing struct {
	path  []placeStep
	items []any
}

// placeStep leads to a field, and from there to an entry of the list in the field if it has a key.
type placeStep struct {
	field, mergeKey string
	key             any
}

// takeClashing removes the lists with clashing entries from wanted, before and live, and returns the lists to replace.
func takeClashing(wanted, before, live map[string]any, t goType, path []placeStep) (found []clashing) {
	for field, value := range wanted {
		inner := t.below(field)
		switch value := value.(type) {
		case map[string]any:
			was, _ := before[field].(map[string]any)
			is, _ := live[field].(map[string]any)
			found = append(found, takeClashing(value, was, is, inner.of(value), append(slices.Clip(path), placeStep{field: field}))...)
		case []any:
			if inner.mergeKey == "" {
				continue
			}
			if !clash(value, inner.mergeKey) && !clash(before[field], inner.mergeKey) && !clash(live[field], inner.mergeKey) {
				found = append(found, takeBelow(value, before[field], live[field], inner, path, field)...)
				continue
			}
			if !isAsWanted(value, before[field], live[field], inner) {
				items := withOthers(value, before[field], live[field], inner.mergeKey)
				found = append(found, clashing{path: append(slices.Clip(path), placeStep{field: field}), items: items})
			}
			delete(wanted, field)
			delete(before, field)
			delete(live, field)
		}
	}
	return found
}

func takeBelow(wanted []any, before, live any, t goType, path []placeStep, field string) (found []clashing) {
	was, is := byKey(before, t.mergeKey), byKey(live, t.mergeKey)
	for _, item := range wanted {
		fields, _ := item.(map[string]any)
		step := placeStep{field: field, mergeKey: t.mergeKey, key: fields[t.mergeKey]}
		found = append(found, takeClashing(fields, was.next(item), is.next(item), t.items().of(item), append(slices.Clip(path), step))...)
	}
	return found
}

// clash reports whether two entries of a list have the same key, or one has none.
func clash(list any, mergeKey string) bool {
	return len(byKey(list, mergeKey).items) != len(listOf(list))
}

// withOthers returns the wanted entries of a list, and after them the entries of other writers.
func withOthers(wanted []any, before, live any, mergeKey string) []any {
	ours, were := byKey(wanted, mergeKey), byKey(before, mergeKey)
	items := slices.Clone(wanted)
	for _, item := range listOf(live) {
		if ours.keyOf(item) != nil && !ours.has(item) && !were.has(item) {
			items = append(items, item)
		}
	}
	return items
}

// addTo adds the replacement of the list to a patch.
func (c clashing) addTo(patch map[string]any) {
	last := len(c.path) - 1
	for _, step := range c.path[:last] {
		patch = step.in(patch)
	}
	patch[c.path[last].field] = append([]any{map[string]any{"$patch": "replace"}}, c.items...)
}

// in returns the place in a patch to which a step leads, and adds it if there is none.
func (s placeStep) in(patch map[string]any) map[string]any {
	if s.mergeKey == "" {
		next, isMap := patch[s.field].(map[string]any)
		if !isMap {
			next = map[string]any{}
			patch[s.field] = next
		}
		return next
	}
	items, _ := patch[s.field].([]any)
	for _, item := range items {
		if item, _ := item.(map[string]any); item != nil && fmt.Sprint(item[s.mergeKey]) == fmt.Sprint(s.key) {
			return item
		}
	}
	next := map[string]any{s.mergeKey: s.key}
	patch[s.field] = append(items, next)
	return next
}
