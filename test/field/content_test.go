package field_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// files returns the files in a folder of the cases.
func files(t *testing.T, folder string) fstest.MapFS {
	t.Helper()
	found := fstest.MapFS{}
	root := os.DirFS(filepath.Join(testkit.Cases(t), filepath.FromSlash(folder)))
	must(t, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		found[name] = &fstest.MapFile{Data: data}
		return err
	}))
	return found
}

// read is one file of the cases.
func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testkit.Cases(t), filepath.FromSlash(file)))
	must(t, err)
	return data
}

// push pushes the chart or the bundle of a folder, and returns its image by digest.
func push(t *testing.T, folder string) string {
	t.Helper()
	return pushFiles(t, folder, files(t, folder))
}

// pushFiles is push for files that a test has changed.
func pushFiles(t *testing.T, folder string, content fstest.MapFS) string {
	t.Helper()
	repository := strings.ToLower(strings.ReplaceAll(t.Name(), "#", "-")) + "/" + folder
	var digest string
	var err error
	if content["Chart.yaml"] == nil {
		digest, err = theSite.Registry.Push(t.Context(), repository+":1", content, nil)
	} else {
		var chart struct{ Name string }
		must(t, yaml.Unmarshal(content["Chart.yaml"].Data, &chart))
		digest, err = theSite.Registry.PushChart(t.Context(), repository+":1", chart.Name, content)
	}
	must(t, err)
	return registryHost + "/" + repository + "@" + digest
}

// pushVersion pushes a chart with another version.
func pushVersion(t *testing.T, folder, version string) string {
	t.Helper()
	changed := maps.Clone(files(t, folder))
	var chart map[string]any
	must(t, yaml.Unmarshal(changed["Chart.yaml"].Data, &chart))
	chart["version"] = version
	data, err := yaml.Marshal(chart)
	must(t, err)
	changed["Chart.yaml"] = &fstest.MapFile{Data: data}
	return pushFiles(t, path.Join(folder, version), changed)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", t.Name(), err))
	}
}
