package bundle

import (
	"errors"
	"io/fs"
)

const dependenciesFile = "metadata/dependencies.yaml"

// readDependencies reads what the bundle says it depends on. Whether that makes
// sense is not judged here: it is a requirement, and says so itself. A file that is
// not what it should be states nothing: there are published bundles with such a
// file, which were always installed, and those who build catalogs leave it out.
func (p *parser) readDependencies() error {
	if _, err := fs.Lstat(p.reader.files, dependenciesFile); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	content, err := p.content(dependenciesFile)
	if err != nil || len(content) == 0 {
		return err
	}
	dependencies, err := p.decodeDependencies(content)
	switch {
	case err == nil:
		p.bundle.Dependencies = dependencies
	case isBound(err):
		p.findings.add(dependenciesFile, "", "%v", err)
	}
	return nil
}

func (p *parser) decodeDependencies(content []byte) ([]Property, error) {
	var file struct {
		Dependencies []Property `json:"dependencies"`
	}
	err := p.decodeFirst(content, &file)
	return file.Dependencies, err
}
