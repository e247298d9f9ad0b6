package catalogcheck

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// maxLooked is how many images are looked into: each takes a pull, and a chart a rendering.
const maxLooked = 5000

// Look says what the image of a bundle has. The error says why that is not known.
type Look func(ctx context.Context, ref string) (Content, error)

// Content is what is in the image of a bundle.
type Content struct {
	// Identity as the bundle has it; the zero value for one that cannot be read, or does
	// not tell.
	Identity bundle.Identity

	// KubeVersion is the range of versions of Kubernetes that a chart wants; empty for any.
	KubeVersion string

	// Errors keep the bundle from being installed; Warnings are what may not be meant. Each
	// is a line.
	Errors, Warnings []string
}

// checkContents looks into the images of a package.
func (c *checker) checkContents(ctx context.Context, p *pkg, look Look) error {
	for _, o := range p.bundles {
		if o.malformed || image.CheckReference(o.value.Image) != nil {
			continue // as it was told
		}
		if c.looked++; c.looked > maxLooked {
			if c.looked == maxLooked+1 {
				c.report.warnf(fbc.FileObject{}, "only the first %d images were looked into", maxLooked)
			}
			return nil
		}
		content, err := look(ctx, o.value.Image)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.report.errorf(o.at, "the image cannot be looked into: %v", err)
			continue
		}
		c.checkContent(p, o, content)
	}
	return nil
}

// checkContent holds what an image has against what the catalog says of it.
func (c *checker) checkContent(p *pkg, o object[bundleFields], content Content) {
	for _, text := range content.Errors {
		c.report.errorf(o.at, "in the image: %s", text)
	}
	for _, text := range content.Warnings {
		c.report.warnf(o.at, "in the image: %s", text)
	}
	if own := content.Identity; own.Package != "" && own.Package != p.name {
		c.report.notef(o.at, "the image is of package %s, which is fine if it is meant", excerpt.Quote(own.Package))
	}
	if stated, ok := statedVersion(o); ok && content.Identity.Version != "" && stated != content.Identity.Version {
		c.report.warnf(o.at, "the version is %s here, and %s in the image", excerpt.Quote(stated), excerpt.Quote(content.Identity.Version))
	}
	if wanted := content.KubeVersion; wanted != "" && !states(o, wanted) {
		c.report.warnf(o.at, "the chart wants Kubernetes %s, and no property %s says so: it is chosen for clusters of other versions too, where it waits",
			excerpt.Quote(wanted), requirement.KubeVersion)
	}
}

// statedVersion is that of the first property that has one.
func statedVersion(o object[bundleFields]) (string, bool) {
	for _, item := range o.value.Properties {
		var value packageProperty
		if item != nil && item.Type == propertyPackage {
			return value.Version, json.Unmarshal(item.Value, &value) == nil
		}
	}
	return "", false
}

// states says that a property has the range of a chart.
func states(o object[bundleFields], wanted string) bool {
	for _, item := range o.value.Properties {
		var value string
		if item != nil && item.Type == requirement.KubeVersion && json.Unmarshal(item.Value, &value) == nil && value == wanted {
			return true
		}
	}
	return false
}

// checkKubeVersion wants ranges that can be read: no cluster meets another one.
func (c *checker) checkKubeVersion(o object[bundleFields]) {
	for _, item := range o.value.Properties {
		if item == nil || item.Type != requirement.KubeVersion {
			continue
		}
		if kind := fbc.KindOf(bytes.TrimSpace(item.Value)); kind != fbc.String {
			c.report.errorf(o.at, "the value of property %s is not a string but %s, and nothing meets it", requirement.KubeVersion, kind)
			continue
		}
		var value string
		err := json.Unmarshal(item.Value, &value)
		if err == nil {
			_, err = bundle.ParseKubeVersion(value)
		}
		if err != nil {
			c.report.errorf(o.at, "the value of property %s cannot be read, and nothing meets it: %v", requirement.KubeVersion, err)
		}
	}
}
