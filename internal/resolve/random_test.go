package resolve_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	blang "github.com/blang/semver/v4"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

const rounds = 1500

// world is a random request with random catalogs, the packages of which are
// kept as they were before Prepare.
type world struct {
	request  resolve.Request
	catalogs []source
}

type source struct {
	name     string
	priority int32
	pkg      *resolve.Package
	err      error
}

var (
	someVersions = []string{"0.9.0", "1.0.0-rc.1", "1.0.0", "1.0.0+1", "1.0.0+2", "1.0.0+001", "1.1.0", "1.2.0", "2.0.0", "2.1.0-alpha", "bad", ""}
	someRanges   = []string{"", "", "", "1.x", ">=1.1.0", "<2.0.0", ">=1.0.0-0", "1.0.0", "9.9.9"}
	someSkips    = []string{"", "", "", "<1.1.0", ">=1.0.0 <2.0.0", ">=1.0.0, <2.0.0", ">=2.0.0", "x"}
	someChannels = []string{"alpha", "beta", "gamma"}
)

func pick(rng *rand.Rand, from []string) string { return from[rng.IntN(len(from))] }

func randomWorld(t *testing.T, rng *rand.Rand, catalogs int) world {
	t.Helper()
	w := world{request: randomRequest(t, rng)}
	for i := range catalogs {
		c := source{name: fmt.Sprintf("c%d", i), priority: rng.Int32N(3) - 1}
		switch rng.IntN(8) {
		case 0:
			c.err = fmt.Errorf("%s is %w", c.name, errDown)
		case 1:
		default:
			c.pkg = randomPackage(rng)
		}
		w.catalogs = append(w.catalogs, c)
	}
	return w
}

func randomRequest(t *testing.T, rng *rand.Rand) resolve.Request {
	t.Helper()
	request := resolve.Request{Package: "p", Range: mustRange(t, pick(rng, someRanges))}
	for range rng.IntN(3) {
		request.Channels = append(request.Channels, pick(rng, append(someChannels, "none")))
	}
	if rng.IntN(3) == 0 {
		request.Policy = resolve.SelfCertified
	}
	if rng.IntN(3) > 0 {
		request.Installed = installed(pick(rng, someVersions[:len(someVersions)-2]))
	}
	switch rng.IntN(3) {
	case 0:
		request.Cluster = clusterWith()
	case 1:
		request.Cluster = clusterWith("q")
	}
	return request
}

func randomPackage(rng *rand.Rand) *resolve.Package {
	p := &resolve.Package{Name: "p"}
	for _, version := range someVersions {
		if rng.IntN(2) == 0 {
			continue
		}
		blob(version)(p)
		if rng.IntN(3) == 0 {
			deprecated(version)(p)
		}
		if rng.IntN(4) == 0 {
			requires(version, pick(rng, []string{"q", "r"}))(p)
		}
	}
	for _, name := range someChannels {
		c := resolve.Channel{Name: name}
		for range rng.IntN(6) {
			e := entry(pick(rng, someVersions), sr(pick(rng, someSkips)))
			if rng.IntN(2) == 0 {
				r(pick(rng, someVersions))(&e)
			}
			for range rng.IntN(3) {
				s(pick(rng, someVersions))(&e)
			}
			c.Entries = append(c.Entries, e)
		}
		p.Channels = append(p.Channels, c)
	}
	return p
}

func (w world) prepared() []resolve.Catalog {
	var catalogs []resolve.Catalog
	for _, c := range w.catalogs {
		prepared := resolve.Catalog{Name: c.name, Priority: c.priority, Err: c.err}
		if c.pkg != nil {
			prepared.Package = resolve.Prepare(*c.pkg)
		}
		catalogs = append(catalogs, prepared)
	}
	return catalogs
}

func (w world) resolve() (resolve.Resolution, error) {
	return resolve.Resolve(w.request, w.prepared())
}

// shuffled is the same world in another order.
func (w world) shuffled(rng *rand.Rand) world {
	w.catalogs = slices.Clone(w.catalogs)
	for i, c := range w.catalogs {
		if c.pkg != nil {
			w.catalogs[i].pkg = shuffledPackage(rng, *c.pkg)
		}
	}
	shuffle(rng, w.catalogs)
	return w
}

func shuffledPackage(rng *rand.Rand, p resolve.Package) *resolve.Package {
	p.Bundles, p.Channels = slices.Clone(p.Bundles), slices.Clone(p.Channels)
	shuffle(rng, p.Bundles)
	shuffle(rng, p.Channels)
	for i := range p.Channels {
		p.Channels[i].Entries = slices.Clone(p.Channels[i].Entries)
		shuffle(rng, p.Channels[i].Entries)
		for j := range p.Channels[i].Entries {
			e := &p.Channels[i].Entries[j]
			if e.Skips != nil {
				e.Skips = &resolve.Skips{Bundles: slices.Clone(e.Skips.Bundles), Range: e.Skips.Range}
				shuffle(rng, e.Skips.Bundles)
			}
		}
	}
	return &p
}

func shuffle[T any](rng *rand.Rand, items []T) {
	rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
}

// allows states the rules for one bundle once more, without any index.
func allows(request resolve.Request, p *resolve.Package, b resolve.Bundle) bool {
	version, err := bundle.ParseVersion(b.Version)
	if request.Range.String() != "" && (err != nil || !request.Range.Contains(version)) {
		return false
	}
	if request.Cluster != nil && !meets(request, b) {
		return false
	}
	edge, member := request.Installed == nil || request.Policy == resolve.SelfCertified, len(request.Channels) == 0
	if !edge {
		now, _ := bundle.ParseVersion(request.Installed.Version)
		edge = err == nil && version.Compare(now) == 0
	}
	for _, c := range p.Channels {
		if len(request.Channels) > 0 && !slices.Contains(request.Channels, c.Name) {
			continue
		}
		for _, e := range c.Entries {
			if e.Name == b.Name {
				member = true
				edge = edge || upgrades(e, request.Installed)
			}
		}
	}
	return edge && member
}

// meets says whether what a bundle requires is installed, or the bundle itself.
func meets(request resolve.Request, b resolve.Bundle) bool {
	if request.Installed != nil && b.Name == request.Installed.Name && b.Version == request.Installed.Version {
		return true
	}
	return !slices.ContainsFunc(b.Properties(), func(property *requirement.Property) bool {
		return !slices.ContainsFunc(request.Cluster.Extensions, func(e requirement.Extension) bool {
			return strings.Contains(string(property.Value), `"`+e.Package+`"`)
		})
	})
}

func upgrades(e resolve.Entry, from *bundle.Identity) bool {
	if e.Replaces == from.Name || slices.Contains(e.Skipped(), from.Name) {
		return true
	}
	skipRange, err := blang.ParseRange(e.SkipRange())
	return e.SkipRange() != "" && err == nil && skipRange(blang.MustParse(from.Version))
}

// grade of a bundle: what is preferred first whatever the catalog.
func grade(p *resolve.Package, b resolve.Bundle) int {
	_, err := bundle.ParseVersion(b.Version)
	bad := slices.ContainsFunc(p.Deprecations, func(d resolve.Deprecation) bool { return d.Name == b.Name })
	switch {
	case err != nil:
		return 2
	case bad:
		return 1
	}
	return 0
}

func isKind(err error, kind resolve.Kind) bool {
	var failure *resolve.Error
	return errors.As(err, &failure) && failure.Kind == kind
}
