package bundlecheck

import (
	"errors"
	"io/fs"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Check returns all problems of the bundle in the files, sorted. It fails if the
// files cannot be read.
func Check(files fs.FS) ([]Problem, error) {
	c := checker{files: files}
	for _, step := range []func() error{c.dependencies, c.content} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return c.sorted(), nil
}

type checker struct {
	report

	files fs.FS
}

// content checks what is installed. What cannot be parsed is not looked at any
// further: what it lacks may be in what could not be parsed.
func (c *checker) content() error {
	parsed, err := bundle.Parse(c.files)
	if err != nil {
		return c.refused(err)
	}
	c.declarations(parsed)
	if err := parsed.Validate(); err != nil {
		return c.refused(err)
	}
	for _, config := range configurations(parsed) {
		objects, err := render(parsed, config)
		if err != nil {
			if err := c.refused(err); err != nil {
				return err
			}
			continue
		}
		c.subjects(objects)
	}
	return nil
}

// refused reports what a bundle is refused for. It returns any other error.
func (c *checker) refused(err error) error {
	if invalid, ok := errors.AsType[*bundle.InvalidError](err); ok {
		for _, violation := range invalid.Violations {
			c.errorf(violation.File, violation.Path, "%s", violation.Message)
		}
		return nil
	}
	if unsupported, ok := errors.AsType[*bundle.UnsupportedError](err); ok {
		for _, reason := range unsupported.Reasons {
			c.errorf("", "", "%s", reason)
		}
		return nil
	}
	return err
}
