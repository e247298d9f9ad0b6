package bundlecheck

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

const dependenciesFile = "metadata/dependencies.yaml"

// maxDependencies bounds the file in bytes. The largest known ones have some
// hundred.
const maxDependencies = 256 << 10

// dependency is one entry of metadata/dependencies.yaml.
type dependency struct {
	Type  string `json:"type"`
	Value struct {
		PackageName string `json:"packageName"`
		Group       string `json:"group"`
		Version     string `json:"version"`
		Kind        string `json:"kind"`
	} `json:"value"`
}

// dependencies warns about what has to be there before the bundle, and about
// what would not reach a catalog: those who build catalogs read the file, and
// leave out without a word what they cannot read.
func (c *checker) dependencies() error {
	content, err := readBounded(c.files, dependenciesFile, maxDependencies)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errTooLarge), errors.Is(err, errNoFile):
		c.warnf(dependenciesFile, "", "%v", err)
		return nil
	case err != nil:
		return err
	}
	var file struct {
		Dependencies []dependency `json:"dependencies"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		c.warnf(dependenciesFile, "", "it cannot be read, and catalogs will not have the dependencies: %v", err)
		return nil
	}
	for i := range file.Dependencies {
		c.dependency(fmt.Sprintf("dependencies[%d]", i), &file.Dependencies[i])
	}
	return nil
}

func (c *checker) dependency(path string, d *dependency) {
	const notInstalled = "which is checked but not installed with it"
	switch d.Type {
	case "olm.package":
		c.warnf(dependenciesFile, path, "needs package %s in version %s, %s", excerpt.Quote(d.Value.PackageName), excerpt.Quote(d.Value.Version), notInstalled)
		if _, err := bundle.ParseVersionRange(d.Value.Version); err != nil {
			c.warnf(dependenciesFile, path+".value.version", "%v", err)
		}
	case "olm.gvk":
		c.warnf(dependenciesFile, path, "needs API %s of %s, %s", excerpt.Quote(d.Value.Kind), excerpt.Quote(d.Value.Group+"/"+d.Value.Version), notInstalled)
	case "olm.constraint":
		c.warnf(dependenciesFile, path, "states a constraint, %s", notInstalled)
	default:
		c.warnf(dependenciesFile, path, "nothing reads type %s", excerpt.Quote(d.Type))
	}
}

var (
	// errTooLarge says that a file has more than it may.
	errTooLarge = errors.New("the file is too large")
	// errNoFile says that there is something else by the name of a file.
	errNoFile = errors.New("a directory, a link or a device where a file should be")
)

// readBounded reads a regular file: to open a pipe lasts until somebody writes to it.
func readBounded(files fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Lstat(files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = errTooLarge
	}
	return content, err
}
