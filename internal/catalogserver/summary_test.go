package catalogserver_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const summaryPath = "/catalogs/c/api/v1/summary"

// The summary has an entity tag, as all that is served.
func TestSummary(t *testing.T) {
	t.Parallel()
	base := serveCatalog(t)
	got := do(t, http.MethodGet, base+summaryPath, nil)
	if want := `{"name":"p"}` + "\n" + `{"name":"q"}` + "\n"; got.StatusCode != http.StatusOK || got.body != want {
		t.Fatalf("got %s\n%s\nwant\n%s", got.Status, got.body, want)
	}
	tag := got.Header.Get("ETag")
	again := do(t, http.MethodGet, base+summaryPath, map[string]string{"If-None-Match": tag})
	if tag == "" || again.StatusCode != http.StatusNotModified {
		t.Errorf("with tag %s got %s", tag, again.Status)
	}
	if got := do(t, http.MethodGet, base+"/catalogs/none/api/v1/summary", nil); got.StatusCode != http.StatusNotFound {
		t.Errorf("got %s for a catalog that there is not", got.Status)
	}
	if got := do(t, http.MethodPost, base+summaryPath, nil); got.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("got %s for POST", got.Status)
	}
}

// A summary that would be too large is left out, and its catalog is stored all the same.
func TestNoSummaryIsTooLarge(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	var text strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&text, `{"schema":"olm.package","name":"p%d"}`, i)
	}
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	put(t, s, "c", "1", fstest.MapFS{"a": {Data: []byte(text.String())}})
	base := serveStore(t, s)
	if got := do(t, http.MethodGet, base+summaryPath, nil); got.StatusCode != http.StatusNotFound {
		t.Errorf("got %s", got.Status)
	}
	if got := do(t, http.MethodGet, base+metasPath+"?name=p1", nil); got.StatusCode != http.StatusOK {
		t.Errorf("got %s for the content", got.Status)
	}
}

// The summary of the largest public catalog is small, and sent at once; after a restart too.
func TestSummaryOfALargeCatalog(t *testing.T) { //nolint:paralleltest // time is measured
	testkit.WithoutRace(t)
	dir := t.TempDir()
	s := openStore(t, catalogserver.StoreConfig{Dir: dir})
	big := testkit.PublicCatalog(1)
	big.Bytes = 20_000_000
	var text bytes.Buffer
	if _, err := big.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	put(t, s, "c", "1", fstest.MapFS{"a": {Data: text.Bytes()}})
	base := serveStore(t, openStore(t, catalogserver.StoreConfig{Dir: dir}))
	began := time.Now()
	got := do(t, http.MethodGet, base+summaryPath, map[string]string{"Accept-Encoding": "gzip"})
	took := time.Since(began)
	if len(got.body) > 2_000_000 || took > time.Second {
		t.Errorf("%d bytes in %s", len(got.body), took)
	}
	plain, err := gzip.NewReader(strings.NewReader(got.body))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	packages, err := catalogsummary.Read(bytes.NewReader(content))
	if err != nil || len(packages) != big.Packages || packages[0].Version == "" || packages[0].Description == "" {
		t.Errorf("%d packages, %v, first %+v", len(packages), err, packages[0])
	}
	t.Logf("%d packages: %d bytes, %d compressed, in %s", len(packages), len(content), len(got.body), took)
}
