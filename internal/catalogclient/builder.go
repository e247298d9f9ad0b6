package catalogclient

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// entry is a package in an index: either usable or malformed.
type entry struct {
	Package resolve.Package `json:"package"`
	// Malformed names the object that makes the package unusable, and why.
	Malformed string `json:"malformed,omitempty"`
}

// builder collects the objects of a catalog by package. Of several objects with
// the same package, schema and name the last one counts.
type builder struct {
	packages map[string]*parts
	// texts holds each kept text once: bundle names come up in several entries.
	texts  map[string]string
	kept   int64
	limits Limits
	// objects is the number of objects with a schema.
	objects int
}

// parts are the objects of one package, by name.
type parts struct {
	channels     map[string]resolve.Channel
	bundles      map[string]resolve.Bundle
	deprecations map[string][]resolve.Deprecation
	malformed    map[objectKey]string
	facts        sharedFacts
}

type objectKey struct{ schema, name string }

func newBuilder(limits Limits) *builder {
	return &builder{packages: map[string]*parts{}, texts: map[string]string{}, limits: limits}
}

// take adds o, which was read with err. The error is what makes all of the
// catalog unusable, and not only the package of o.
func (b *builder) take(o fbc.Object, err error) error {
	if err == nil {
		err = b.add(o)
	}
	// Without a schema it may be anything: many a web page is a YAML document.
	if o.Schema != "" {
		b.objects++
	}
	var malformed *fbc.ObjectError
	if errors.As(err, &malformed) && malformed.Object.Owner() != "" {
		err = b.addMalformed(malformed)
	}
	return err
}

// add takes what is needed of o and keeps nothing of its JSON. The error is an
// *fbc.ObjectError when o is malformed, else final.
func (b *builder) add(o fbc.Object) error {
	if o.Owner() == "" {
		return nil
	}
	if o.Schema == "" {
		return o.Errorf("%w", errNoSchema)
	}
	p := b.parts(o.Owner())
	var err error
	switch o.Schema {
	case fbc.SchemaChannel:
		var channel resolve.Channel
		if channel, err = decodeChannel(o, b.limits); err == nil {
			channel = b.keepChannel(channel)
			p.channels[channel.Name] = channel
		}
	case fbc.SchemaBundle:
		var bundle resolve.Bundle
		if bundle, err = decodeBundle(o, b.limits); err == nil {
			bundle = b.keepBundle(&p.facts, bundle)
			p.bundles[bundle.Name] = bundle
		}
	case fbc.SchemaDeprecations:
		var deprecations []resolve.Deprecation
		if deprecations, err = decodeDeprecations(o, b.limits); err == nil {
			p.deprecations[b.keep(o.Name)] = b.keepDeprecations(deprecations)
		}
	}
	if err != nil {
		return o.Errorf("%w", err)
	}
	delete(p.malformed, objectKey{o.Schema, o.Name})
	return b.checkSize()
}

// addMalformed records that an object of a known package cannot be used.
func (b *builder) addMalformed(e *fbc.ObjectError) error {
	o := e.Object
	key := objectKey{b.keep(o.Schema), b.keep(o.Name)}
	b.parts(o.Owner()).malformed[key] = b.keep(excerpt.Cut(e.Error(), maxMessageBytes))
	return b.checkSize()
}

func (b *builder) checkSize() error {
	if b.kept > b.limits.KeptBytes {
		return &fbc.LimitError{What: "index bytes", Limit: b.limits.KeptBytes}
	}
	return nil
}

func (b *builder) parts(name string) *parts {
	p, ok := b.packages[name]
	if !ok {
		p = &parts{
			channels: map[string]resolve.Channel{}, bundles: map[string]resolve.Bundle{},
			deprecations: map[string][]resolve.Deprecation{}, malformed: map[objectKey]string{},
		}
		b.packages[b.keep(name)] = p
		b.kept += packageOverhead
	}
	return p
}

// keep returns text in memory of its own, shared with equal texts.
func (b *builder) keep(text string) string {
	if kept, ok := b.texts[text]; ok {
		return kept
	}
	text = strings.Clone(text)
	b.texts[text] = text
	b.kept += entryOverhead + int64(len(text))
	return text
}

// keepPackage returns p as it would be had it been built from its objects.
func (b *builder) keepPackage(p resolve.Package) resolve.Package {
	kept := resolve.Package{
		Name: b.keep(p.Name), Channels: exactly(p.Channels), Bundles: exactly(p.Bundles),
		Deprecations: b.keepDeprecations(p.Deprecations),
	}
	for i, channel := range kept.Channels {
		kept.Channels[i] = b.keepChannel(channel)
	}
	var facts sharedFacts
	for i, bundle := range kept.Bundles {
		kept.Bundles[i] = b.keepBundle(&facts, bundle)
	}
	return kept
}

func (b *builder) keepChannel(c resolve.Channel) resolve.Channel {
	// What was decoded has room to grow.
	kept := resolve.Channel{Name: b.keep(c.Name), Entries: exactly(c.Entries)}
	for i, e := range kept.Entries {
		kept.Entries[i] = resolve.Entry{Name: b.keep(e.Name), Replaces: b.keep(e.Replaces), Skips: b.keepSkips(e.Skips)}
		b.kept += entryOverhead
	}
	return kept
}

func (b *builder) keepSkips(s *resolve.Skips) *resolve.Skips {
	if s == nil {
		return nil
	}
	kept := &resolve.Skips{Bundles: exactly(s.Bundles), Range: b.keep(s.Range)}
	for i, name := range kept.Bundles {
		kept.Bundles[i] = b.keep(name)
		b.kept += skipOverhead
	}
	return kept
}

func (b *builder) keepBundle(facts *sharedFacts, bundle resolve.Bundle) resolve.Bundle {
	kept := resolve.Bundle{
		// No other bundle has the image as a rule, so looking for it is not worth it.
		Name: b.keep(bundle.Name), Version: b.keep(bundle.Version), Image: strings.Clone(bundle.Image),
		Facts: b.keepFacts(facts, bundle.Facts),
	}
	b.kept += entryOverhead + int64(len(bundle.Image))
	return kept
}

// exactly returns a copy of list in no more memory than it needs.
func exactly[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	kept := make([]T, len(list))
	copy(kept, list)
	return kept
}

func (b *builder) keepDeprecations(list []resolve.Deprecation) []resolve.Deprecation {
	kept := exactly(list)
	for i, d := range kept {
		kept[i] = resolve.Deprecation{Scope: resolve.Scope(b.keep(string(d.Scope))), Name: b.keep(d.Name), Message: b.keep(d.Message)}
		b.kept += entryOverhead
	}
	return kept
}

// What an index takes besides its text, in bytes: without it, items without text
// would cost nothing.
const (
	entryOverhead   = 96  // a bundle, an entry, a property, a deprecation or a text
	skipOverhead    = 32  // a skipped bundle, and its edge once the package is prepared
	packageOverhead = 512 // a package and, while it is built, its maps
)

// build returns the index of the packages, each in an order that does not depend on
// the order of the catalog. The error is ErrEmptyCatalog.
func (b *builder) build() (*index, error) {
	if b.objects == 0 {
		return nil, ErrEmptyCatalog
	}
	entries := make(map[string]*entry, len(b.packages))
	for name, p := range b.packages {
		entries[name] = p.build(name)
		// The rest needs the memory.
		delete(b.packages, name)
	}
	return &index{packages: entries, kept: b.kept}, nil
}

func (p *parts) build(name string) *entry {
	if len(p.malformed) > 0 {
		first := slices.MinFunc(slices.Collect(maps.Keys(p.malformed)), objectKey.compare)
		return &entry{Package: resolve.Package{Name: name}, Malformed: p.malformed[first]}
	}
	return &entry{Package: resolve.Package{
		Name:         name,
		Channels:     sortedByName(p.channels),
		Bundles:      sortedByName(p.bundles),
		Deprecations: merge(p.deprecations),
	}}
}

func (k objectKey) compare(other objectKey) int {
	return cmp.Or(cmp.Compare(k.schema, other.schema), cmp.Compare(k.name, other.name))
}

func sortedByName[T any](byName map[string]T) []T {
	if len(byName) == 0 {
		return nil
	}
	sorted := make([]T, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		sorted = append(sorted, byName[name])
	}
	return sorted
}

// merge joins the deprecation objects of a package. There should be one; that
// of several only one counts would depend on chance.
func merge(byName map[string][]resolve.Deprecation) []resolve.Deprecation {
	var merged []resolve.Deprecation
	seen := map[resolve.Deprecation]bool{}
	for _, list := range sortedByName(byName) {
		for _, d := range list {
			if !seen[d] {
				seen[d] = true
				merged = append(merged, d)
			}
		}
	}
	return merged
}
