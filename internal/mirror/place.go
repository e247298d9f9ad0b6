package mirror

import (
	"cmp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
)

// Place is where images are to be: a registry, and a path in it or none. Below it each has
// the name that it has now, with its registry, so that no two come to one.
type Place string

// Repository is where an image by its canonical reference is to be, and how it is called
// there; tag is empty for one by digest.
func (p Place) Repository(ref string) (repository, tag string, err error) {
	named, err := reference.ParseNamed(ref)
	if err != nil {
		return "", "", err
	}
	if tagged, is := named.(reference.Tagged); is {
		tag = tagged.Tag()
	}
	return p.of(named.Name()), tag, nil
}

// of is where what begins with a name is to be. A port is no part of a path.
func (p Place) of(name string) string {
	host, path, _ := strings.Cut(name, "/")
	return string(p) + "/" + strings.ReplaceAll(host, ":", "-") + "/" + path
}

// Mapping says where what begins with a source is to be.
type Mapping struct {
	Source, Mirror string
	// Digests and Tags say how images of it are named.
	Digests, Tags bool
}

// Mappings are those that lead images by their canonical references to the place, sorted.
// There is one for each registry and the first part of a path there, which is whom it belongs to.
func (p Place) Mappings(refs []string) ([]Mapping, error) {
	found := map[string]*Mapping{}
	var all []*Mapping
	for _, ref := range refs {
		named, err := reference.ParseNamed(ref)
		if err != nil {
			return nil, err
		}
		owner, _, _ := strings.Cut(reference.Path(named), "/")
		source := reference.Domain(named) + "/" + owner
		mapping := found[source]
		if mapping == nil {
			mapping = &Mapping{Source: source, Mirror: p.of(source)}
			found[source] = mapping
			all = append(all, mapping)
		}
		if _, is := named.(reference.Digested); is {
			mapping.Digests = true
		} else {
			mapping.Tags = true
		}
	}
	slices.SortFunc(all, func(a, b *Mapping) int { return cmp.Compare(a.Source, b.Source) })
	mappings := make([]Mapping, 0, len(all))
	for _, mapping := range all {
		mappings = append(mappings, *mapping)
	}
	return mappings, nil
}

// RegistriesConf is a registries.conf of the mappings. Insecure says that the mirror speaks
// no TLS.
func RegistriesConf(mappings []Mapping, insecure bool) (string, error) {
	var registries []sysregistriesv2.Registry
	for _, mapping := range mappings {
		registries = append(registries, sysregistriesv2.Registry{
			Prefix:   mapping.Source,
			Endpoint: sysregistriesv2.Endpoint{Location: mapping.Source},
			Mirrors:  []sysregistriesv2.Endpoint{{Location: mapping.Mirror, Insecure: insecure}},
		})
	}
	var text strings.Builder
	encoder := toml.NewEncoder(&text)
	encoder.Indent = ""
	err := encoder.Encode(struct {
		Registries []sysregistriesv2.Registry `toml:"registry"`
	}{registries})
	return strings.TrimSpace(text.String()) + "\n", err
}

// Sets are the mirror sets of the mappings, for clusters of OpenShift, as objects. They have a
// name of the repository of the catalog.
func Sets(mappings []Mapping, repository string) []map[string]any {
	var digests, tags []any
	for _, mapping := range mappings {
		entry := map[string]any{"source": mapping.Source, "mirrors": []any{mapping.Mirror}}
		if mapping.Digests {
			digests = append(digests, entry)
		}
		if mapping.Tags {
			tags = append(tags, entry)
		}
	}
	var sets []map[string]any
	for _, kind := range []struct {
		name, field string
		entries     []any
	}{{"ImageDigestMirrorSet", "imageDigestMirrors", digests}, {"ImageTagMirrorSet", "imageTagMirrors", tags}} {
		if len(kind.entries) > 0 {
			sets = append(sets, map[string]any{
				"apiVersion": "config.openshift.io/v1", "kind": kind.name,
				"metadata": map[string]any{"name": setName(repository)},
				"spec":     map[string]any{kind.field: kind.entries},
			})
		}
	}
	return sets
}

// maxSetName is that of an object.
const maxSetName = 63

// setName is the same for each mirror of a catalog, so that a later one takes the place of an
// earlier one, and differs from that of others.
func setName(repository string) string {
	name := "mirror-" + strings.NewReplacer("/", "-", ":", "-", "_", "-", ".", "-").Replace(repository)
	return strings.TrimRight(name[:min(len(name), maxSetName)], "-")
}
