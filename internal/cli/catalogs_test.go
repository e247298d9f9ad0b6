package cli

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

const sampleContent = `{"schema":"olm.package","name":"p"}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1.0.0"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1.0.0","image":"r/p:v1","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
`

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

// sampleReader reads catalogs as flags say, and the sample content from standard
// input.
func sampleReader(t *testing.T, flags Catalogs) *catalogsource.Reader {
	t.Helper()
	command := &cobra.Command{}
	command.SetContext(t.Context())
	command.SetIn(strings.NewReader(sampleContent))
	reader, err := flags.Reader(command)
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

// A folder, a file, a server by either of its URLs and standard input give the same
// package.
func TestLoad(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /catalogs/sample/api/v1/all", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(sampleContent))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	folder := sampleFolder(t, "sample")
	sources := []string{
		folder, server.URL + "/catalogs/sample",
		server.URL + "/catalogs/sample/api/v1/all", sampleFolder(t, "other") + "/",
		filepath.Join(folder, "catalog.json"), "-",
	}
	loaded, err := load(t.Context(), sampleReader(t, Catalogs{}), sources)
	if err != nil {
		t.Fatal(err)
	}
	packages, _ := loaded.Offers("p", nil)
	for catalog, got := range packages {
		if diff := cmp.Diff(packages["sample"], got); diff != "" {
			t.Errorf("%s: -folder +got\n%s", catalog, diff)
		}
	}
	if diff := cmp.Diff([]string{"sample", "sample-2", "sample-3", "other", "catalog", "stdin"}, loaded.Names); diff != "" {
		t.Errorf("names: -want +got\n%s", diff)
	}
	if bundles := packages["sample"].Bundles; len(packages) != len(sources) || len(bundles) != 1 || bundles[0].Name != "p.v1.0.0" {
		t.Errorf("bundles = %v", bundles)
	}
	if missing, offers := loaded.Offers("q", nil); len(missing) != 0 || len(offers) != len(sources) || offers[0].Err != nil {
		t.Errorf("a package that no catalog has = %v, %v", missing, offers)
	}
}

func TestLoadNamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	broken := sampleFolder(t, "broken")
	if err := os.WriteFile(filepath.Join(broken, "more.json"), []byte(`{"schema":`), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ source, want string }{
		"nothing":                 {filepath.Join(broken, "none"), filepath.Join(broken, "none") + `" is neither a folder, a file, a URL nor an image: `},
		"empty":                   {"", "the source of a catalog is empty: it is a folder, a file, "},
		"a folder that is broken": {broken, broken + ": more.json: "},
		"a file that is broken":   {filepath.Join(broken, "more.json"), ": more.json: "},
		"no catalog at a URL":     {"http://" + address + "/catalogs/none", address + "/catalogs/none: error: received unexpected response status code 404"},
		"not the password":        {"http://me:secret@" + address, "http://me:xxxxx@" + address},
		"an image":                {address + "/catalog:v1", "pulling " + address + "/catalog:v1: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sources := []string{sampleFolder(t, "sample"), tt.source}
			_, err := load(t.Context(), sampleReader(t, Catalogs{}), sources)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestStandardInputIsReadOnce(t *testing.T) {
	t.Parallel()
	_, err := load(t.Context(), sampleReader(t, Catalogs{}), []string{"-", "-"})
	if program.Code(err) != program.Usage {
		t.Errorf("got error %v, want wrong usage", err)
	}
}

// Whom to trust can be said, and an error that comes of it names the flag.
func TestAuthorities(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(sampleContent))
	}))
	t.Cleanup(server.Close)
	_, err := load(t.Context(), sampleReader(t, Catalogs{}), []string{server.URL})
	if err == nil || !strings.Contains(err.Error(), "--certificate-authority names a file") {
		t.Errorf("got error %v, want one that names the flag", err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	flags := Catalogs{authority: writeFile(t, string(block))}
	if _, err := load(t.Context(), sampleReader(t, flags), []string{server.URL}); err != nil {
		t.Error(err)
	}
	for _, path := range []string{writeFile(t, "nothing"), filepath.Join(t.TempDir(), "none"), "/dev/zero"} {
		flags := Catalogs{authority: path}
		command := &cobra.Command{}
		command.SetContext(t.Context())
		if _, err := flags.Reader(command); program.Code(err) != program.Usage {
			t.Errorf("%s: got error %v, want wrong usage", path, err)
		}
	}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
