package release

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
		for _, obj := range objects {
			object.DefinedBy(obj)
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
		(&Installed{release: rel}).LastApplied(nil)
		isReleaseOf(object.Owner{Name: "x"}, rel)
		namesOwner(rel.Manifest, object.Owner{Name: "x"})
		rel.Info.Status = release.StatusSuperseded
		if _, err := encodeWhole(rel, chunkSize); err != nil {
			t.Errorf("a release that was read cannot be stored: %v", err)
		}
	})
}
