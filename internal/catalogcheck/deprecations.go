package catalogcheck

import (
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

func (c *checker) checkDeprecations(p *pkg) {
	for i, o := range p.deprecations {
		if i > 0 {
			c.report.errorf(o.at, "package %s has its deprecations in %s already; other readers of catalogs use only one of them",
				excerpt.Quote(p.name), elsewhere(p.deprecations[0].at))
		}
		if o.malformed {
			continue
		}
		seen := map[reference]bool{}
		for _, d := range o.value.Entries {
			if seen[d.Reference] {
				c.report.warnf(o.at, "there is more than one deprecation of %s", d.Reference)
			}
			seen[d.Reference] = true
			c.checkDeprecation(p, o.at, d)
		}
	}
}

func (c *checker) checkDeprecation(p *pkg, at fbc.FileObject, d deprecation) {
	if d.Message == "" {
		c.report.warnf(at, "the deprecation of %s has no message, so that no status shows it", d.Reference)
	}
	name := d.Reference.Name
	switch d.Reference.Schema {
	case fbc.SchemaPackage:
		if name != "" && name != p.name {
			c.report.warnf(at, "the deprecation of %s is of another package; it counts for package %s", d.Reference, excerpt.Quote(p.name))
		}
	case fbc.SchemaChannel:
		if !p.channelNames[name] && !c.incomplete {
			c.report.warnf(at, "the deprecation of %s is of no channel of the package", d.Reference)
		}
	case fbc.SchemaBundle:
		if _, exists := p.versions[name]; !exists && !c.incomplete {
			c.report.warnf(at, "the deprecation of %s is of no bundle of the package", d.Reference)
		}
	default:
		c.report.warnf(at, "the deprecation of %s is of nothing that can be deprecated", d.Reference)
	}
}

// String returns the reference as a message shows it.
func (r reference) String() string {
	if r.Name == "" {
		return excerpt.Quote(r.Schema)
	}
	return excerpt.Quote(r.Schema) + " " + excerpt.Quote(r.Name)
}
