package catalogserver_test

import (
	"errors"
	"io/fs"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// Every real catalog is either served and read like the registry library reads
// it, or refused with the file and the object that is at fault.
func TestCorpus(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	dir := testkit.Corpus(t)
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	server := httptest.NewServer(catalogserver.Handler(s))
	t.Cleanup(server.Close)
	client := newCatalogClient(t)

	served, refused := 0, 0
	for _, kind := range []string{"catalog", "fbc"} {
		for _, folder := range folders(t, filepath.Join(dir, kind)) {
			root := testkit.CorpusFiles(t, folder)
			if len(root) == 0 {
				continue
			}
			err := s.Put(t.Context(), "c", origin(folder), root)
			if err != nil {
				refused++
				checkRefusal(t, folder, err)
				if kind == "catalog" {
					t.Errorf("%s: %v", folder, err)
				}
				continue
			}
			served++
			rec, _ := s.Record("c")
			src := catalogclient.Source{Catalog: "c", Digest: rec.Canonical, BaseURL: server.URL + "/catalogs/c"}
			if _, err := client.Refresh(t.Context(), src); err != nil {
				// Templates are documents of a schema, but belong to no package.
				t.Errorf("%s: what is served cannot be read: %v", folder, err)
				continue
			}
			compare(t, folder, root, client)
		}
	}
	t.Logf("%d catalogs served, %d refused", served, refused)
	if served < 60 {
		t.Errorf("only %d catalogs were served", served)
	}
}

func newCatalogClient(t *testing.T) *catalogclient.Client {
	t.Helper()
	httpClient, err := catalogclient.NewHTTPClient("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(httpClient.CloseIdleConnections)
	client, err := catalogclient.New(catalogclient.Config{HTTPClient: httpClient})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func checkRefusal(t *testing.T, folder string, err error) {
	t.Helper()
	t.Logf("%s: %v", folder, err)
	var fileErr *catalogserver.FileError
	switch {
	case errors.Is(err, catalogserver.ErrEmptyCatalog):
	case !errors.As(err, &fileErr):
		t.Errorf("%s: refused without naming the file: %v", folder, err)
	case !strings.Contains(err.Error(), "object "):
		t.Errorf("%s: refused without naming the object: %v", folder, err)
	}
}

// compare holds what the client has against what the registry library reads,
// where that can.
func compare(t *testing.T, folder string, root fs.FS, client *catalogclient.Client) {
	t.Helper()
	want, err := declcfg.LoadFS(t.Context(), root)
	if err != nil {
		t.Logf("%s: the registry library refuses it: %v", folder, err)
		return
	}
	type content struct{ Bundles, Channels, Images []string }
	expected := map[string]content{}
	for _, b := range want.Bundles {
		c := expected[b.Package]
		c.Bundles, c.Images = append(c.Bundles, b.Name), append(c.Images, b.Image)
		expected[b.Package] = c
	}
	for _, ch := range want.Channels {
		c := expected[ch.Package]
		c.Channels = append(c.Channels, ch.Name)
		expected[ch.Package] = c
	}
	for name, c := range expected {
		p, err := client.Package("c", name)
		if err != nil || p == nil {
			t.Errorf("%s: package %q: %v, %v", folder, name, p, err)
			continue
		}
		var got content
		for _, b := range p.Bundles {
			got.Bundles, got.Images = append(got.Bundles, b.Name), append(got.Images, b.Image)
			if b.Version == "" {
				t.Errorf("%s: bundle %q has no version", folder, b.Name)
			}
		}
		for _, ch := range p.Channels {
			got.Channels = append(got.Channels, ch.Name)
		}
		for _, list := range []*[]string{&c.Bundles, &c.Channels, &c.Images, &got.Images} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
		got.Images = slices.Compact(got.Images)
		if diff := cmp.Diff(c, got); diff != "" {
			t.Errorf("%s: package %q: -library +client\n%s", folder, name, diff)
		}
	}
}

// folders returns all folders below root.
func folders(t *testing.T, root string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
