package catalogpeer_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterextensions/operator-controller/internal/catalogpeer"
	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

const canonical = "registry.test/catalog@sha256:0000000000000000000000000000000000000000000000000000000000000001"

// replica serves the catalog "c" over TLS, with its answers passed on by spoil.
func replica(t *testing.T, spoil func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	store, err := catalogserver.OpenStore(catalogserver.StoreConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"p.yaml": {Data: []byte("schema: olm.package\nname: p\ndescription: " + strings.Repeat("long ", 1000) + "\n")}}
	if err := store.Put(t.Context(), "c", catalogserver.Origin{Source: canonical, Canonical: canonical, CheckedAt: time.Unix(1, 0)}, files); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(spoil(catalogserver.Handler(store)))
	t.Cleanup(server.Close)
	return server
}

func faithful(next http.Handler) http.Handler { return next }

func newPeers(t *testing.T, through *http.Client, address, dir string, bytes int64) *catalogpeer.Peers {
	t.Helper()
	return peersOf(t, configOf(t, through, address, dir, bytes))
}

func configOf(t *testing.T, through *http.Client, address, dir string, bytes int64) catalogpeer.Config {
	t.Helper()
	external, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return catalogpeer.Config{
		HTTPClient: through, External: external, Dir: dir, Space: diskspace.New(diskspace.Config{What: "peers", Bytes: bytes}),
		IsJudged: func(string) bool { return false },
	}
}

func peersOf(t *testing.T, config catalogpeer.Config) *catalogpeer.Peers {
	t.Helper()
	peers, err := catalogpeer.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return peers
}

// What comes from a replica is stored as what that has, byte for byte, and nothing of it
// stays where it was on its way.
func TestPull(t *testing.T) {
	t.Parallel()
	server, dir := replica(t, faithful), t.TempDir()
	if err := os.WriteFile(dir+"/left", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pulled, err := newPeers(t, server.Client(), server.URL, dir, 1<<20).Pull(t.Context(), "c", canonical)
	if err != nil {
		t.Fatal(err)
	}
	own, err := catalogserver.OpenStore(catalogserver.StoreConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Put(t.Context(), "c", catalogserver.Origin{Canonical: canonical}, pulled.Files); err != nil {
		t.Fatal(err)
	}
	pulled.Close()
	theirs := head(t, server.Client(), server.URL+"/catalogs/c/api/v1/all").Get("ETag")
	if rec, _ := own.Record("c"); pulled.Canonical != canonical || theirs != `"`+rec.SHA256+`"` {
		t.Errorf("stored %+v, they have %s", rec, theirs)
	}
	if left, err := fs.Glob(os.DirFS(dir), "*"); err != nil || len(left) != 0 {
		t.Errorf("left %q, %v", left, err)
	}
}

func head(t *testing.T, through *http.Client, address string) http.Header {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := through.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("got status %s, %v", response.Status, err)
	}
	return response.Header
}

// header changes that of replies.
func header(name, value string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&changed{ResponseWriter: w, name: name, value: value}, r)
		})
	}
}

type changed struct {
	http.ResponseWriter
	name, value string
}

func (c *changed) WriteHeader(code int) {
	c.Header().Set(c.name, c.value)
	c.ResponseWriter.WriteHeader(code)
}

// What is not proven to be the content that is wanted is refused, and leaves nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	other := func(err error) bool {
		_, is := errors.AsType[*catalogpeer.OtherContentError](err)
		return is
	}
	failed := func(err error) bool { return err != nil && !other(err) }
	for name, tt := range map[string]struct {
		spoil     func(http.Handler) http.Handler
		catalog   string
		untrusted bool
		plain     bool
		judged    bool
		bytes     int64
		want      func(error) bool
	}{
		"content of another image":   {spoil: header(catalogserver.ResolvedSourceHeader, "registry.test/other@sha256:2"), want: other},
		"an older replica":           {spoil: header(catalogserver.ResolvedSourceHeader, ""), want: other},
		"other bytes than it says":   {spoil: header("ETag", `"0"`), want: failed},
		"a catalog that it lacks":    {spoil: faithful, catalog: "none", want: failed},
		"somebody without our trust": {spoil: faithful, untrusted: true, want: failed},
		"no TLS":                     {spoil: faithful, plain: true, want: func(err error) bool { return errors.Is(err, catalogpeer.ErrNoPeers) }},
		"a signature policy":         {spoil: faithful, judged: true, want: func(err error) bool { return errors.Is(err, catalogpeer.ErrJudged) }},
		"more than there is space": {spoil: faithful, bytes: 1000, want: func(err error) bool {
			_, is := errors.AsType[*diskspace.FullError](err)
			return is
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, dir := replica(t, tt.spoil), t.TempDir()
			through, address, catalog, bytes := server.Client(), server.URL, "c", int64(1<<20)
			if tt.untrusted {
				through = &http.Client{Transport: &http.Transport{}}
			}
			if tt.plain {
				address = strings.Replace(address, "https:", "http:", 1)
			}
			if tt.catalog != "" {
				catalog = tt.catalog
			}
			if tt.bytes != 0 {
				bytes = tt.bytes
			}
			config := configOf(t, through, address, dir, bytes)
			config.IsJudged = func(image string) bool { return tt.judged && image == canonical }
			_, err := peersOf(t, config).Pull(t.Context(), catalog, canonical)
			if !tt.want(err) {
				t.Errorf("got error %v", err)
			}
			if left, err := fs.Glob(os.DirFS(dir), "*"); err != nil || len(left) != 0 {
				t.Errorf("left %q, %v", left, err)
			}
		})
	}
}

// A replica that says nothing is given up with the context.
func TestSilentReplica(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	server := replica(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(asked)
			<-r.Context().Done()
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := newPeers(t, server.Client(), server.URL, t.TempDir(), 1<<20).Pull(ctx, "c", canonical); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
}

func TestEveryFieldOfTheConfigIsRequired(t *testing.T) {
	t.Parallel()
	if _, err := catalogpeer.New(catalogpeer.Config{Dir: t.TempDir()}); err == nil {
		t.Error("no error without a client")
	}
}
