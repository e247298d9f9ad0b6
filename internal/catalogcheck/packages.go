package catalogcheck

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// reservedSchemas begin like this. Other schemas are nobody's business.
const reservedSchemas = "olm."

func (c *checker) unknownSchema(o fbc.FileObject) {
	if slices.Contains(templateSchemas, o.Schema) {
		c.report.warnf(o, "this is a template, which nothing reads: make the catalog of it with kubectl extension catalog template")
		return
	}
	if strings.HasPrefix(o.Schema, reservedSchemas) && !strings.HasPrefix(o.Schema, "olm.csv.") {
		c.report.warnf(o, "nothing reads objects of schema %s", excerpt.Quote(o.Schema))
	}
}

// templateSchemas are those of the templates that catalogs are made of.
var templateSchemas = []string{"olm.template.basic", "olm.semver"}

// check looks at a package once all of it has been read.
func (c *checker) check(p *pkg) {
	duplicates(c.report, p.packages)
	duplicates(c.report, p.channels)
	duplicates(c.report, p.bundles)
	p.channelNames = make(map[string]bool, len(p.channels))
	for _, o := range p.channels {
		p.channelNames[o.at.Name] = true
	}
	p.versions = c.checkBundles(p)
	c.checkPackage(p)
	c.checkChannels(p)
	c.checkDeprecations(p)
}

// duplicates reports objects of one schema and package that share their name.
func duplicates[T any](r *report, objects []object[T]) {
	seen := make(map[string]fbc.FileObject, len(objects))
	for _, o := range objects {
		first, again := seen[o.at.Name]
		if !again {
			seen[o.at.Name] = o.at
			continue
		}
		r.errorf(o.at, "duplicate: the same schema, package and name are in %s", elsewhere(first))
	}
}

// elsewhere says where an object is.
func elsewhere(o fbc.FileObject) string {
	return fmt.Sprintf("object %d of %s", o.Position, excerpt.Line(o.Path, maxMessage))
}

// nameRule is what the API demands of names.
const nameRule = "names are lower case letters, digits, '-' and '.', begin and end with a letter or digit, and have at most 253 characters"

// isName reports whether the API accepts a name. One that could not be read is
// not worth a second problem.
func isName(name string) bool {
	return name == "" || len(validation.IsDNS1123Subdomain(name)) == 0
}

func (c *checker) checkPackage(p *pkg) {
	if !isName(p.name) {
		c.report.errorf(p.about(), "no ClusterExtension can ask for package %s: %s", excerpt.Quote(p.name), nameRule)
	}
	if len(p.packages) == 0 && !c.incomplete {
		c.report.errorf(p.first, "package %s has no object of schema %s", excerpt.Quote(p.name), fbc.SchemaPackage)
	}
	if len(p.bundles) == 0 && !c.incomplete {
		c.report.warnf(p.about(), "package %s has no bundles", excerpt.Quote(p.name))
	}
	if len(p.channels) == 0 && !c.incomplete {
		c.report.warnf(p.about(), "package %s has no channels", excerpt.Quote(p.name))
	}
	for _, o := range p.packages {
		c.checkDefaultChannel(p, o)
	}
}

// about returns the object to report problems of the package as a whole at.
func (p *pkg) about() fbc.FileObject {
	if len(p.packages) > 0 {
		return p.packages[0].at
	}
	return p.first
}

func (c *checker) checkDefaultChannel(p *pkg, o object[packageFields]) {
	switch name := o.value.DefaultChannel; {
	case o.malformed:
	case name == "":
		c.report.warnf(o.at, "there is no default channel, which other readers of catalogs require")
	case !p.channelNames[name] && !c.incomplete:
		c.report.errorf(o.at, "the default channel %s does not exist", excerpt.Quote(name))
	}
}
