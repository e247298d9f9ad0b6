package release

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func TestKeptRecords(t *testing.T) {
	t.Parallel()
	k := newKeptRecords()
	name := func(i int) string { return fmt.Sprint(i) }
	const fit = maxKeptRecords / maxKeptRecord
	for i := range fit {
		k.put(name(i), "1", make([]byte, maxKeptRecord))
	}
	if k.get(name(0), "1") == nil {
		t.Error("there is room for all, and the first one is gone")
	}
	k.put(name(fit), "1", make([]byte, maxKeptRecord))
	if k.get(name(0), "1") == nil || k.get(name(1), "1") != nil {
		t.Error("another one than that which was not used for the longest time is gone")
	}
	if k.get(name(2), "2") != nil {
		t.Error("a record is given in a version that it does not have")
	}
	k.put(name(2), "2", []byte("new"))
	if got := k.get(name(2), "2"); !bytes.Equal(got, []byte("new")) || k.get(name(2), "1") != nil {
		t.Errorf("in the new version it is %q", got)
	}
	k.put(name(3), "2", make([]byte, maxKeptRecord+1))
	if k.get(name(3), "1") != nil || k.get(name(3), "2") != nil {
		t.Error("what is too large is kept, or what was there before")
	}
	for i := range fit + 1 {
		k.forget(name(i))
	}
	if k.bytes != 0 || len(k.byName) != 0 || k.used.Len() != 0 {
		t.Errorf("%d bytes of %d records are left", k.bytes, len(k.byName))
	}
}

// TestDeployedRecordIsKept: what is installed is not read again for each operation.
func TestDeployedRecordIsKept(t *testing.T) {
	t.Parallel()
	manifest := func(text string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":%q}}`, text)
	}
	for name, tc := range map[string]struct {
		text       string
		chunkBytes int
		reads      []int // of the index and its chunks, by two operations
	}{
		"small":     {text: "x", chunkBytes: chunkSize, reads: []int{1, 0}},
		"large":     {text: testkit.Noise(t, 2*maxKeptRecord), chunkBytes: chunkSize, reads: []int{1, 1}},
		"in chunks": {text: testkit.Noise(t, 1000), chunkBytes: 1000, reads: []int{2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secrets := fake.NewClientset()
			h := historyOf(t, secrets)
			h.records.chunkBytes = tc.chunkBytes
			read := func() int {
				t.Helper()
				secrets.ClearActions()
				installed, err := h.Installed(t.Context())
				if err != nil || installed.Objects[0].GetName() != "a" {
					t.Fatalf("installed is %+v, %v", installed, err)
				}
				h.Trim()
				return len(secrets.Actions())
			}
			rel := &release.Release{Name: "x", Version: 1, Info: &release.Info{Status: release.StatusDeployed}, Manifest: manifest(tc.text)}
			if err := h.create(t.Context(), rel); err != nil {
				t.Fatal(err)
			}
			h.Trim()
			for operation, want := range tc.reads {
				if reads := read(); reads != want {
					t.Errorf("%d reads in operation %d, want %d", reads, operation, want)
				}
			}
			// What is written is kept too, and no other version of it.
			rel.Manifest = strings.Replace(rel.Manifest, `"metadata":{`, `"metadata":{"labels":{"is":"new"},`, 1)
			if err := h.update(t.Context(), rel); err != nil {
				t.Fatal(err)
			}
			h.Trim()
			if reads := read(); reads != tc.reads[1] {
				t.Errorf("%d reads after a write, want %d", reads, tc.reads[1])
			}
			if installed, err := h.Installed(t.Context()); err != nil || installed.Objects[0].GetLabels()["is"] != "new" {
				t.Errorf("installed is %+v, %v", installed, err)
			}
		})
	}
}
