package testkit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func write(t *testing.T, catalog testkit.BigCatalog) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := catalog.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("wrote %d of %d bytes: %v", b.Len(), n, err)
	}
	return b.Bytes()
}

func TestBigCatalogHasItsProportions(t *testing.T) {
	t.Parallel()
	const packages, bundles, size = 20, 300, 4_000_000
	content := write(t, testkit.BigCatalog{Seed: 1, Packages: packages, Bundles: bundles, Bytes: size})
	if diff := len(content) - size; diff < -size/100 || diff > size/100 {
		t.Errorf("got %d bytes, want about %d", len(content), size)
	}
	counts := map[string]int{}
	for decoder := json.NewDecoder(bytes.NewReader(content)); ; {
		var object struct {
			Schema string `json:"schema"`
		}
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		counts[object.Schema]++
	}
	if counts["olm.channel"] < packages || counts["olm.deprecations"] == 0 {
		t.Errorf("too few objects: %v", counts)
	}
	delete(counts, "olm.channel")
	delete(counts, "olm.deprecations")
	if diff := cmp.Diff(map[string]int{"olm.package": packages, "olm.bundle": bundles}, counts); diff != "" {
		t.Errorf("objects: -want +got\n%s", diff)
	}
}

func TestBigCatalogIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	catalog := testkit.BigCatalog{Seed: 7, Packages: 5, Bundles: 20, Bytes: 100_000}
	first := sha256.Sum256(write(t, catalog))
	if sha256.Sum256(write(t, catalog)) != first {
		t.Error("the same catalog is different")
	}
	catalog.Seed++
	if sha256.Sum256(write(t, catalog)) == first {
		t.Error("another catalog is the same")
	}
}
