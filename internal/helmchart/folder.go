package helmchart

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"helm.sh/helm/v3/pkg/ignore"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// IsFolder says that a folder is one that Helm would package.
func IsFolder(files fs.FS) bool {
	if _, err := fs.Stat(files, "Chart.yaml"); err != nil {
		return false
	}
	_, err := fs.Stat(files, "metadata/annotations.yaml")
	return errors.Is(err, fs.ErrNotExist)
}

// Package has the files of a folder that Helm would package, as the image of the chart has
// them: without what .helmignore names. They are bounded as those of a bundle are, and no link
// leads out of the folder. Charts in it that are archives stay what they are.
func Package(folder string) (fs.FS, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("reading the chart in %s: %w", folder, err)
	}
	defer func() { _ = root.Close() }()
	p := folderPacker{packer: newPacker(), from: root.FS()}
	if p.ignored, err = ignoredIn(p.from); err == nil {
		err = p.addFolder(".")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the chart in %s: %w", folder, err)
	}
	return p.files()
}

// ignoredIn is what Helm leaves out of a folder.
func ignoredIn(files fs.FS) (*ignore.Rules, error) {
	rules := ignore.Empty()
	file, err := files.Open(ignore.HelmIgnore)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		defer file.Close()
		if rules, err = ignore.Parse(io.LimitReader(file, bundle.MaxFileBytes)); err != nil {
			return nil, fmt.Errorf("reading %s: %w", ignore.HelmIgnore, err)
		}
	}
	rules.AddDefaults()
	return rules, nil
}

// folderPacker takes the files of a folder.
type folderPacker struct {
	*packer

	from    fs.FS
	ignored *ignore.Rules
}

// addFolder follows links as Helm does: one that leads around comes to the bound of entries.
func (p *folderPacker) addFolder(name string) error {
	entries, err := fs.ReadDir(p.from, name)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := p.add(path.Join(name, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (p *folderPacker) add(name string) error {
	info, err := fs.Stat(p.from, name)
	if err != nil {
		return err
	}
	if p.ignored.Ignore(name, info) {
		return nil
	}
	if err := p.count(); err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return p.addFolder(name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a folder", name)
	}
	file, err := p.from.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return p.addFile(name, info.Size(), file)
}

// packer keeps the files of a chart, within the bounds of those of a bundle.
type packer struct {
	content bytes.Buffer
	archive *zip.Writer

	entries int   // files and folders so far
	bytes   int64 // that are left for files
}

func newPacker() *packer {
	p := &packer{bytes: bundle.MaxTotalBytes}
	p.archive = zip.NewWriter(&p.content)
	return p
}

// count takes a file or a folder.
func (p *packer) count() error {
	if p.entries++; p.entries > bundle.MaxChartFiles {
		return fmt.Errorf("more than %d files and folders", bundle.MaxChartFiles)
	}
	return nil
}

// addFile takes no more than the size that a file has said.
func (p *packer) addFile(name string, size int64, file io.Reader) error {
	switch {
	case size > bundle.MaxFileBytes:
		return fmt.Errorf("%s has more than %d bytes", name, bundle.MaxFileBytes)
	case size > p.bytes:
		return fmt.Errorf("all files have more than %d bytes", bundle.MaxTotalBytes)
	}
	p.bytes -= size
	content, err := io.ReadAll(io.LimitReader(file, size))
	if err != nil {
		return err
	}
	entry, err := p.archive.Create(path.Join(bundle.ChartDir, name))
	if err == nil {
		_, err = entry.Write(bytes.TrimPrefix(content, byteOrderMark))
	}
	if err != nil {
		return fmt.Errorf("packaging %s: %w", name, err)
	}
	return nil
}

// files are those that were taken.
func (p *packer) files() (fs.FS, error) {
	if err := p.archive.Close(); err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(p.content.Bytes()), int64(p.content.Len()))
}

// byteOrderMark is what editors put before a text, and Helm takes away.
var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}
