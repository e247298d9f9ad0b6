package mirrorset

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"go.podman.io/image/v5/pkg/sysregistriesv2"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

const (
	// maxSources bounds those of all sets: registries.conf is read by every pull.
	maxSources = 4_000
	// maxMirrors bounds those of one source for digests, and those for tags. They are tried
	// one after the other within one time.
	maxMirrors = 16
)

// Explicit finds what the files of an administrator say of a host or a repository: the
// registry with the longest prefix, or nil.
type Explicit func(name string) (*sysregistriesv2.Registry, error)

// Problem is what is not used of a set.
type Problem struct {
	Set  Set
	Text string
}

// Registries are the entries of registries.conf that sets come to, sorted by source.
//
// The explicit files win: a source that they name is theirs alone. What they say of a
// registry as a whole, that it is insecure or blocked, holds for the sources and the mirrors
// below it, as a more precise entry would undo it otherwise. Several sets with one source
// give their mirrors in the order of the names of the sets. One of them is enough to have
// the source never contacted. The error is that of explicit.
func Registries(sets []Set, explicit Explicit) ([]sysregistriesv2.Registry, []Problem, error) {
	sets = slices.Clone(sets)
	slices.SortFunc(sets, func(a, b Set) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	found := map[string]*sysregistriesv2.Registry{}
	var problems []Problem
	for _, set := range sets {
		if said := slices.Concat(set.Problems, addEntries(found, set)); len(said) > 0 {
			problems = append(problems, Problem{Set: set, Text: excerpt.Of(said, maxText)})
		}
	}
	registries := make([]sysregistriesv2.Registry, 0, len(found))
	for _, registry := range found {
		isTheirs, err := takeOver(registry, explicit)
		if err != nil {
			return nil, nil, err
		}
		if !isTheirs {
			registries = append(registries, *registry)
		}
	}
	slices.SortFunc(registries, func(a, b sysregistriesv2.Registry) int { return cmp.Compare(a.Prefix, b.Prefix) })
	return registries, problems, nil
}

// addEntries adds those of a set to what was found before, by source, and says what there is no
// place for.
func addEntries(found map[string]*sysregistriesv2.Registry, set Set) (said []string) {
	beyond := 0
	for _, entry := range set.Entries {
		registry := found[entry.Source]
		if registry == nil {
			if len(found) == maxSources {
				beyond++
				continue
			}
			registry = registryOf(entry.Source)
			found[entry.Source] = registry
		}
		registry.Blocked = registry.Blocked || entry.Never
		if left := addMirrors(registry, set.Kind, entry.Mirrors); left > 0 {
			said = append(said, fmt.Sprintf("source %s has %d mirrors beyond the %d that are used", excerpt.Quote(entry.Source), left, maxMirrors))
		}
	}
	if beyond > 0 {
		said = append(said, fmt.Sprintf("%d of its entries are beyond the %d sources of all sets that are used", beyond, maxSources))
	}
	return said
}

func registryOf(source string) *sysregistriesv2.Registry {
	registry := &sysregistriesv2.Registry{Prefix: source}
	if !strings.HasPrefix(source, "*.") {
		registry.Location = source
	}
	return registry
}

// addMirrors adds those that the registry does not have yet for pulls of the kind, and says
// how many there is no place for.
func addMirrors(registry *sysregistriesv2.Registry, kind Kind, mirrors []string) (left int) {
	use := sysregistriesv2.MirrorByDigestOnly
	if kind == Tags {
		use = sysregistriesv2.MirrorByTagOnly
	}
	for _, mirror := range mirrors {
		has, isThere := 0, false
		for _, known := range registry.Mirrors {
			if known.PullFromMirror == use {
				has++
				isThere = isThere || known.Location == mirror
			}
		}
		switch {
		case isThere:
		case has == maxMirrors:
			left++
		default:
			registry.Mirrors = append(registry.Mirrors, sysregistriesv2.Endpoint{Location: mirror, PullFromMirror: use})
		}
	}
	return left
}

// takeOver applies what the explicit files say of the registry and its mirrors. It is theirs
// if they name it.
func takeOver(registry *sysregistriesv2.Registry, explicit Explicit) (isTheirs bool, err error) {
	above, err := explicit(registry.Prefix)
	if err != nil || above != nil && above.Prefix == registry.Prefix {
		return above != nil, err
	}
	if above != nil {
		registry.Blocked = registry.Blocked || above.Blocked
		registry.Insecure = isInsecure(above)
	}
	for i := range registry.Mirrors {
		mirror := &registry.Mirrors[i]
		known, err := explicit(mirror.Location)
		if err != nil {
			return false, err
		}
		mirror.Insecure = isInsecure(known)
	}
	return false, nil
}

// isInsecure says that the files name the registry insecure, and not another one that they
// put in its place. Nil is none of theirs.
func isInsecure(known *sysregistriesv2.Registry) bool {
	return known != nil && known.Insecure && (known.Location == known.Prefix || known.Location == "")
}

// encode writes a registries.conf. The library quotes: no name can add a line of its own.
func encode(registries []sysregistriesv2.Registry) ([]byte, error) {
	var file bytes.Buffer
	err := toml.NewEncoder(&file).Encode(struct {
		Registries []sysregistriesv2.Registry `toml:"registry"`
	}{registries})
	return file.Bytes(), err
}
