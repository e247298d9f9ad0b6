package catalogserver_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

// incompressible returns a catalog that fills the buffers of a connection of
// begin, compressed or not, in objects of one schema.
func incompressible(schema string) string {
	random := rand.New(rand.NewPCG(3, 4))
	var text strings.Builder
	for range 8 {
		text.WriteString(`{"data":"`)
		for range 1 << 20 {
			text.WriteByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[random.IntN(64)])
		}
		text.WriteString(`","schema":"` + schema + `"}` + "\n")
	}
	return text.String()
}

// begin sends a request and returns the answer, of which nothing is read yet.
func begin(t *testing.T, url, coding string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", coding)
	transport := &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if tcp, ok := conn.(*net.TCPConn); ok {
				err = tcp.SetReadBuffer(256 << 10)
			}
			return conn, err
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// beginAll begins a request for each way to get the same content.
func beginAll(t *testing.T, base, schema string) map[string]*http.Response {
	t.Helper()
	begun := map[string]*http.Response{}
	for _, path := range []string{allPath, metasPath + "?schema=" + schema} {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			begun[path+" "+coding] = begin(t, base+path, coding)
		}
	}
	return begun
}

// B-85: who reads slowly gets the content that was there when asking, all of it,
// and nobody waits for it.
func TestSlowRepliesAreOfOneVersion(t *testing.T) {
	t.Parallel()
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	text := incompressible("olm.old")
	put(t, s, "c", "1", files(map[string]string{"a": text}))
	base := serveStore(t, s)
	slow := beginAll(t, base, "olm.old")
	put(t, s, "c", "2", files(map[string]string{"a": `{"schema":"olm.new"}`}))
	exchange{path: allPath, status: 200, body: `{"schema":"olm.new"}` + "\n"}.run(t, base)
	if err := s.Delete("c"); err != nil {
		t.Fatal(err)
	}
	exchange{path: allPath, status: 404, body: "404 Not Found\n"}.run(t, base)
	for name, resp := range slow {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := (response{resp, string(body)}).decoded(t); got != text {
			t.Errorf("%s: got %d bytes of other content", name, len(got))
		}
	}
}

// B-02 for the other side: half of a reply never looks like a whole one.
func TestCutRepliesLookCut(t *testing.T) {
	t.Parallel()
	text := incompressible("olm.cut")
	dir := t.TempDir()
	s := openStore(t, catalogserver.StoreConfig{Dir: dir})
	put(t, s, "c", "1", files(map[string]string{"a": text}))
	begun := beginAll(t, serveStore(t, s), "olm.cut")
	paths, err := filepath.Glob(filepath.Join(dir, "c", "*", "catalog.jsonl*"))
	if err != nil || len(paths) != 3 {
		t.Fatalf("got %v, %v", paths, err)
	}
	for _, path := range paths {
		// Between two objects, where the content itself tells nothing.
		left := int64(strings.LastIndex(strings.TrimSpace(text), "\n") + 1)
		if filepath.Base(path) != "catalog.jsonl" {
			left /= 2
		}
		if err := os.Truncate(path, left); err != nil {
			t.Fatal(err)
		}
	}
	for name, resp := range begun {
		if _, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: got error %v, want that the body is cut", name, err)
		}
	}
}

// Content that is gone or cut when it is asked for is not served at all.
func TestDamagedContentIsNotServed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		damage func(path string) error
		want   exchange
	}{
		"cut":  {func(path string) error { return os.Truncate(path, 10) }, exchange{path: allPath, status: 500, body: "500 Internal Server Error\n"}},
		"gone": {os.Remove, exchange{path: allPath, status: 404, body: "404 Not Found\n"}},
	}
	for name, tt := range tests {
		for _, file := range []string{"catalog.jsonl", "catalog.index", "catalog.jsonl.gzip"} {
			tt.want.header = map[string]string{"Accept-Encoding": "gzip"}
			t.Run(name+" "+file, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				s := openStore(t, catalogserver.StoreConfig{Dir: dir})
				put(t, s, "c", "1", files(map[string]string{"a": catalogText}))
				paths, err := filepath.Glob(filepath.Join(dir, "c", "*", file))
				if err != nil || len(paths) != 1 {
					t.Fatalf("got %v, %v", paths, err)
				}
				if err := tt.damage(paths[0]); err != nil {
					t.Fatal(err)
				}
				tt.want.run(t, serveStore(t, s))
			})
		}
	}
}
