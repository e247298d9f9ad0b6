package patches_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// triple is what a patch is made of.
type triple struct{ before, wanted, live *unstructured.Unstructured }

func (t triple) patch() (object.Patch, error) {
	return object.ThreeWay{Before: t.before, Wanted: t.wanted, Live: t.live}.Patch()
}

// verdict is what a patch would do, by ours and by the API server's judgement.
type verdict int

const (
	agreed      verdict = iota
	unpatchable         // the API server takes no such patch
	void                // a patch would be sent, and change nothing
)

// judge holds that nothing is left undone, and that no repair changes nothing. It compares the
// patch with what the API server makes, in a dry run, of one in which nothing is left out.
func (s *subject) judge(t *testing.T, what string, manifests triple) verdict {
	t.Helper()
	three := triple{before: s.written(t, manifests.before), wanted: s.written(t, manifests.wanted), live: manifests.live}
	patch, err := three.patch()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return unpatchable
	}
	if !patch.IsEmpty() {
		return s.judgeSent(t, what, three, patch)
	}
	after, err := s.patched(t.Context(), three.before, three.wanted, three.live)
	if err != nil {
		return unpatchable
	}
	if lacking := s.lacks(three.wanted, after, three.live); lacking != "" {
		t.Errorf("%s: nothing is sent, although %s is not as wanted", what, lacking)
	}
	kept, err := s.patched(t.Context(), three.wanted, three.wanted, three.live)
	if err == nil && !s.isSame(kept, after) && s.isCurrent(t, three.live) {
		t.Errorf("%s: nothing is sent, although something was dropped that is still there", what)
	}
	return agreed
}

// judgeSent is about a patch that would be sent. Of a field that is dropped, it cannot be
// known that it had its default.
func (s *subject) judgeSent(t *testing.T, what string, three triple, patch object.Patch) verdict {
	t.Helper()
	after, err := s.tryPatch(t.Context(), patch.Kind, patch.Data)
	switch {
	case err != nil:
		return unpatchable
	case !s.isSame(three.live, after) || !s.isCurrent(t, three.live):
		return agreed
	case s.kind.Kind == "CertificateSigningRequest", s.kind.Kind == "Namespace" && bytes.HasPrefix(patch.Data, []byte(`{"spec":`)):
		return unpatchable // the API server ignores changes of its spec
	case reflect.DeepEqual(three.before, three.wanted):
		t.Errorf("%s: this would be sent, and change nothing:\n%s", what, patch.Data)
	}
	return void
}

// isCurrent reports that nobody has written the object since it was read: controllers write
// to some.
func (s *subject) isCurrent(t *testing.T, live *unstructured.Unstructured) bool {
	t.Helper()
	return s.live(t).GetResourceVersion() == live.GetResourceVersion()
}

// lacks is the first place in which a live object has not what the API server would make of
// what is wanted; empty if there is none. It does not matter what it has besides.
func (s *subject) lacks(wanted, after, live *unstructured.Unstructured) string {
	manifest, _ := withoutNulls(withData(wanted.Object), typeOf(s.kind)).(map[string]any)
	if manifest["aggregationRule"] != nil {
		manifest = maps.Clone(manifest)
		delete(manifest, "rules") // the cluster fills them in
	}
	return lacks(manifest, after.Object, live.Object, typeOf(s.kind), nil)
}

// withData has the texts of a Secret where the API server has them.
func withData(object map[string]any) map[string]any {
	texts, isMap := object["stringData"].(map[string]any)
	if !isMap {
		return object
	}
	object = maps.Clone(object)
	data, _ := object["data"].(map[string]any)
	if data = maps.Clone(data); data == nil {
		data = map[string]any{}
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString(fmt.Append(nil, text))
	}
	object["data"] = data
	return object
}

func lacks(wanted, after, live any, t reflect.Type, path []any) string {
	switch wanted := wanted.(type) {
	case nil:
		return ""
	case map[string]any:
		after, isStored := after.(map[string]any)
		live, isLive := live.(map[string]any)
		if isStored && !isLive && len(wanted) == 0 && (t == nil || t.Kind() == reflect.Pointer) {
			return (edit{path: path, value: wanted}).String()
		}
		for _, key := range slices.Sorted(maps.Keys(wanted)) {
			path := append(slices.Clip(path), key)
			if _, isStored := after[key]; !isStored || !isSettable(path) && path[0] != "metadata" {
				continue
			}
			if lacking := lacksField(wanted[key], after[key], live[key], t, path); lacking != "" {
				return lacking
			}
		}
		return ""
	default:
		if isEmpty(wanted) && !isEmpty(after) || reflect.DeepEqual(after, live) {
			return "" // an empty value that is none, or one that is there
		}
		return (edit{path: path, value: wanted}).String()
	}
}

// lacksField is [lacks] for a field, which may be a list.
func lacksField(wanted, after, live any, t reflect.Type, path []any) string {
	items, isList := wanted.([]any)
	inner := below(t, path[len(path)-1])
	if !isList {
		return lacks(wanted, after, live, inner, path)
	}
	made, _ := after.([]any)
	has, _ := live.([]any)
	name, _ := path[len(path)-1].(string)
	key := mergeKeyOf(t, name)
	if len(items) == 0 && len(made) > 0 {
		return "" // none is none, too
	}
	if key == "" && len(made) != len(has) {
		return (edit{path: path, value: wanted}).String()
	}
	if key == "" && len(items) != len(made) {
		return ""
	}
	seen := map[any]int{}
	for i, item := range items {
		made, has := made, has
		if key != "" {
			made, has = withKey(made, item, key, seen[keyOf(item, key)]), withKey(has, item, key, seen[keyOf(item, key)])
			seen[keyOf(item, key)]++
		} else {
			made, has = made[i:], has[i:]
		}
		if lacking := lacks(item, first(made), first(has), below(inner, i), append(slices.Clip(path), i)); lacking != "" {
			return lacking
		}
	}
	return ""
}

// withKey are the items that have the key of another one, but for the first of them.
func withKey(items []any, like any, key string, skip int) []any {
	same := slices.DeleteFunc(slices.Clone(items), func(item any) bool { return keyOf(item, key) != keyOf(like, key) })
	return same[min(skip, len(same)):]
}

func keyOf(item any, key string) any {
	fields, _ := item.(map[string]any)
	return fmt.Sprint(fields[key])
}

func first(items []any) any {
	if len(items) == 0 {
		return nil
	}
	return items[0]
}

func isEmpty(value any) bool {
	return value == nil || reflect.ValueOf(value).IsZero()
}
