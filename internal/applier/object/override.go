package object

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxCauses bounds how many causes of one refusal are evaluated.
const maxCauses = 20

// Override returns the patch to send after the API server has refused the patch of [ThreeWay.Patch] as invalid. It makes the
// same changes. In the places that the refusal names, it also removes values that only another writer has set: a field
// that excludes a field of the revision, or an entry of a list. All other fields of other writers are kept. If the API server
// could not read the refused patch, the result is a merge patch. The result is empty if there is nothing to remove.
func (w ThreeWay) Override(refusal error) (Patch, error) {
	refused, err := w.Patch()
	if err != nil {
		return Patch{}, err
	}
	after, err := refused.AppliedTo(w.Live)
	if err != nil {
		return Patch{}, err
	}
	t, isBuiltin := goTypeOf(w.Wanted.GroupVersionKind())
	root := node{value: after.Object, wanted: w.asStored(t).Wanted.Object, t: t}
	isChanged, isUnreadable := false, false
	for _, cause := range causesOf(refusal) {
		isChanged = root.override(stepsOf(cause.Field), cause.Message) || isChanged
		isUnreadable = isUnreadable || cause.Field == "patch" // a field is unknown to the API server, or has another type
	}
	if !isChanged && !isUnreadable {
		return Patch{}, nil
	}
	live, err := json.Marshal(w.Live.Object)
	if err != nil {
		return Patch{}, fmt.Errorf("patching %s: %w", KeyOf(w.Live), err)
	}
	fixed, err := json.Marshal(withoutRemoved(after.Object))
	if err != nil {
		return Patch{}, fmt.Errorf("patching %s: %w", KeyOf(w.Live), err)
	}
	if !isBuiltin || isUnreadable || refused.Kind == types.MergePatchType {
		data, err := jsonpatch.CreateMergePatch(live, fixed)
		return Patch{Kind: types.MergePatchType, Data: data}, err
	}
	changes := documents{before: live, wanted: fixed, live: live}
	if patch, found := changes.replacingClashing(t); found {
		return patch, nil
	}
	data, _, err := changes.strategicPatch(t)
	return Patch{Kind: types.StrategicMergePatchType, Data: data}, err
}

// causesOf returns the causes in an answer of the API server, each about one field.
func causesOf(refusal error) []metav1.StatusCause {
	answer := apierrors.APIStatus(nil)
	if !errors.As(refusal, &answer) || answer.Status().Details == nil {
		return nil
	}
	causes := answer.Status().Details.Causes
	return causes[:min(len(causes), maxCauses)]
}

// steps matches the parts of a path such as spec.ports[1].name or data[a.b]: names, indices and keys.
var steps = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

func stepsOf(path string) []string {
	found := steps.FindAllString(path, -1)
	for i, step := range found {
		found[i] = strings.Trim(step, "[]")
	}
	return found
}

// removed replaces an entry of a list that has to be removed, so that the indices of other entries do not change.
type removed struct{}

// node is a place in an object as a refused patch would have left it.
type node struct {
	value any

	// wanted is the value of the revision in this place; nil if another writer has set the value.
	wanted any

	t      goType
	isItem bool
	remove func()
}

// override removes the values at a path, or related to it, that only other writers have set. It returns false if there are
// none. In this order, it removes:
//   - the innermost entry of a list on the path that the revision does not have;
//   - the field at the end of the path, if the revision does not set it;
//   - fields that the message mentions;
//   - entries with a duplicate value;
//   - all fields of other writers in the smallest struct around the path.
func (n node) override(path []string, message string) bool {
	if len(path) == 0 || path[0] == "metadata" || path[0] == "status" {
		return false
	}
	nodes := []node{n}
	for _, step := range path {
		next, found := nodes[len(nodes)-1].below(step)
		if !found {
			break
		}
		nodes = append(nodes, next)
	}
	for _, one := range slices.Backward(nodes) {
		if one.isItem && one.wanted == nil {
			one.remove()
			return true
		}
	}
	last := nodes[len(nodes)-1]
	if last.wanted == nil {
		last.remove()
		return true
	}
	return dropMentioned(nodes, message) || dropDuplicates(nodes, path) || dropOthers(nodes)
}

// below returns the node under a name, or under an index.
func (n node) below(step string) (node, bool) {
	t := n.t.of(n.value)
	switch value := n.value.(type) {
	case map[string]any:
		step = t.fieldName(step)
		inner, found := value[step]
		wanted, _ := n.wanted.(map[string]any)
		return node{value: inner, wanted: wanted[step], t: t.below(step), remove: func() { delete(value, step) }}, found
	case []any:
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(value) {
			return node{}, false
		}
		return n.item(value, i), true
	}
	return node{}, false
}

func (n node) item(list []any, i int) node {
	t := n.t.of(n.value)
	found := node{value: list[i], t: t.items(), isItem: true, remove: func() { list[i] = removed{} }}
	wanted, _ := n.wanted.([]any)
	switch {
	case t.mergeKey != "":
		if item := byKey(wanted, t.mergeKey).next(list[i]); item != nil {
			found.wanted = item
		}
	case i < len(wanted):
		found.wanted = wanted[i]
	}
	return found
}

// dropMentioned removes fields of other writers that a message mentions, from the struct at the end of the path or from the
// struct around it. The API server reports rules between two fields with such messages.
func dropMentioned(nodes []node, message string) (isChanged bool) {
	mentioned := sets.New(words.FindAllString(message, -1)...)
	isMentioned := func(name string, _ any) bool { return mentioned.Has(name) }
	for _, one := range slices.Backward(nodes[max(0, len(nodes)-2):]) {
		fields, others := one.others()
		for _, value := range others {
			if entries, isMap := value.(map[string]any); isMap {
				isChanged = deleteThat(entries, isMentioned) || isChanged // such as the limit of one resource
			}
		}
		maps.DeleteFunc(others, func(name string, value any) bool { return !isMentioned(name, value) })
		if deleteThat(fields, func(name string, _ any) bool { return others[name] != nil }) || isChanged {
			return true
		}
	}
	return false
}

var words = regexp.MustCompile(`\w+`)

func deleteThat(fields map[string]any, selects func(string, any) bool) bool {
	before := len(fields)
	maps.DeleteFunc(fields, selects)
	return len(fields) < before
}

// others returns the fields of a struct, and a copy with only the fields of other writers.
func (n node) others() (fields, others map[string]any) {
	fields, _ = n.value.(map[string]any)
	wanted, _ := n.wanted.(map[string]any)
	others = maps.Clone(fields)
	maps.DeleteFunc(others, func(name string, _ any) bool { return wanted[name] != nil || name == "status" })
	return fields, others
}

// dropDuplicates removes entries of other writers that have the same value in a field as an entry of the revision. The
// value must be unique. Such an entry exists if another writer has changed the key of an entry of the revision.
func dropDuplicates(nodes []node, path []string) (isChanged bool) {
	last := len(nodes) - 1
	if last < 2 || !nodes[last-1].isItem {
		return false
	}
	list, _ := nodes[last-2].value.([]any) // a list, as it has items
	for i := range list {
		other := nodes[last-2].item(list, i)
		fields, _ := other.value.(map[string]any)
		if other.wanted == nil && reflect.DeepEqual(fields[path[last-1]], nodes[last].value) {
			other.remove()
			isChanged = true
		}
	}
	return isChanged
}

// dropOthers removes all fields of other writers from the smallest struct on the path that has some. It never changes the
// whole spec of a built-in kind, or structs with merging lists, to which other writers add entries.
func dropOthers(nodes []node) bool {
	for i, one := range slices.Backward(nodes) {
		if i == 0 || i == 1 && one.t.isKnown() || one.hasMergingLists() {
			return false
		}
		if dropUnwanted(one.value, one.wanted) {
			return true
		}
	}
	return false
}

// dropUnwanted removes the fields of other writers from a struct, and from all structs in it.
func dropUnwanted(value, wanted any) (isChanged bool) {
	fields, others := node{value: value, wanted: wanted}.others()
	for name := range others {
		delete(fields, name)
	}
	isChanged = len(others) > 0
	ours, _ := wanted.(map[string]any)
	for name, inner := range fields {
		isChanged = dropUnwanted(inner, ours[name]) || isChanged
	}
	return isChanged
}

func (n node) hasMergingLists() bool {
	fields, _ := n.value.(map[string]any)
	t := n.t.of(n.value)
	for name := range fields {
		if t.below(name).merges {
			return true
		}
	}
	return false
}

// withoutRemoved deletes the removed entries of lists.
func withoutRemoved(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			value[name] = withoutRemoved(inner)
		}
	case []any:
		value = slices.DeleteFunc(value, func(item any) bool { return item == any(removed{}) })
		for i, item := range value {
			value[i] = withoutRemoved(item)
		}
		return value
	}
	return value
}

// RefusedError is a change that the API server has refused as invalid, also after fields of other writers were removed.
type RefusedError struct {
	// Managers are the other field managers of the fields to be changed, sorted and bounded.
	Managers []string

	Err error
}

// RefusedAs returns a [*RefusedError] with the other field managers that wrote the refused fields, or the fields that a patch
// of [ThreeWay.Override] would change. It returns the refusal itself if there are none.
func (w ThreeWay) RefusedAs(refusal error, override Patch) error {
	managers := override.Difference(w.Live).Managers
	t, _ := goTypeOf(w.Wanted.GroupVersionKind())
	for _, cause := range causesOf(refusal) {
		if change, _ := changeAt(w.Live.Object, t, stepsOf(cause.Field)).(map[string]any); change != nil {
			managers = append(managers, writersOf(w.Live, change)...)
		}
	}
	slices.Sort(managers)
	if managers = slices.Compact(managers); len(managers) == 0 {
		return refusal
	}
	return &RefusedError{Managers: managers[:min(len(managers), maxManagers)], Err: refusal}
}

// changeAt returns a patch that changes the place at a path in a value; nil if there is no such place.
func changeAt(value any, t goType, path []string) any {
	if len(path) == 0 {
		return value
	}
	next, found := node{value: value, t: t}.below(path[0])
	if !found {
		return nil
	}
	inner := changeAt(next.value, next.t, path[1:])
	key := t.of(value).mergeKey
	fields, isMap := inner.(map[string]any)
	switch item, _ := next.value.(map[string]any); {
	case inner == nil:
		return nil
	case !next.isItem:
		return map[string]any{path[0]: inner}
	case key != "" && isMap:
		fields = maps.Clone(fields)
		fields[key] = item[key]
		return []any{fields}
	default:
		return []any{inner}
	}
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%v (fields of the object were changed by field manager %s)", e.Err, NameManagers(e.Managers))
}

func (e *RefusedError) Unwrap() error { return e.Err }
