package catalogsummary

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// ErrTooLarge says that a summary would be larger than [MaxBytes].
var ErrTooLarge = errors.New("the summary is too large")

// maxHeads bounds the heads of one channel that are looked at; there should be one.
const maxHeads = 8

// maxChannel bounds the name of a default channel in bytes. No channel has a longer one.
const maxChannel = 1024

// packageOverhead is what a package takes in memory beside its texts, roughly.
const packageOverhead = 256

// Builder makes a summary. All objects but bundles are added first, and then the bundles
// that it asks for. The zero value is ready for use.
type Builder struct {
	packages map[string]Package
	// heads are those of channels, which come before or behind their package.
	heads      map[channelKey][]string
	deprecated map[string]bool
	// kept is what all of it takes in memory in bytes, roughly.
	kept int
}

type channelKey struct{ pkg, channel string }

// Add takes what a summary needs of an object and keeps nothing of its JSON. What cannot be
// read says nothing. The error is [ErrTooLarge].
func (b *Builder) Add(o fbc.Object) error {
	switch {
	case b.kept > MaxBytes:
		return ErrTooLarge
	case o.Schema == fbc.SchemaPackage && o.Name != "" && len(o.Name) <= maxName:
		b.addPackage(o)
	case o.Schema == fbc.SchemaChannel && o.Package != "":
		b.addChannel(o)
	case o.Schema == fbc.SchemaDeprecations && o.Package != "":
		b.addDeprecations(o)
	}
	return nil
}

func (b *Builder) addPackage(o fbc.Object) {
	var from struct {
		DefaultChannel string `json:"defaultChannel"`
		Description    string `json:"description"`
	}
	if json.Unmarshal(o.JSON, &from) != nil {
		from.DefaultChannel = ""
	}
	if b.packages == nil {
		b.packages = map[string]Package{}
	}
	p := Package{Name: o.Name, Channel: line(from.DefaultChannel, maxChannel), Description: line(from.Description, maxDescription)}
	b.kept += packageOverhead + len(p.Name) + len(p.Channel) + len(p.Description)
	b.packages[p.Name] = p
}

func (b *Builder) addChannel(o fbc.Object) {
	var from struct {
		Entries []entry `json:"entries"`
	}
	if json.Unmarshal(o.JSON, &from) != nil {
		return
	}
	if b.heads == nil {
		b.heads = map[channelKey][]string{}
	}
	heads := headsOf(from.Entries)
	for _, head := range heads {
		b.kept += len(head)
	}
	b.kept += packageOverhead + len(o.Package) + len(o.Name)
	b.heads[channelKey{o.Package, o.Name}] = heads
}

// entry is one of a channel.
type entry struct {
	Name     string   `json:"name"`
	Replaces string   `json:"replaces"`
	Skips    []string `json:"skips"`
}

// headsOf are the entries that no other one replaces or skips.
func headsOf(entries []entry) []string {
	followed := map[string]bool{}
	for _, e := range entries {
		for _, name := range append([]string{e.Replaces}, e.Skips...) {
			if name != e.Name {
				followed[name] = true
			}
		}
	}
	var heads []string
	for _, e := range entries {
		if !followed[e.Name] && len(e.Name) <= maxName && len(heads) < maxHeads && !slices.Contains(heads, e.Name) {
			heads = append(heads, strings.Clone(e.Name))
		}
	}
	return heads
}

func (b *Builder) addDeprecations(o fbc.Object) {
	var from struct {
		Entries []struct {
			Reference struct {
				Schema string `json:"schema"`
			} `json:"reference"`
		} `json:"entries"`
	}
	if json.Unmarshal(o.JSON, &from) != nil {
		return
	}
	for _, e := range from.Entries {
		if e.Reference.Schema == fbc.SchemaPackage && !b.deprecated[o.Package] {
			if b.deprecated == nil {
				b.deprecated = map[string]bool{}
			}
			b.deprecated[o.Package] = true
			b.kept += packageOverhead + len(o.Package)
		}
	}
}

// Bundle names a bundle.
type Bundle struct{ Package, Name string }

// Wanted are the bundles that are to be added, sorted: those at the head of default
// channels.
func (b *Builder) Wanted() []Bundle {
	var wanted []Bundle
	for _, name := range slices.Sorted(maps.Keys(b.packages)) {
		for _, head := range b.heads[channelKey{name, b.packages[name].Channel}] {
			wanted = append(wanted, Bundle{Package: name, Name: head})
		}
	}
	return wanted
}

// AddBundle adds a bundle that is wanted; others are left out. The error is [ErrTooLarge].
func (b *Builder) AddBundle(o fbc.Object) error {
	p, known := b.packages[o.Package]
	if !known || o.Schema != fbc.SchemaBundle || !slices.Contains(b.heads[channelKey{p.Name, p.Channel}], o.Name) {
		return nil
	}
	found := newFacts(o.JSON)
	if p.Bundle != "" && bundle.CompareVersions(found.version, p.Version) < 0 {
		return nil
	}
	p.Bundle, p.Version, p.DisplayName, p.Provider, p.Keywords = o.Name, found.version, found.displayName, found.provider, found.keywords
	p.Description = cmp.Or(found.description, p.Description)
	p.cut()
	b.kept += maxDescription + len(p.Bundle) + len(p.Version) + len(p.DisplayName) + len(p.Provider) + len(strings.Join(p.Keywords, ""))
	b.packages[p.Name] = p
	if b.kept > MaxBytes {
		return ErrTooLarge
	}
	return nil
}

// Packages are all packages, sorted by name.
func (b *Builder) Packages() []Package {
	packages := make([]Package, 0, len(b.packages))
	for _, name := range slices.Sorted(maps.Keys(b.packages)) {
		p := b.packages[name]
		p.Deprecated = b.deprecated[name]
		packages = append(packages, p)
	}
	return packages
}
