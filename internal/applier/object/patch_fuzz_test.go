package object

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// FuzzPatch: what is sent for a change makes of the live object what is wanted, so that
// nothing changes if it is sent for that again.
func FuzzPatch(f *testing.F) {
	f.Add(`{"a":"x","b":"y"}`, `{"a":"z"}`, `{"a":"x","b":"y","c":"theirs"}`)
	f.Add(`{"l":[{"a":1}]}`, `{"l":[{"a":1}]}`, `{"l":[{"a":1,"d":2},{"b":1}]}`)
	f.Add(`{"l":[1]}`, `{"l":{"a":1}}`, `{"l":"x"}`)
	f.Add(`{}`, `{"a":null}`, `{"a":{"b":null}}`)
	f.Fuzz(func(t *testing.T, before, wanted, live string) {
		s := ThreeWay{Wanted: fuzzedObject(wanted), Before: fuzzedObject(before), Live: fuzzedObject(live)}
		if s.Wanted == nil || s.Before == nil || s.Live == nil {
			return
		}
		change, err := s.Patch()
		if err != nil || change.IsEmpty() {
			return
		}
		change.Difference(s.Live)
		s.Live = patched(t, s.Live, change)
		again, err := s.Patch()
		if err != nil {
			t.Fatal(err)
		}
		if again.IsEmpty() {
			return
		}
		if diff := cmp.Diff(s.Live.Object, patched(t, s.Live, again).Object); diff != "" {
			t.Errorf("the patch %s is followed by %s (-before +after):\n%s", change.Data, again.Data, diff)
		}
	})
}

// patched is what the API server makes of a merge patch.
func patched(t *testing.T, live *unstructured.Unstructured, change Patch) *unstructured.Unstructured {
	t.Helper()
	var document map[string]any
	if err := utiljson.Unmarshal(change.Data, &document); err != nil {
		t.Fatalf("the patch %s: %v", change.Data, err)
	}
	object, _ := mergePatched(live.Object, document).(map[string]any)
	return &unstructured.Unstructured{Object: object}
}

// mergePatched is the algorithm of RFC 7396, section 2.
func mergePatched(target, change any) any {
	fields, ok := change.(map[string]any)
	if !ok {
		return change
	}
	old, _ := target.(map[string]any)
	merged := maps.Clone(old)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range fields {
		if value == nil {
			delete(merged, key)
		} else {
			merged[key] = mergePatched(merged[key], value)
		}
	}
	return merged
}

// fuzzedObject is nil where the text is no JSON object.
func fuzzedObject(spec string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if object.UnmarshalJSON([]byte(`{"apiVersion":"example.com/v1","kind":"X","metadata":{"name":"a"},"spec":`+spec+`}`)) != nil {
		return nil
	}
	return object
}

// FuzzBuiltInPatch: whatever is said of an object of a built-in kind, there is a patch or an
// error. The library of strategic patches knows fields that no object has.
func FuzzBuiltInPatch(f *testing.F) {
	kinds := []string{
		`"apiVersion":"v1","kind":"ConfigMap"`, `"apiVersion":"v1","kind":"Secret"`, `"apiVersion":"v1","kind":"Service"`,
		`"apiVersion":"apps/v1","kind":"Deployment"`, `"apiVersion":"policy/v1","kind":"PodDisruptionBudget"`,
		`"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole"`, `"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition"`,
	}
	f.Add(uint8(0), `"$retainKeys":[{}],"data":{"a":"x"}`, `"$retainKeys":[{}],"data":{"a":"x"}`, `"data":{"a":"x"}`)
	f.Add(uint8(3), `"spec":{"template":{"spec":{"containers":[{"name":{}}]}}}`, `"spec":{"template":{"spec":{"containers":[{"name":"c"}]}}}`, `"spec":{"template":{"spec":{"containers":[{"name":{}}]}}}`)
	f.Add(uint8(3), `"$patch":"delete"`, `"spec":{"$setElementOrder/a":[{}],"$deleteFromPrimitiveList/b":[[]]}`, `"spec":{"replicas":1}`)
	f.Add(uint8(1), `"stringData":{"a":"x"}`, `"stringData":[],"data":"x"`, `"data":{"a":null}`)
	f.Add(uint8(2), `"spec":{"ports":[{"port":1,"targetPort":0},2]}`, `"spec":{"ports":{}}`, `"spec":{"ports":[null]}`)
	f.Fuzz(func(_ *testing.T, kind uint8, before, wanted, live string) {
		parse := func(fields string) *unstructured.Unstructured {
			object := &unstructured.Unstructured{}
			if object.UnmarshalJSON([]byte(`{`+kinds[int(kind)%len(kinds)]+`,"metadata":{"name":"a"},`+fields+`}`)) != nil {
				return nil
			}
			return object
		}
		s := ThreeWay{Wanted: parse(wanted), Before: parse(before), Live: parse(live)}
		if s.Wanted == nil || s.Before == nil || s.Live == nil {
			return
		}
		for _, s.Before = range []*unstructured.Unstructured{s.Before, nil} {
			if patch, err := s.Patch(); err == nil {
				patch.Difference(s.Live)
			}
		}
	})
}
