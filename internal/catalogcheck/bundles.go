package catalogcheck

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// versions are the bundles of a package by name, each with its version; nil
// where that cannot be told.
type versions map[string]*bundle.Version

// versioned is a bundle whose version can be told.
type versioned struct {
	at      fbc.FileObject
	text    string
	version bundle.Version
}

// checkBundles looks at each bundle of a package by itself, and at their order.
func (c *checker) checkBundles(p *pkg) versions {
	known := make(versions, len(p.bundles))
	var ordered []versioned
	for _, o := range p.bundles {
		if known[o.at.Name] == nil {
			known[o.at.Name] = nil
		}
		if !isName(o.at.Name) {
			c.report.warnf(o.at, "other implementations of the API cannot name this bundle in a status: %s", nameRule)
		}
		if o.malformed {
			continue
		}
		c.checkImage(o)
		c.checkKubeVersion(o)
		if v, ok := c.version(p, o); ok {
			known[o.at.Name] = &v.version
			ordered = append(ordered, v)
		}
	}
	c.checkOrder(ordered)
	return known
}

func (c *checker) checkImage(o object[bundleFields]) {
	if o.value.Image == "" {
		c.report.errorf(o.at, "the bundle has no image")
		return
	}
	if err := image.CheckReference(o.value.Image); err != nil {
		c.report.errorf(o.at, "the bundle cannot be pulled: %v", err)
	}
}

// version returns the version of a bundle, which is in its first property of
// type olm.package.
func (c *checker) version(p *pkg, o object[bundleFields]) (versioned, bool) {
	var found []*property
	for i, item := range o.value.Properties {
		if item == nil {
			c.report.errorf(o.at, "property %d is null", i)
			continue
		}
		if item.Type == propertyPackage {
			found = append(found, item)
		}
	}
	if len(found) == 0 {
		c.report.errorf(o.at, "the bundle has no version: there is no property of type %s", propertyPackage)
		return versioned{}, false
	}
	if len(found) > 1 {
		c.report.errorf(o.at, "the bundle has %d properties of type %s; only the first one counts", len(found), propertyPackage)
	}
	var value packageProperty
	if kind := fbc.KindOf(bytes.TrimSpace(found[0].Value)); kind != fbc.Map {
		c.report.errorf(o.at, "the value of property %s is not an object but %s", propertyPackage, kind)
		return versioned{}, false
	}
	if err := json.Unmarshal(found[0].Value, &value); err != nil {
		c.report.errorf(o.at, "the value of property %s cannot be read: %v", propertyPackage, typeless(err))
		return versioned{}, false
	}
	if value.PackageName != p.name {
		c.report.errorf(o.at, "the property %s is of package %s, and the bundle of package %s",
			propertyPackage, excerpt.Quote(value.PackageName), excerpt.Quote(p.name))
	}
	return c.parseVersion(o.at, value.Version)
}

func (c *checker) parseVersion(at fbc.FileObject, text string) (versioned, bool) {
	if text == "" {
		c.report.errorf(at, "the bundle has no version in its property %s", propertyPackage)
		return versioned{}, false
	}
	v, err := bundle.ParseVersion(text)
	if err != nil {
		c.report.errorf(at, "the version of the bundle is invalid: %v", err)
		return versioned{}, false
	}
	return versioned{at: at, text: text, version: v}, true
}

// checkOrder reports bundles of a package that version ranges cannot tell apart.
func (c *checker) checkOrder(list []versioned) {
	slices.SortStableFunc(list, func(a, b versioned) int {
		return cmp.Or(a.version.Compare(b.version), cmp.Compare(a.at.Name, b.at.Name))
	})
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		switch {
		case a.at.Name == b.at.Name:
			// Reported as a duplicate.
		case a.text == b.text:
			c.report.errorf(b.at, "the version %s is that of bundle %s too", excerpt.Quote(b.text), excerpt.Quote(a.at.Name))
		case a.version.Compare(b.version) == 0:
			c.report.warnf(b.at, "the version %s differs from %s of bundle %s only in build metadata, which orders nothing",
				excerpt.Quote(b.text), excerpt.Quote(a.text), excerpt.Quote(a.at.Name))
		case a.version.Version.Compare(b.version.Version) == 0:
			c.report.warnf(b.at, "the version %s differs from %s of bundle %s only in build metadata: it is the later release, and no version range can tell them apart",
				excerpt.Quote(b.text), excerpt.Quote(a.text), excerpt.Quote(a.at.Name))
		}
	}
}
