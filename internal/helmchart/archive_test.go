package helmchart_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/helmchart"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func archive(t *testing.T, entries ...testkit.TarEntry) []byte {
	t.Helper()
	content, err := testkit.Tar(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Gzip(content)
}

// TestArchives has packaged charts read as their images have them, and what is none refused.
func TestArchives(t *testing.T) {
	t.Parallel()
	manifest := testkit.File("web/Chart.yaml", "\xEF\xBB\xBFapiVersion: v2\nname: web\nversion: 1.0.0\n")
	template := testkit.File("web/templates/app.yaml", "kind: ConfigMap")
	for name, test := range map[string]struct {
		archive []byte
		want    string // of the error; empty for none
	}{
		"a chart":                 {archive(t, testkit.Dir("web"), manifest, template), ""},
		"with a dot before":       {archive(t, testkit.File("./web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"), testkit.File("./web/templates/app.yaml", "a: b")), ""},
		"no chart":                {archive(t, template), "there is no Chart.yaml in it"},
		"nothing":                 {testkit.Gzip(make([]byte, 64<<20)), "there is no Chart.yaml in it"},
		"no archive":              {[]byte("apiVersion: v2"), "gzip: invalid header"},
		"a compressed text":       {testkit.Gzip([]byte(strings.Repeat("text", 400))), "tar"},
		"cut":                     {archive(t, manifest, template)[:60], "unexpected EOF"},
		"a file beside":           {archive(t, manifest, testkit.File("other", "x")), `"other" is not in the folder of a chart`},
		"a second folder":         {archive(t, manifest, testkit.File("db/Chart.yaml", "x")), `"db/Chart.yaml" is not in the folder of a chart`},
		"a path that leads out":   {archive(t, manifest, testkit.File("web/../../etc/passwd", "x")), `"web/../../etc/passwd" is no path in a chart`},
		"an absolute path":        {archive(t, testkit.File("/web/Chart.yaml", "x")), `"/web/Chart.yaml" is no path in a chart`},
		"a backslash":             {archive(t, testkit.File(`web\..\Chart.yaml`, "x")), "is no path in a chart"},
		"a link":                  {archive(t, manifest, testkit.Symlink("web/values.yaml", "/etc/passwd")), `"web/values.yaml" is neither a file nor a folder`},
		"a file twice":            {archive(t, manifest, manifest), `"web/Chart.yaml" is there twice`},
		"a file without bound":    {archive(t, manifest, testkit.File("web/zeros", strings.Repeat("\x00", bundle.MaxFileBytes+1))), "zeros has more than 8388608 bytes"},
		"all files without bound": {archive(t, zeros(5)...), "all files have more than 33554432 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := helmchart.Unpack(bytes.NewReader(test.archive))
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error = %v, want one with %s", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := bundle.Parse(files)
			if err != nil {
				t.Fatal(err)
			}
			if identity, err := content.Identity(); err != nil || identity.Name != "web.v1.0.0" {
				t.Errorf("identity %v: %v", identity, err)
			}
			if _, err := fs.Stat(files, "chart/templates/app.yaml"); err != nil {
				t.Error(err)
			}
		})
	}
}

// zeros are files of the size that each may have.
func zeros(n int) (files []testkit.TarEntry) {
	text := strings.Repeat("\x00", bundle.MaxFileBytes)
	for i := range n {
		files = append(files, testkit.File(fmt.Sprintf("web/%d", i), text))
	}
	return files
}

// TestArchivesAreBounded has as many files as a chart may have, and one more, and an archive that
// is large by what is around its files.
func TestArchivesAreBounded(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	entries := make([]testkit.TarEntry, 0, bundle.MaxChartFiles+1)
	entries = append(entries, testkit.File("web/Chart.yaml", ""))
	for i := range bundle.MaxChartFiles - 1 {
		entries = append(entries, testkit.File(fmt.Sprintf("web/%d", i), ""))
	}
	if _, err := helmchart.Unpack(bytes.NewReader(archive(t, entries...))); err != nil {
		t.Error(err)
	}
	_, err := helmchart.Unpack(bytes.NewReader(archive(t, append(entries, testkit.File("web/more", ""))...)))
	if err == nil || !strings.Contains(err.Error(), "more than 5000 files and folders") {
		t.Errorf("one more: error %v", err)
	}
	for count, isRefused := range map[int]bool{600: false, 700: true} {
		folders := []testkit.TarEntry{testkit.File("web/Chart.yaml", "")}
		for i := range count {
			folders = append(folders, testkit.Dir(fmt.Sprintf("web/%d%s", i, strings.Repeat("x", 100<<10))))
		}
		_, err := helmchart.Unpack(bytes.NewReader(archive(t, folders...)))
		if isRefused != (err != nil && strings.Contains(err.Error(), "the archive has more than 67108864 bytes")) || !isRefused && err != nil {
			t.Errorf("%d long names: error %v", count, err)
		}
	}
}
