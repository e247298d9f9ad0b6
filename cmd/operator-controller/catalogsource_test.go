package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sampleFolder is a folder with the sample content, by name.
func sampleFolder(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(sampleContent), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A folder and a server, by either of its URLs, give the same package.
func TestLoadPackages(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /catalogs/sample/api/v1/all", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(sampleContent))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	sources := []string{
		sampleFolder(t, "sample"), server.URL + "/catalogs/sample",
		server.URL + "/catalogs/sample/api/v1/all", sampleFolder(t, "other") + "/",
	}
	packages, err := loadPackages(t.Context(), sources, "p")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, loaded := range packages {
		names = append(names, loaded.Catalog)
		if diff := cmp.Diff(packages[0].Package, loaded.Package); diff != "" {
			t.Errorf("%s: -folder +got\n%s", loaded.Catalog, diff)
		}
	}
	if diff := cmp.Diff([]string{"sample", "sample-2", "sample-3", "other"}, names); diff != "" {
		t.Errorf("names: -want +got\n%s", diff)
	}
	if bundles := packages[0].Package.Bundles; len(bundles) != 1 || bundles[0].Name != "p.v1.0.0" {
		t.Errorf("bundles = %v", bundles)
	}
	if missing, err := loadPackages(t.Context(), sources, "q"); len(missing) != 0 || err != nil {
		t.Errorf("a package that no catalog has = %v, %v", missing, err)
	}
}

func TestLoadCatalogsNamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	broken := sampleFolder(t, "broken")
	if err := os.WriteFile(filepath.Join(broken, "more.json"), []byte(`{"schema":`), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ source, want string }{
		"no folder":             {filepath.Join(broken, "none"), filepath.Join(broken, "none") + ": there is no such folder"},
		"a file":                {filepath.Join(broken, "more.json"), "more.json is not a folder"},
		"a file that is broken": {broken, broken + ": more.json: "},
		"no catalog at a URL":   {"http://" + address + "/catalogs/none", address + "/catalogs/none: error: received unexpected response status code 404"},
		"not the password":      {"http://me:secret@" + address, "http://me:xxxxx@" + address},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := loadCatalogs(t.Context(), []string{sampleFolder(t, "sample"), tt.source})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestNamesOfCatalogs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"./catalogs/community/":                     "community",
		"https://host.test/catalogs/community":      "community",
		"https://host.test/catalogs/c/api/v1/all":   "c",
		"https://host.test/catalogs/c/api/v1/all/":  "c",
		"https://host.test:8443/":                   "host.test",
		"https://host.test/api/v1/all":              "host.test",
		"https://host.test/catalogs/api/v1/all/all": "all",
	} {
		source, err := parseCatalogSource(text)
		if err != nil || source.name != want {
			t.Errorf("%s: got %q, %v, want %q", text, source.name, err, want)
		}
	}
}
