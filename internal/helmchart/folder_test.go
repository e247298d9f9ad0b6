package helmchart_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/helmchart"
)

// TestFolders has a folder read as Helm packages it, and one of an operator left alone that
// has a file of that name besides.
func TestFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if helmchart.IsFolder(os.DirFS(dir)) {
		t.Error("an empty folder is taken for a chart")
	}
	write("Chart.yaml", "apiVersion: v2\nname: web\nversion: v1.0.0\n")
	write("templates/app.yaml", "kind: ConfigMap")
	write("templates/draft.yaml", "{{")
	write(".helmignore", "draft.yaml\n")
	if !helmchart.IsFolder(os.DirFS(dir)) {
		t.Fatal("the folder of a chart is not known")
	}
	files, err := helmchart.Package(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(files, "chart/templates/draft.yaml"); err == nil {
		t.Error("what is to be ignored is there")
	}
	content, err := bundle.Parse(files)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := content.Identity()
	if want := (bundle.Identity{Package: "web", Name: "web.v1.0.0", Version: "1.0.0"}); identity != want || err != nil {
		t.Errorf("identity %v, %v; want %v", identity, err, want)
	}
	if bundle.IsChart(os.DirFS(dir)) {
		t.Error("a folder is taken for the image of a chart")
	}
	write("metadata/annotations.yaml", "annotations: {}\n")
	if helmchart.IsFolder(os.DirFS(dir)) {
		t.Error("the folder of another bundle is taken for a chart")
	}
}

// TestFoldersAreBounded has folders that have more than a chart, or lead elsewhere. What is an
// archive in them is for who renders them.
func TestFoldersAreBounded(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("open"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		make func(dir string) error
		want string // of the error; empty for none
	}{
		"a link to a file of it":  {func(dir string) error { return os.Symlink("Chart.yaml", filepath.Join(dir, "copy.yaml")) }, ""},
		"a link to elsewhere":     {func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "leak")) }, "path escapes from parent"},
		"the same, by its way":    {func(dir string) error { return os.Symlink("../../../../../etc/passwd", filepath.Join(dir, "leak")) }, "path escapes from parent"},
		"a link to what it is in": {func(dir string) error { return os.Symlink(".", filepath.Join(dir, "around")) }, "around"},
		"no archive, by its name": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "charts", "db.tgz"), []byte("x"), 0o600)
		}, ""},
		"a file that is too large":  {func(dir string) error { return truncated(dir, "large", bundle.MaxFileBytes+1) }, "large has more than 8388608 bytes"},
		"ignored rules without end": {func(dir string) error { return truncated(dir, ".helmignore", 64<<20) }, ".helmignore"},
		"all files": {func(dir string) error {
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				if err := truncated(dir, name, bundle.MaxFileBytes); err != nil {
					return err
				}
			}
			return nil
		}, "all files have more than 33554432 bytes"},
		"too many files": {func(dir string) error {
			for i := range bundle.MaxChartFiles {
				if err := truncated(dir, strconv.Itoa(i), 0); err != nil {
					return err
				}
			}
			return nil
		}, "more than 5000 files and folders"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "charts"), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "Chart.yaml"), []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := test.make(dir); err != nil {
				t.Fatal(err)
			}
			_, err := helmchart.Package(dir)
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one with %q", err, test.want)
			}
		})
	}
}

// truncated makes a file of a size in which nothing is written.
func truncated(dir, name string, size int64) error {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// TestConfigSchema is what people get to see of the schema of a chart.
func TestConfigSchema(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		schema string
		want   bool
	}{
		"its own":             {`{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}`, true},
		"one with references": {`{"type": "object", "properties": {"a": {"$ref": "#/definitions/a"}}}`, false},
		"none":                {``, false},
		"broken":              {`{`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := bundle.Parse(web(map[string]string{"values.schema.json": test.schema}).files)
			if err != nil {
				t.Fatal(err)
			}
			schema, err := bundle.ConfigSchema(content)
			if err != nil {
				t.Fatal(err)
			}
			properties, _ := schema["properties"].(map[string]any)
			if allow, _ := properties["allowLookup"].(map[string]any); allow["type"] != "boolean" {
				t.Errorf("the schema of allowLookup is %v", allow)
			}
			values, _ := properties["values"].(map[string]any)
			_, has := values["properties"]
			_, required := values["required"]
			if values["type"] != "object" || has != test.want || required {
				t.Errorf("the schema of values is %v", values)
			}
		})
	}
}
