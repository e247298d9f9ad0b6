package helmchart

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Unpack has the files of the archive that "helm package" makes of a chart, as the image of
// the chart has them. They are bounded as those of [Package] are, and have to be in one folder,
// without links, as in an image.
func Unpack(archive io.Reader) (fs.FS, error) {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return nil, err
	}
	u := unpacker{packer: newPacker(), names: map[string]bool{}}
	bounded := &io.LimitedReader{R: unzipped, N: maxUnzipped}
	for entries := tar.NewReader(bounded); ; {
		header, err := entries.Next()
		if err == nil {
			err = u.add(header, entries)
		}
		switch {
		case err != nil && bounded.N <= 0:
			return nil, fmt.Errorf("the archive has more than %d bytes", maxUnzipped)
		case errors.Is(err, io.EOF) && !u.names["Chart.yaml"]:
			return nil, errors.New("there is no Chart.yaml in it")
		case errors.Is(err, io.EOF):
			return u.files()
		case err != nil:
			return nil, err
		}
	}
}

// maxUnzipped bounds an archive with all that is around the files in it, in bytes.
const maxUnzipped = 64 << 20

// unpacker takes the files of an archive.
type unpacker struct {
	*packer

	folder string // that all is in, as soon as it is known
	names  map[string]bool
}

func (u *unpacker) add(header *tar.Header, content io.Reader) error {
	if err := u.count(); err != nil {
		return err
	}
	name, quoted := strings.TrimPrefix(header.Name, "./"), excerpt.Quote(header.Name)
	switch header.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	case tar.TypeReg:
	default:
		return fmt.Errorf("%s is neither a file nor a folder", quoted)
	}
	folder, rest, _ := strings.Cut(name, "/")
	switch {
	case !fs.ValidPath(name) || strings.Contains(name, `\`):
		return fmt.Errorf("%s is no path in a chart", quoted)
	case rest == "" || u.folder != "" && folder != u.folder:
		return fmt.Errorf("%s is not in the folder of a chart, which is all that there is in its archive", quoted)
	case u.names[rest]:
		return fmt.Errorf("%s is there twice", quoted)
	}
	u.folder, u.names[rest] = folder, true
	return u.addFile(rest, header.Size, content)
}
