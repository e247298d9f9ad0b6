package packagecard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// Read gives the cards of all packages of a catalog, sorted by package. The error is that
// of the reader, a *fbc.StreamError, a *fbc.LimitError or that of ctx.
func Read(ctx context.Context, content io.Reader) ([]Card, error) {
	found, err := read(ctx, content, false)
	cards := make([]Card, 0, len(found))
	for _, one := range found {
		cards = append(cards, one.Card)
	}
	return cards, err
}

// ReadDetails gives what there is to tell of the package, of which content has all objects;
// nil if it has none. The error is as that of [Read].
func ReadDetails(ctx context.Context, content io.Reader, name string) (*Details, error) {
	found, err := read(ctx, content, true)
	for i := range found {
		if found[i].Package == name {
			return &found[i], err
		}
	}
	return nil, err
}

// reading is a catalog as far as it was read.
type reading struct {
	long  bool // reads all of the details
	packs map[string]*pack
	icons int // bytes of them
}

// pack is one package as far as it was read.
type pack struct {
	Details

	described bool // by an olm.package
	newest    bundle.Version
	versions  map[string]bundle.Version // of bundles
	channels  map[string][]string       // names of bundles in each
}

func read(ctx context.Context, content io.Reader, long bool) ([]Details, error) {
	r := reading{long: long, packs: map[string]*pack{}}
	decoder := fbc.NewDecoder(content, fbc.Limits{})
	for {
		object, err := decoder.Next()
		if errors.Is(err, io.EOF) {
			return r.finish(), nil
		}
		if broken, one := errors.AsType[*fbc.ObjectError](err); one && broken != nil {
			continue // the objects around it can be used
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		r.take(object)
	}
}

func (r *reading) take(object fbc.Object) {
	owner := object.Owner()
	if owner == "" {
		return
	}
	p := r.packs[owner]
	if p == nil {
		if len(r.packs) == maxCards {
			return
		}
		p = &pack{versions: map[string]bundle.Version{}, channels: map[string][]string{}}
		p.Package = owner
		r.packs[owner] = p
	}
	switch object.Schema {
	case fbc.SchemaPackage:
		r.takePackage(p, object)
	case "olm.channel":
		p.takeChannel(object)
	case "olm.bundle":
		p.takeBundle(object, r.long)
	case "olm.deprecations":
		p.takeDeprecations(object)
	}
}

func (r *reading) takePackage(p *pack, object fbc.Object) {
	var said packageObject
	decode(object, &said)
	p.described = true
	p.DefaultChannel = title(said.DefaultChannel)
	p.Summary = cmp.Or(p.Summary, summaryOf(said.Description))
	if r.long {
		p.Description = cmp.Or(p.Description, cut(said.Description))
	}
	icon := newIcon(said.Icon.Data, said.Icon.MediaType)
	if icon != nil && r.icons+len(icon.Data) <= maxIconsBytes {
		r.icons += len(icon.Data)
		p.Icon = icon
	}
}

func (p *pack) takeChannel(object fbc.Object) {
	var said channelObject
	decode(object, &said)
	for _, entry := range said.Entries {
		p.channels[object.Name] = append(p.channels[object.Name], entry.Name)
	}
}

func (p *pack) takeBundle(object fbc.Object, long bool) {
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
	p.newest, p.Images = version, len(said.RelatedImages)
	for _, property := range said.Properties {
		var metadata csvMetadata
		if property.Type == "olm.csv.metadata" && json.Unmarshal(property.Value, &metadata) == nil {
			p.describe(metadata, long)
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

func (p *pack) takeDeprecations(object fbc.Object) {
	var said deprecationsObject
	decode(object, &said)
	for _, entry := range said.Entries {
		p.Deprecated = p.Deprecated || entry.Reference.Schema == fbc.SchemaPackage
	}
}

// finish leaves out what has no olm.package: nothing can be installed of it.
func (r *reading) finish() []Details {
	var found []Details
	for _, name := range slices.Sorted(maps.Keys(r.packs)) {
		p := r.packs[name]
		if !p.described {
			continue
		}
		p.Newest = map[string]string{}
		for channel, names := range p.channels {
			if newest, known := p.newestOf(names); known {
				p.Newest[channel] = newest.String()
			}
		}
		found = append(found, p.Details)
	}
	return found
}

func (p *pack) newestOf(names []string) (newest bundle.Version, known bool) {
	for _, name := range names {
		if version, ok := p.versions[name]; ok && (!known || version.Compare(newest) > 0) {
			newest, known = version, true
		}
	}
	return newest, known
}
