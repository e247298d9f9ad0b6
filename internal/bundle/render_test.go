package bundle_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

// Each archive in testdata is a bundle with a sentence that says what it is
// for, options.yaml if it needs other than the default options, and what comes
// of it: want.yaml has the rendered objects, want.txt the error.

const (
	optionsFile   = "options.yaml"
	wantObjects   = "want.yaml"
	wantError     = "want.txt"
	testNamespace = "operators"
)

type goldenOptions struct {
	Certificates bundle.CertificateProvider `json:"certificates"`
	Config       map[string]any             `json:"config"`
}

func TestRender(t *testing.T) {
	t.Parallel()
	for _, path := range archives(t, "render") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			archive := readArchive(t, path)
			objects, err := renderArchive(t, archive)
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, path, archive, wantObjects, printObjects(t, objects))
		})
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	for _, path := range archives(t, "refuse") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			archive := readArchive(t, path)
			objects, err := renderArchive(t, archive)
			if err == nil {
				t.Fatalf("rendered %d objects, want an error", len(objects))
			}
			checkGolden(t, path, archive, wantError, printError(t, err))
		})
	}
}

// TestRenderTwice: one parsed bundle gives the same objects again, whatever
// became of the first ones.
func TestRenderTwice(t *testing.T) {
	t.Parallel()
	for _, path := range archives(t, "render") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			b, opts := parseArchive(t, readArchive(t, path))
			first, err := rendering.Objects(bundle.Render(b, opts))
			if err != nil {
				t.Fatal(err)
			}
			want := bundle.Digest(first)
			for _, object := range first {
				scramble(object.Object)
			}
			if bundle.Digest(first) == want {
				t.Error("the digest does not see that everything was changed")
			}
			second, err := rendering.Objects(bundle.Render(b, opts))
			if err != nil {
				t.Fatal(err)
			}
			if got := bundle.Digest(second); got != want {
				t.Errorf("digest of the second rendering = %s, want %s", got, want)
			}
		})
	}
}

// scramble changes every value, wherever it is.
func scramble(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			scramble(inner)
			value[key] = "changed"
		}
	case []any:
		for i, inner := range value {
			scramble(inner)
			value[i] = "changed"
		}
	}
}

func archives(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives in testdata/%s: %v", dir, err)
	}
	return paths
}

func readArchive(t *testing.T, path string) *txtar.Archive {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func archiveFS(archive *txtar.Archive) fstest.MapFS {
	files := fstest.MapFS{}
	for _, file := range archive.Files {
		files[file.Name] = &fstest.MapFile{Data: file.Data}
	}
	return files
}

func renderArchive(t *testing.T, archive *txtar.Archive) ([]*unstructured.Unstructured, error) {
	t.Helper()
	b, err := bundle.Parse(archiveFS(archive))
	if err == nil {
		err = b.Validate()
	}
	if err != nil {
		return nil, err
	}
	opts, err := archiveOptions(t, b, archive)
	if err != nil {
		return nil, err
	}
	return rendering.Objects(bundle.Render(b, opts))
}

func parseArchive(t *testing.T, archive *txtar.Archive) (*bundle.Bundle, bundle.Options) {
	t.Helper()
	b, err := bundle.Parse(archiveFS(archive))
	if err != nil {
		t.Fatal(err)
	}
	opts, err := archiveOptions(t, b, archive)
	if err != nil {
		t.Fatal(err)
	}
	return b, opts
}

func archiveOptions(t *testing.T, b *bundle.Bundle, archive *txtar.Archive) (bundle.Options, error) {
	t.Helper()
	var golden goldenOptions
	content, err := fs.ReadFile(archiveFS(archive), optionsFile)
	if err == nil {
		err = yaml.UnmarshalStrict(content, &golden)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	inline, err := yaml.Marshal(golden.Config)
	if err != nil {
		t.Fatal(err)
	}
	config, err := bundle.ParseConfig(b, testNamespace, inline)
	return bundle.Options{
		InstallNamespace: testNamespace, Config: config, Certificates: golden.Certificates,
	}, err
}

func printObjects(t *testing.T, objects []*unstructured.Unstructured) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, object := range objects {
		encoded, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(encoded)
	}
	return out.Bytes()
}

// printError is the kind of an error and its message, a violation a line.
func printError(t *testing.T, err error) []byte {
	t.Helper()
	var invalid *bundle.InvalidError
	var unsupported *bundle.UnsupportedError
	var config *bundle.ConfigError
	switch {
	case errors.As(err, &invalid):
		var out strings.Builder
		out.WriteString("invalid bundle\n")
		for _, violation := range invalid.Violations {
			fmt.Fprintln(&out, violation)
		}
		return []byte(out.String())
	case errors.As(err, &unsupported), errors.As(err, &config):
		return []byte(err.Error() + "\n")
	default:
		t.Fatalf("unexpected kind of error: %v", err)
		return nil
	}
}

func checkGolden(t *testing.T, path string, archive *txtar.Archive, name string, got []byte) {
	t.Helper()
	var want []byte
	updated := &txtar.Archive{Comment: archive.Comment}
	for _, file := range archive.Files {
		if file.Name == name {
			want = file.Data
			continue
		}
		updated.Files = append(updated.Files, file)
	}
	if *update {
		updated.Files = append(updated.Files, txtar.File{Name: name, Data: got})
		if err := os.WriteFile(path, txtar.Format(updated), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s -golden +rendered:\n%s", bytes.TrimSpace(archive.Comment), diff)
	}
}
