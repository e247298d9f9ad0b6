package catalogcheck_test

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

// A catalog without errors is served, and every package of it can be read.
func TestReadersAgree(t *testing.T) {
	t.Parallel()
	agreed := 0
	for _, path := range archives(t) {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		root, _ := catalogIn(archive)
		if !slices.ContainsFunc(check(t, root), isError) {
			agreed++
			checkReadable(t, root)
		}
	}
	if agreed < 3 {
		t.Errorf("only %d archives without errors", agreed)
	}
}

func FuzzReadersAgree(f *testing.F) {
	addArchives(f)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		root := fstest.MapFS{"first.yaml": {Data: first}, "second.yaml": {Data: second}}
		if !slices.ContainsFunc(check(t, root), isError) {
			checkReadable(t, root)
		}
	})
}

// checkReadable has the catalog in root served and read.
func checkReadable(t *testing.T, root fs.FS) {
	t.Helper()
	store, err := catalogserver.OpenStore(catalogserver.StoreConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	origin := catalogserver.Origin{Source: "r/c:v1", Canonical: "r/c@sha256:1"}
	if err := store.Put(t.Context(), "c", origin, root); err != nil {
		t.Errorf("not served: %v", err)
		return
	}
	client, err := catalogclient.New(catalogclient.Config{HTTPClient: &http.Client{
		Transport: inProcess{catalogserver.Handler(store)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	src := catalogclient.Source{Catalog: "c", Digest: origin.Canonical, BaseURL: "http://catalogs.test/catalogs/c"}
	if _, err := client.Refresh(t.Context(), src); err != nil {
		t.Errorf("not read: %v", err)
		return
	}
	for o := range (fbc.Folder{Root: root}).Objects(t.Context()) {
		if o.Owner() == "" {
			continue
		}
		if pkg, err := client.Package("c", o.Owner()); err != nil || pkg == nil {
			t.Errorf("package %q: %v, %v", o.Owner(), pkg, err)
		}
	}
}

// inProcess hands requests to a handler.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	p.handler.ServeHTTP(recorder, r)
	reply := recorder.Result()
	if reply.Body == nil {
		reply.Body = io.NopCloser(nil)
	}
	return reply, nil
}
