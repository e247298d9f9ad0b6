package catalogsource_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

const content = `{"schema":"olm.package","name":"p"}
`

func sixtyFour(letter string) string { return strings.Repeat(letter, 64) }

// filesOf are the names and contents of all files.
func filesOf(root fs.FS) (map[string]string, error) {
	found := map[string]string{}
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		found[path] = string(data)
		return err
	})
	return found, err
}

func read(ctx context.Context, reader *catalogsource.Reader, text string) (found map[string]string, err error) {
	source, err := catalogsource.Parse(text)
	if err != nil {
		return nil, err
	}
	err = reader.Files(ctx, source, func(files fs.FS) (err error) {
		found, err = filesOf(files)
		return err
	})
	return found, err
}

// A catalog is the same wherever it is, and nothing of it is left behind.
func TestCatalogsFromEverywhere(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "catalog", "c.json"), content)
	write(t, filepath.Join(dir, "catalog", "more", "d.json"), content)
	if err := os.Symlink("c.json", filepath.Join(dir, "catalog", "link.json")); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(pipe, []byte(content), 0o600) }()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/catalogs/c/api/v1/all" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(content))
	}))
	t.Cleanup(server.Close)
	images := withImage(t)
	for name, test := range map[string]struct {
		source string
		want   map[string]string
	}{
		"folder":         {filepath.Join(dir, "catalog", "more"), map[string]string{"d.json": content}},
		"file":           {filepath.Join(dir, "catalog", "c.json"), map[string]string{"c.json": content}},
		"link":           {filepath.Join(dir, "catalog", "link.json"), map[string]string{"link.json": content}},
		"pipe":           {pipe, map[string]string{"stream": content}},
		"standard input": {"-", map[string]string{"stdin": content}},
		"URL":            {server.URL + "/catalogs/c", map[string]string{"all": content}},
		"image":          {"registry.test/catalog:v1", map[string]string{"c.json": content}},
	} {
		reader := &catalogsource.Reader{Images: images, HTTP: server.Client(), Stdin: strings.NewReader(content)}
		found, err := read(t.Context(), reader, test.source)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, found); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		client, err := catalogclient.New(catalogclient.Config{HTTPClient: server.Client()})
		if err != nil {
			t.Fatal(err)
		}
		if name == "pipe" {
			go func() { _ = os.WriteFile(pipe, []byte(content), 0o600) }()
		}
		source, err := catalogsource.Parse(test.source)
		if err != nil {
			t.Fatal(err)
		}
		reader.Stdin = strings.NewReader(content)
		if err := reader.Load(t.Context(), source, client, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if pkg, err := client.Package(name, "p"); err != nil || pkg == nil {
			t.Errorf("%s: package %v, %v", name, pkg, err)
		}
	}
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withImage has registry.test/catalog:v1 for who pulls so.
func withImage(t *testing.T) image.Config {
	t.Helper()
	registry, config := imagetest.Start(t, "registry.test")
	files := fstest.MapFS{"configs/c.json": &fstest.MapFile{Data: []byte(content)}}
	if _, err := registry.Push(t.Context(), "catalog:v1", files, map[string]string{image.CatalogLabel: "/configs"}); err != nil {
		t.Fatal(err)
	}
	return config
}

// A body that was cut is no catalog.
func TestWhatIsCutIsNotUsed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(content))
	}))
	t.Cleanup(server.Close)
	found, err := read(t.Context(), &catalogsource.Reader{HTTP: server.Client()}, server.URL)
	if err == nil || found != nil || !strings.HasPrefix(err.Error(), "reading catalog "+server.URL+": ") {
		t.Errorf("got %v, %v, want an error that names the source", found, err)
	}
}

// Who waits at a terminal can end the wait.
func TestTheWaitForInputEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	never, _ := io.Pipe()
	t.Cleanup(func() { _ = never.Close() })
	cancel()
	if _, err := read(ctx, &catalogsource.Reader{Stdin: never}, "-"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
