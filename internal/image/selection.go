package image

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// CatalogLabel is the image label that names the directory of the catalog.
const CatalogLabel = "operators.operatorframework.io.index.configs.v1"

// Selection says which part of an image is kept.
type Selection int

const (
	// BundleContent keeps the directories manifests and metadata.
	BundleContent Selection = iota + 1
	// CatalogContent keeps the directory that the label [CatalogLabel] names.
	CatalogContent
)

// String returns the name of the selection, which is also part of the names
// in the cache.
func (s Selection) String() string {
	switch s {
	case BundleContent:
		return "bundle"
	case CatalogContent:
		return "catalog"
	default:
		return fmt.Sprintf("Selection(%d)", int(s))
	}
}

func (s Selection) valid() bool { return s == BundleContent || s == CatalogContent }

// filter is a selection made concrete: the directories that are kept, as
// clean relative paths. The path "." keeps everything.
type filter struct{ dirs []string }

func bundleFilter() filter { return filter{dirs: []string{"manifests", "metadata"}} }

// catalogFilter returns the filter for the value of the catalog label, and
// the kept directory.
func catalogFilter(value string) (filter, string) {
	dir := cleanName(value)
	return filter{dirs: []string{dir}}, dir
}

// includes reports whether name is one of the kept directories or below one.
func (f filter) includes(name string) bool {
	return slices.ContainsFunc(f.dirs, func(dir string) bool {
		return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
	})
}

// above reports whether a kept directory lies below name.
func (f filter) above(name string) bool {
	return slices.ContainsFunc(f.dirs, func(dir string) bool {
		return name == "." || strings.HasPrefix(dir, name+"/")
	})
}

// cleanName returns name as a clean path relative to the image root, which is
// how container runtimes read a leading slash.
func cleanName(name string) string {
	if clean := path.Clean("/" + name)[1:]; clean != "" {
		return clean
	}
	return "."
}
