package catalogclient

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// CheckContent decodes body, which need not be a catalog, and checks that an
// accepted one comes back from a copy as it was.
func CheckContent(t *testing.T, body []byte) {
	t.Helper()
	limits := Limits{
		Content:   fbc.Limits{StreamBytes: 1 << 16, ObjectBytes: 1 << 12, Objects: 50, Nesting: 20, NameBytes: 100},
		KeptBytes: 1 << 16,
	}
	idx, err := decodeIndex(bytes.NewReader(body), limits.withDefaults())
	if err != nil {
		if errors.Unwrap(err) == nil && !errors.Is(err, ErrEmptyCatalog) {
			t.Fatalf("error without a cause: %v", err)
		}
		return
	}
	c := copies{dir: t.TempDir(), limit: 1 << 20, all: 1 << 20}
	written, err := c.write("c", idx)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.publish(written, "c"); err != nil {
		t.Fatal(err)
	}
	loaded, err := c.load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(idx.packages, loaded["c"].packages); diff != "" {
		t.Fatalf("after a restart: -want +got\n%s", diff)
	}
}
