package packagecard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// ReadDetails gives what there is to tell of the package, of which content has all objects;
// nil if it has none. The error is that of the reader, a *fbc.StreamError, a
// *fbc.LimitError or that of ctx.
func ReadDetails(ctx context.Context, content io.Reader, name string) (*Details, error) {
	p := pack{versions: map[string]bundle.Version{}, channels: map[string][]string{}}
	p.Package = name
	if err := read(ctx, content, name, p.take); err != nil || !p.described {
		return nil, err
	}
	p.Newest = map[string]string{}
	for channel, names := range p.channels {
		if newest, known := p.newestOf(names); known {
			p.Newest[channel] = newest.String()
		}
	}
	return &p.Details, nil
}

// ReadIcon gives the icon of the package, of which content has the olm.package; nil if there
// is none that can be shown. The error is as that of [ReadDetails].
func ReadIcon(ctx context.Context, content io.Reader, name string) (*Icon, error) {
	var icon *Icon
	err := read(ctx, content, name, func(object fbc.Object) {
		if object.Schema == fbc.SchemaPackage {
			var said iconObject
			decode(object, &said)
			icon = newIcon(said.Icon.Data, said.Icon.MediaType)
		}
	})
	return icon, err
}

// read hands on the objects of a package.
func read(ctx context.Context, content io.Reader, name string, take func(fbc.Object)) error {
	decoder := fbc.NewDecoder(content, fbc.Limits{})
	for {
		object, err := decoder.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if _, one := errors.AsType[*fbc.ObjectError](err); one {
			continue // the objects around it can be used
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if object.Owner() == name {
			take(object)
		}
	}
}

// pack is a package as far as it was read.
type pack struct {
	Details

	described bool // by an olm.package
	newest    bundle.Version
	versions  map[string]bundle.Version // of bundles
	channels  map[string][]string       // names of bundles in each
}

func (p *pack) take(object fbc.Object) {
	switch object.Schema {
	case fbc.SchemaPackage:
		p.takePackage(object)
	case fbc.SchemaChannel:
		p.takeChannel(object)
	case fbc.SchemaBundle:
		p.takeBundle(object)
	}
}

func (p *pack) takePackage(object fbc.Object) {
	var said packageObject
	decode(object, &said)
	p.described = true
	p.DefaultChannel = title(said.DefaultChannel)
	p.Summary = cmp.Or(p.Summary, summaryOf(said.Description))
	p.Description = cmp.Or(p.Description, cut(said.Description))
}

func (p *pack) takeChannel(object fbc.Object) {
	var said channelObject
	decode(object, &said)
	for _, entry := range said.Entries {
		p.channels[object.Name] = append(p.channels[object.Name], entry.Name)
	}
}

func (p *pack) takeBundle(object fbc.Object) {
	var said bundleObject
	decode(object, &said)
	version, known := versionOf(said.Properties)
	if !known {
		return
	}
	p.versions[object.Name] = version
	if len(p.versions) > 1 && version.Compare(p.newest) <= 0 {
		return
	}
	p.newest, p.Images = version, 0
	for _, related := range said.RelatedImages {
		if related.Image != said.Image { // catalogs list it with the others
			p.Images++
		}
	}
	for _, property := range said.Properties {
		var metadata csvMetadata
		if property.Type == "olm.csv.metadata" && json.Unmarshal(property.Value, &metadata) == nil {
			p.describe(metadata)
			return
		}
	}
}

func versionOf(properties []property) (bundle.Version, bool) {
	for _, property := range properties {
		var value struct {
			Version string `json:"version"`
		}
		if property.Type != fbc.SchemaPackage || json.Unmarshal(property.Value, &value) != nil || len(value.Version) > maxTitleBytes {
			continue
		}
		version, err := bundle.ParseVersion(value.Version)
		return version, err == nil
	}
	return bundle.Version{}, false
}

func (p *pack) newestOf(names []string) (newest bundle.Version, known bool) {
	for _, name := range names {
		if version, ok := p.versions[name]; ok && (!known || version.Compare(newest) > 0) {
			newest, known = version, true
		}
	}
	return newest, known
}
