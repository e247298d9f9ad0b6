package image

import (
	"archive/tar"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// ChartDir is the directory in Files that a Helm chart is in. The image of another
// bundle has no such directory: of that, manifests and metadata are kept.
const ChartDir = "chart"

// chartEntry applies one entry of the archive of a chart, in which all is in one folder
// that has the name of the chart. Nothing is left out, and an archive of one layer
// hides nothing: what looks like a whiteout is a file of that name.
func (u *unpacker) chartEntry(header *tar.Header, name string, body io.Reader) error {
	folder, rest, _ := strings.Cut(name, "/")
	isDir := header.Typeflag == tar.TypeDir
	switch {
	case strings.Contains(header.Name, `\`):
		return &EntryError{Entry: header.Name, Problem: "the name contains a backslash"}
	case name == "." && isDir:
		return nil
	case rest == "" && !isDir:
		return &EntryError{Entry: name, Problem: "not in the folder of a chart"}
	case u.folder == "":
		u.folder = folder
	case u.folder != folder:
		return &EntryError{Entry: name, Problem: "not in the folder of the chart, which is " + excerpt.Quote(u.folder)}
	}
	return u.keep(header, path.Join(ChartDir, rest), body)
}

// ChartFiles unpacks the archive of a chart, as [Puller] unpacks its image, and passes the files to
// use. It deletes them afterwards. The error is the error of use, or matches [ErrContent] if
// images with this archive are refused.
func ChartFiles(ctx context.Context, archive io.Reader, use func(fs.FS) error) error {
	dir, err := os.MkdirTemp("", "operator-controller-chart-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tree, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = tree.Close() }()
	u := newUnpacker(tree, filter{}, DefaultLimits(BundleContent), func(int64) error { return nil })
	u.isChart = true
	if err := u.apply(ctx, archive); err != nil {
		return err
	}
	return use(tree.FS())
}
