package mirror

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/packagecard"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Wish is which bundles of a package are wanted.
type Wish struct {
	// Channels are those that bundles are taken of; none means all.
	Channels []string
	// Versions are wanted if there is a range. Without one the bundles are those that an
	// extension without a range gets today, whichever channels it names: the head of each
	// channel, and the highest version.
	Versions *resolve.Range
}

// Bundles are those of a package that are wanted, newest first. The error says that there are
// none, and why.
func (w Wish) Bundles(pkg resolve.Package) ([]packagecard.Version, error) {
	var names []string
	for _, channel := range pkg.Channels {
		names = append(names, channel.Name)
	}
	for _, name := range w.Channels {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("package %q has no channel %q: it has %s", pkg.Name, name, strings.Join(names, ", "))
		}
	}
	var wanted []packagecard.Version
	hasHighest := false
	for _, one := range packagecard.Versions(pkg, nil) {
		channels := w.of(one.Channels)
		if len(channels) == 0 || one.Image == "" {
			continue
		}
		if is := w.has(one, !hasHighest); is {
			wanted = append(wanted, one)
		}
		hasHighest = true
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("package %q has no bundle with an image in these channels and versions", pkg.Name)
	}
	return wanted, nil
}

// of are those of the channels that bundles are taken of.
func (w Wish) of(channels []string) []string {
	if len(w.Channels) == 0 {
		return channels
	}
	return slices.DeleteFunc(slices.Clone(channels), func(name string) bool { return !slices.Contains(w.Channels, name) })
}

func (w Wish) has(one packagecard.Version, highest bool) bool {
	if w.Versions == nil {
		return highest || len(w.of(one.HeadOf)) > 0
	}
	version, err := bundle.ParseVersion(one.Version)
	return err == nil && w.Versions.Contains(version)
}

// Related are the images that bundles of a catalog name, by package and bundle.
type Related map[string]map[string][]string

// Add takes an object of the catalog, and keeps of it what is needed.
func (r Related) Add(object fbc.Object) error {
	if object.Schema != fbc.SchemaBundle {
		return nil
	}
	var content struct {
		RelatedImages []struct {
			Image string `json:"image"`
		} `json:"relatedImages"`
	}
	if err := json.Unmarshal(object.JSON, &content); err != nil {
		return object.Errorf("%w", err)
	}
	pkg := strings.Clone(object.Package)
	if r[pkg] == nil {
		r[pkg] = map[string][]string{}
	}
	var images []string
	for _, related := range content.RelatedImages {
		if related.Image != "" { // some catalogs have entries with a name alone
			images = append(images, related.Image)
		}
	}
	r[pkg][strings.Clone(object.Name)] = images
	return nil
}

// Image is one that is needed.
type Image struct {
	// Ref is as nodes read it, or as the catalog has it if nodes cannot read it.
	Ref string
	// For says what needs it: "catalog", or the names of bundles, sorted.
	For []string
	// Err is why it cannot be copied whatever registries say.
	Err error
}

// Images are those of bundles by their names, and all that they name, each once and sorted.
func Images(bundles map[string][]string) []Image {
	users := map[string]map[string]bool{}
	problems := map[string]error{}
	for name, refs := range bundles {
		for _, text := range refs {
			ref, err := image.Canonical(text)
			if err != nil {
				ref = text
				problems[ref] = err
			}
			if users[ref] == nil {
				users[ref] = map[string]bool{}
			}
			users[ref][name] = true
		}
	}
	images := make([]Image, 0, len(users))
	for _, ref := range slices.Sorted(maps.Keys(users)) {
		images = append(images, Image{Ref: ref, For: slices.Sorted(maps.Keys(users[ref])), Err: problems[ref]})
	}
	return images
}
