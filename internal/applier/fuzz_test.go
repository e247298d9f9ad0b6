package applier

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// FuzzManifest: a manifest of whatever text ends in objects or in an error, and what is
// remembered of it names the same objects.
func FuzzManifest(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"---\n# no comment"}}`,
		"---\n# Source: x\n" + `{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","rules":[]}{"kind":"X"}`,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n---\n---\n",
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"names":7,"versions":[{"name":[]},7]}}`,
		`{"apiVersion":"cert-manager.io/v1","kind":"Certificate","spec":{"secretName":{"a":1}}}`,
		`{"kind":"X","metadata":[]}`, "apiVersion: a/b/c\nkind: X", "a: b", "# a\nnull", "{", "a: [", "a: &a [*a, *a]", "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, manifest string) {
		objects, err := objectsOf(manifest)
		if err != nil {
			return
		}
		text, err := residueOf(objects)
		if err != nil {
			t.Fatalf("what is to be remembered of %q: %v", manifest, err)
		}
		rest, err := objectsOf(string(text))
		if err != nil {
			t.Fatalf("what is remembered is %q: %v", text, err)
		}
		if diff := cmp.Diff(keysOf(objects), keysOf(rest)); diff != "" {
			t.Errorf("remembered objects (-all +got):\n%s", diff)
		}
		for _, object := range objects {
			definedBy(object)
		}
	})
}

func keysOf(objects []*unstructured.Unstructured) []object.Key {
	keys := make([]object.Key, 0, len(objects))
	for _, obj := range objects {
		keys = append(keys, object.KeyOf(obj))
	}
	return keys
}

// FuzzRelease: whatever JSON a record holds, what is made of it can be used and stored.
func FuzzRelease(f *testing.F) {
	for _, seed := range []string{
		`{"name":"x","info":{"status":"deployed"},"version":3,"manifest":"{}","labels":{"l":"v"}}`,
		`{"info":{},"chart":{"files":[null,{"data":"AA=="}],"metadata":null},"config":{"a":[[[]]]},"hooks":[null]}`,
		`{"info":null}`, `[]`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, plain []byte) {
		rel, err := decode(compressed(t, string(plain), "x", 0, ""))
		if err != nil {
			return
		}
		revisionFrom(rel)
		tracesIn(rel, nil)
		isReleaseOf(Extension{Name: "x"}, rel)
		namesOwner(rel.Manifest, Extension{Name: "x"})
		rel.Info.Status = release.StatusSuperseded
		if _, err := encodeWhole(rel, chunkSize); err != nil {
			t.Errorf("a release that was read cannot be stored: %v", err)
		}
	})
}

// FuzzPatch: what is sent for a change makes of the live object what is wanted, so that
// nothing changes if it is sent for that again.
func FuzzPatch(f *testing.F) {
	f.Add(`{"a":"x","b":"y"}`, `{"a":"z"}`, `{"a":"x","b":"y","c":"theirs"}`)
	f.Add(`{"l":[{"a":1}]}`, `{"l":[{"a":1}]}`, `{"l":[{"a":1,"d":2},{"b":1}]}`)
	f.Add(`{"l":[1]}`, `{"l":{"a":1}}`, `{"l":"x"}`)
	f.Add(`{}`, `{"a":null}`, `{"a":{"b":null}}`)
	f.Fuzz(func(t *testing.T, before, wanted, live string) {
		s := &step{item: item{object: fuzzedObject(wanted)}, before: fuzzedObject(before), live: fuzzedObject(live)}
		if s.object == nil || s.before == nil || s.live == nil {
			return
		}
		change, err := patchOf(s)
		if err != nil || change.isEmpty() {
			return
		}
		rivalsOf(s)
		s.live = patched(t, s.live, change)
		again, err := patchOf(s)
		if err != nil {
			t.Fatal(err)
		}
		if again.isEmpty() {
			return
		}
		if diff := cmp.Diff(s.live.Object, patched(t, s.live, again).Object); diff != "" {
			t.Errorf("the patch %s is followed by %s (-before +after):\n%s", change.data, again.data, diff)
		}
	})
}

// patched is what the API server makes of a merge patch.
func patched(t *testing.T, live *unstructured.Unstructured, change patch) *unstructured.Unstructured {
	t.Helper()
	var document map[string]any
	if err := utiljson.Unmarshal(change.data, &document); err != nil {
		t.Fatalf("the patch %s: %v", change.data, err)
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
