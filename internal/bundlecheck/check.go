package bundlecheck

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Check returns all problems of the bundle in the files, sorted. It fails if the
// files cannot be read. A chart is rendered with its default values.
func Check(files fs.FS, charts bundle.ChartEngine) ([]Problem, error) {
	c := checker{files: files, charts: charts}
	for _, step := range []func() error{c.dependencies, c.content} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return c.sorted(), nil
}

type checker struct {
	report

	files  fs.FS
	charts bundle.ChartEngine
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
		rendered, err := c.render(parsed, config)
		if unset, ok := errors.AsType[*bundle.ConfigError](err); ok && parsed.Chart != nil {
			c.warnf("", "", "without values of whoever installs it, nothing comes of the chart that could be checked: %s", strings.Join(unset.Problems, "; "))
			continue
		}
		if err != nil {
			if err := c.refused(err); err != nil {
				return err
			}
			continue
		}
		if rendered.Lookups == bundle.LookupsRefused {
			c.warnf("", "", "%s", bundle.LookupsRefusedText)
		}
		c.subjects(rendered.Given())
		c.registrations(rendered.Objects)
		c.definitions(rendered.Objects)
		c.webhooks(rendered.Objects)
		c.placeholders(rendered.Placeholders)
		c.webhookServices(rendered.All())
		c.selectors(rendered.Objects)
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
