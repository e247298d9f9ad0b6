package image_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestChartFiles: an archive is unpacked as its image is, or refused as that is.
func TestChartFiles(t *testing.T) {
	t.Parallel()
	manifest := testkit.File("web/Chart.yaml", "name: web\n")
	deep := "web" + strings.Repeat("/x", image.MaxPathDepth-1)
	many := []testkit.TarEntry{manifest}
	for i := range image.MaxBundleEntries {
		many = append(many, testkit.File(fmt.Sprintf("web/%d", i), ""))
	}
	for name, test := range map[string]struct {
		entries []testkit.TarEntry
		want    string // of the error; "" for none
	}{
		"a chart":                  {[]testkit.TarEntry{testkit.Dir("web"), manifest}, ""},
		"as deep as may be":        {[]testkit.TarEntry{manifest, testkit.File(deep, "")}, ""},
		"deeper":                   {[]testkit.TarEntry{manifest, testkit.File(deep+"/x", "")}, "16 path elements"},
		"a long path":              {[]testkit.TarEntry{manifest, testkit.File("web/"+strings.Repeat("x", image.MaxPathBytes), "")}, "512 path bytes"},
		"a path that leads out":    {[]testkit.TarEntry{manifest, testkit.File("web/../../x", "")}, `the name contains ".."`},
		"an absolute path":         {[]testkit.TarEntry{testkit.File("/web/Chart.yaml", "")}, "the name is absolute"},
		"a link":                   {[]testkit.TarEntry{manifest, testkit.Symlink("web/values.yaml", "/etc/passwd")}, "is a link"},
		"too many files":           {many, "5000 files"},
		"two folders":              {[]testkit.TarEntry{manifest, testkit.File("db/Chart.yaml", "")}, "not in the folder of the chart"},
		"a file twice":             {[]testkit.TarEntry{manifest, manifest}, "occurs twice"},
		"a file that is too large": {[]testkit.TarEntry{manifest, testkit.File("web/large", strings.Repeat("\x00", image.MaxBundleFileBytes+1))}, "16777216 file bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive, err := testkit.Tar(test.entries...)
			if err != nil {
				t.Fatal(err)
			}
			err = image.ChartFiles(t.Context(), bytes.NewReader(testkit.Gzip(archive)), func(files fs.FS) error {
				content, err := fs.ReadFile(files, "chart/Chart.yaml")
				if err == nil && string(content) != "name: web\n" {
					t.Errorf("Chart.yaml is %q", content)
				}
				return err
			})
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, image.ErrContent) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %s", err, test.want)
			}
		})
	}
}
