package catalogsource_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogsource"
)

func TestNamesOfCatalogs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "community.d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "catalog.v1.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		dir:                                    "community.d",
		dir + "/":                              "community.d",
		file:                                   "catalog.v1",
		"-":                                    "stdin",
		"https://host.test/catalogs/community": "community",
		"https://host.test/catalogs/c/api/v1/all":         "c",
		"https://host.test/catalogs/c/api/v1/all/":        "c",
		"https://host.test:8443/":                         "host.test",
		"https://host.test/api/v1/all":                    "host.test",
		"https://host.test/catalogs/api/v1/all/all":       "all",
		"host.test:5000/catalogs/community:latest":        "community",
		"host.test/community@sha256:" + sixtyFour("a"):    "community",
		"host.test/community:v1@sha256:" + sixtyFour("a"): "community",
	} {
		source, err := catalogsource.Parse(text)
		if err != nil || source.Name != want {
			t.Errorf("%s: got %q, %v, want %q", text, source.Name, err, want)
		}
	}
}

func TestWhatIsNoSource(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "none", "./none", "host.test/community", "http://host.test:port/", "Host.Test/UPPER:v1"} {
		if source, err := catalogsource.Parse(text); err == nil {
			t.Errorf("%q is %+v", text, source)
		}
	}
}

func TestNoPasswordIsShown(t *testing.T) {
	t.Parallel()
	source, err := catalogsource.Parse("https://me:secret@host.test/catalogs/c")
	if want := "https://me:xxxxx@host.test/catalogs/c"; err != nil || source.String() != want {
		t.Errorf("got %q, %v, want %q", source, err, want)
	}
}

// Where a server is expected, nothing else is read.
func TestOnlyServers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", ".", "/etc", "file:///etc", "host.test/community:v1", "https:///catalogs/c"} {
		if source, err := catalogsource.ParseURL(text); err == nil {
			t.Errorf("%q is %+v", text, source)
		}
	}
	if source, err := catalogsource.ParseURL("https://host.test/catalogs/c"); err != nil || source.Name != "c" {
		t.Errorf("got %+v, %v", source, err)
	}
}
