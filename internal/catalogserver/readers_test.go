package catalogserver_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

// TestReadersOfReplacedContent finish on it, until the space is needed: then the oldest
// of the catalog that has most goes, and none that a catalog still has.
func TestReadersOfReplacedContent(t *testing.T) {
	t.Parallel()
	s := openStore(t, catalogserver.StoreConfig{
		Dir: t.TempDir(), Space: diskspace.New(diskspace.Config{What: "catalogs", Bytes: blocks(40), Shares: 3, Share: blocks(10)}),
	})
	hold := func(name, digest string, size int) *catalogserver.Snapshot {
		t.Helper()
		put(t, s, name, digest, sized(size))
		snapshot, err := s.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = snapshot.Close() })
		return snapshot
	}
	want := func(snapshot *catalogserver.Snapshot, readable bool) {
		t.Helper()
		n, err := io.Copy(io.Discard, io.NewSectionReader(snapshot.All().Content.(io.ReaderAt), 0, snapshot.Record.Bytes))
		if readable && (err != nil || n != snapshot.Record.Bytes) || !readable && !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: read %d bytes, error %v; want it to be readable: %t", snapshot.Record.Canonical, n, err, readable)
		}
	}
	// With an index and two copies, each takes three blocks more.
	evil1, honest1 := hold("evil", "e1", 5), hold("honest", "h1", 5)
	evil2, honest2 := hold("evil", "e2", 5), hold("honest", "h2", 5)
	for _, snapshot := range []*catalogserver.Snapshot{evil1, evil2, honest1, honest2} {
		want(snapshot, true)
	}
	evil3 := hold("evil", "e3", 5)
	want(evil1, true)
	third := hold("third", "t1", 5)
	want(evil1, false)
	for _, snapshot := range []*catalogserver.Snapshot{evil2, evil3, honest1, honest2, third} {
		want(snapshot, true)
	}
	// What was closed by its readers takes nothing.
	if err := errors.Join(evil2.Close(), evil1.Close()); err != nil {
		t.Error(err)
	}
	hold("third", "t2", 5)
	for _, snapshot := range []*catalogserver.Snapshot{honest1, honest2, third} {
		want(snapshot, true)
	}
}

// TestCutRepliesDoNotLookWhole, neither those of all content nor those of a query.
func TestCutRepliesDoNotLookWhole(t *testing.T) {
	t.Parallel()
	const size = 3500 // far more than the buffers of a connection
	s := openStore(t, catalogserver.StoreConfig{
		Dir: t.TempDir(), Space: diskspace.New(diskspace.Config{What: "catalogs", Bytes: blocks(size + 100)}),
	})
	put(t, s, "c", "1", sized(size-10))
	server := serveStore(t, s)
	bodies := map[string]io.ReadCloser{}
	for _, path := range []string{allPath, metasPath + "?name=" + strings.Repeat("x", 1000)} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", "identity")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		if _, err := io.ReadFull(resp.Body, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		bodies[path] = resp.Body
	}
	put(t, s, "c", "2", sized(200))
	for path, body := range bodies {
		if n, err := io.Copy(io.Discard, body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: read %d bytes more, error %v; want an unexpected end", path, n, err)
		}
	}
	if got := do(t, http.MethodGet, server+allPath, nil); got.StatusCode != http.StatusOK || len(got.body) < 199*4096 {
		t.Errorf("the new content: got %s with %d bytes", got.Status, len(got.body))
	}
}
