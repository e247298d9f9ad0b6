package catalogserver_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// storeBig stores a catalog with the numbers of the largest public one, and
// short texts: what is measured does not depend on how long they are.
func storeBig(tb testing.TB, dir string) *catalogserver.Store {
	tb.Helper()
	s, err := catalogserver.OpenStore(catalogserver.StoreConfig{Dir: dir})
	if err != nil {
		tb.Fatal(err)
	}
	big := testkit.PublicCatalog(1)
	big.Bytes = 20_000_000
	var text bytes.Buffer
	if _, err := big.WriteTo(&text); err != nil {
		tb.Fatal(err)
	}
	if err := s.Put(tb.Context(), "c", origin("1"), fstest.MapFS{"a": {Data: text.Bytes()}}); err != nil {
		tb.Fatal(err)
	}
	return s
}

// A catalog costs no memory while nobody asks, and little while somebody does.
func TestServingCostsLittleMemory(t *testing.T) { //nolint:paralleltest // memory is measured of the whole process
	testkit.WithoutRace(t)
	used := func() uint64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := used()
	s := storeBig(t, t.TempDir())
	handler := catalogserver.Handler(s)
	ask := func(target string) int64 {
		rec := &counter{header: http.Header{}}
		handler.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
		return rec.bytes
	}
	if ask(metasPath+"?schema=olm.bundle") == 0 || ask(metasPath+"?name=none") != 0 {
		t.Fatal("the catalog is not there")
	}
	if after := used(); after > before+1<<20 {
		t.Errorf("the store holds %d KiB", (after-before)>>10)
	}
	allocated := func(target string) uint64 {
		var first, last runtime.MemStats
		runtime.ReadMemStats(&first)
		ask(target)
		runtime.ReadMemStats(&last)
		return last.TotalAlloc - first.TotalAlloc
	}
	for _, target := range []string{allPath, metasPath + "?schema=olm.bundle", metasPath + "?package=none", metasPath} {
		if got := allocated(target); got > 512<<10 {
			t.Errorf("%s: took %d KiB", target, got>>10)
		}
	}
	runtime.KeepAlive(s)
}

// How many objects a query finds does not show in the memory that its reply takes.
//
//nolint:paralleltest // memory is measured of the whole process
func TestSelectionsAreNotHeld(t *testing.T) {
	testkit.WithoutRace(t)
	const objects = 100_000
	var text bytes.Buffer
	for i := range objects {
		fmt.Fprintf(&text, `{"schema":"s%d"}`, i%2)
	}
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	put(t, s, "c", "1", fstest.MapFS{"a": {Data: text.Bytes()}})
	handler := catalogserver.Handler(s)
	var first, last runtime.MemStats
	runtime.ReadMemStats(&first)
	answer := &counter{header: http.Header{}}
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, metasPath+"?schema=s1", nil))
	runtime.ReadMemStats(&last)
	if want := int64(objects / 2 * len(`{"schema":"s1"}`+"\n")); answer.bytes != want {
		t.Errorf("got %d bytes, want %d", answer.bytes, want)
	}
	if got := last.TotalAlloc - first.TotalAlloc; got > 256<<10 {
		t.Errorf("took %d KiB", got>>10)
	}
}

// counter is a response that nobody reads.
type counter struct {
	header http.Header
	bytes  int64
}

func (c *counter) Header() http.Header { return c.header }
func (c *counter) WriteHeader(int)     {}
func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

func BenchmarkServe(b *testing.B) {
	handler := catalogserver.Handler(storeBig(b, b.TempDir()))
	for name, c := range map[string]struct{ target, coding string }{
		"one package":      {metasPath + "?schema=olm.package&name=none", ""},
		"all bundles":      {metasPath + "?schema=olm.bundle", ""},
		"everything":       {allPath, ""},
		"everything, gzip": {allPath, "gzip"},
		"everything, zstd": {allPath, "zstd"},
	} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, c.target, nil)
			r.Header.Set("Accept-Encoding", c.coding)
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(&counter{header: http.Header{}}, r)
			}
		})
	}
}
