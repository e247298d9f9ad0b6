package resolve_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// TestDeadEnds has a newest bundle that lacks package "q", and others of which
// some lead there.
func TestDeadEnds(t *testing.T) {
	t.Parallel()
	apart := one(channel("c", entry("1.0.0"), entry("2.0.0")), requires("2.0.0", "q"))
	needsQ := func(versions ...string) func(*resolve.Package) {
		return func(p *resolve.Package) {
			for _, version := range versions {
				requires(version, "q")(p)
			}
		}
	}
	tests := map[string]struct {
		request  resolve.Request
		catalogs []resolve.Catalog
		want     string // nothing, if the extension has to wait
		dead     []string
	}{
		"nothing leads to the newest": {catalogs: apart, dead: []string{"1.0.0"}},
		"an upgrade leads to the newest": {
			catalogs: one(channel("c", entry("1.0.0"), entry("2.0.0", r("1.0.0"))), needsQ("2.0.0")), want: "1.0.0",
		},
		"several lead there, and wait for the same": {
			catalogs: one(channel("c", entry("1.0.0"), entry("1.1.0", sr("<1.1.0")), entry("2.0.0", s("1.1.0"))), needsQ("1.1.0", "2.0.0")), want: "1.0.0",
		},
		"on the way one waits for something else": {
			catalogs: one(channel("c", entry("1.0.0"), entry("1.1.0", r("1.0.0")), entry("2.0.0", r("1.1.0"))), needsQ("2.0.0"), requires("1.1.0", "z")),
			dead:     []string{"1.0.0"},
		},
		"on the way one needs another version of it": {
			catalogs: one(channel("c", entry("1.0.0"), entry("1.1.0", r("1.0.0")), entry("2.0.0", r("1.1.0"))), needsQ("2.0.0"),
				states("1.1.0", "olm.package.required", `{"packageName":"q","versionRange":"<0.1.0"}`)),
			dead: []string{"1.0.0"},
		},
		"on the way one is content with an older Kubernetes": {
			catalogs: one(channel("c", entry("1.0.0"), entry("1.1.0", r("1.0.0")), entry("2.0.0", r("1.1.0"))), onKubernetes("1.1.0", "1.37.0"), onKubernetes("2.0.0", "1.38.0")),
			want:     "1.0.0",
		},
		"on the way one needs a newer Kubernetes": {
			catalogs: one(channel("c", entry("1.0.0"), entry("1.1.0", r("1.0.0")), entry("2.0.0", r("1.1.0"))), onKubernetes("1.1.0", "1.39.0"), onKubernetes("2.0.0", "1.38.0")),
			dead:     []string{"1.0.0"},
		},
		"only an older one leads there": {
			catalogs: one(channel("c", entry("1.0.0"), entry("1.1.0"), entry("2.0.0", r("1.0.0"))), needsQ("2.0.0")), want: "1.0.0", dead: []string{"1.1.0"},
		},
		"the way leads back first": {
			catalogs: one(channel("c", entry("1.0.0", s("1.1.0")), entry("1.1.0"), entry("2.0.0", r("1.0.0"))), needsQ("2.0.0")), want: "1.0.0", dead: []string{"1.1.0"},
		},
		"the way leads round in a circle": {
			catalogs: one(channel("c", entry("1.0.0", s("1.1.0")), entry("1.1.0", r("1.0.0")), entry("2.0.0")), needsQ("2.0.0")), dead: []string{"1.1.0", "1.0.0"},
		},
		"the way is in another channel": {
			request:  resolve.Request{Channels: []string{"c"}},
			catalogs: one(channel("c", entry("1.0.0"), entry("2.0.0")), channel("d", entry("2.0.0", r("1.0.0"))), needsQ("2.0.0")), dead: []string{"1.0.0"},
		},
		"the way is out of the range": {
			request:  resolve.Request{Range: mustRange(t, "!=1.1.0")},
			catalogs: one(channel("c", entry("1.0.0"), entry("1.1.0", r("1.0.0")), entry("2.0.0", r("1.1.0"))), needsQ("1.1.0", "2.0.0")), dead: []string{"1.0.0"},
		},
		"the newest is not in the range":   {request: resolve.Request{Range: mustRange(t, "1.x")}, catalogs: apart, want: "1.0.0"},
		"the older one is asked for":       {request: resolve.Request{Range: mustRange(t, "1.0.0")}, catalogs: apart, want: "1.0.0"},
		"the newest is in the range":       {request: resolve.Request{Range: mustRange(t, ">=1.0.0")}, catalogs: apart, dead: []string{"1.0.0"}},
		"the newest is not in the channel": {request: resolve.Request{Channels: []string{"d"}}, catalogs: one(channel("c", entry("2.0.0")), channel("d", entry("1.0.0")), needsQ("2.0.0")), want: "1.0.0"},
		"any upgrade is allowed":           {request: resolve.Request{Policy: resolve.SelfCertified}, catalogs: apart, want: "1.0.0"},
		"a build of the version asked for": {
			request: resolve.Request{Range: mustRange(t, "1.0.0")}, catalogs: one(blob("1.0.0+1"), blob("1.0.0+2"), needsQ("1.0.0+2")), want: "1.0.0+1",
		},
		"the newest is deprecated": {catalogs: one(blob("1.0.0"), blob("2.0.0"), needsQ("2.0.0"), deprecated("2.0.0")), want: "1.0.0"},
		"the older one is deprecated": {
			catalogs: one(channel("c", entry("1.0.0"), entry("2.0.0", r("1.0.0"))), needsQ("2.0.0"), deprecated("1.0.0")), want: "1.0.0",
		},
		"a newer one is deprecated": {catalogs: one(blob("1.0.0"), blob("2.0.0"), blob("2.1.0"), needsQ("2.0.0"), deprecated("2.1.0")), dead: []string{"1.0.0", "2.1.0"}},
		"a better catalog waits": {
			catalogs: []resolve.Catalog{catalog("hi", 1, pkg(blob("2.0.0"), needsQ("2.0.0"))), catalog("lo", 0, pkg(blob("1.0.0")))}, dead: []string{"1.0.0"},
		},
		"a better catalog has the upgrade": {
			catalogs: []resolve.Catalog{catalog("hi", 1, pkg(channel("c", entry("2.0.0", sr("<2.0.0"))), needsQ("2.0.0"))), catalog("lo", 0, pkg(blob("1.0.0")))}, want: "1.0.0",
		},
		"a better catalog waits with an older one": {
			catalogs: []resolve.Catalog{catalog("hi", 1, pkg(blob("1.0.0"), needsQ("1.0.0"))), catalog("lo", 0, pkg(blob("2.0.0")))}, want: "2.0.0",
		},
		"a worse catalog waits": {
			catalogs: []resolve.Catalog{catalog("hi", 1, pkg(blob("1.0.0"))), catalog("lo", 0, pkg(blob("2.0.0"), needsQ("2.0.0")))}, want: "1.0.0",
		},
		"a worse catalog steps in": {
			catalogs: []resolve.Catalog{
				catalog("hi", 1, pkg(channel("c", entry("1.0.0"), entry("2.0.0", r("1.1.0"))), needsQ("2.0.0"))), catalog("lo", 0, pkg(blob("1.1.0"))),
			}, want: "1.1.0", dead: []string{"1.0.0"},
		},
		"an upgrade that would lead away from the newest": {
			request:  resolve.Request{Installed: installed("0.9.0")},
			catalogs: one(channel("c", entry("0.9.0"), entry("1.0.0", r("0.9.0")), entry("2.0.0", s("0.9.0"))), needsQ("2.0.0")), want: "0.9.0", dead: []string{"1.0.0"},
		},
		"the same from what no catalog has any more": {
			request:  resolve.Request{Installed: installed("0.9.0")},
			catalogs: one(channel("c", entry("1.0.0", r("0.9.0")), entry("2.0.0", s("0.9.0"))), needsQ("2.0.0")), dead: []string{"1.0.0"},
		},
		"an upgrade on the way to the newest": {
			request:  resolve.Request{Installed: installed("0.9.0")},
			catalogs: one(channel("c", entry("0.9.0"), entry("1.0.0", r("0.9.0")), entry("2.0.0", r("1.0.0"), s("0.9.0"))), needsQ("2.0.0")), want: "1.0.0",
		},
		"an upgrade where the newest is out of reach": {
			request:  resolve.Request{Installed: installed("0.9.0")},
			catalogs: one(channel("c", entry("0.9.0"), entry("1.0.0", r("0.9.0")), entry("2.0.0")), needsQ("2.0.0")), want: "1.0.0",
		},
		"what is installed stays": {request: resolve.Request{Installed: installed("1.0.0")}, catalogs: apart, want: "1.0.0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.request.Package, tc.request.Cluster = "p", clusterWith()
			got, err := resolve.Resolve(tc.request, tc.catalogs)
			leftOut := got.LeftOut
			if tc.want == "" {
				failure := asError(t, err, resolve.NoBundle)
				leftOut = failure.LeftOut
				if failure.Awaited == nil || failure.Awaited.Version != "2.0.0" {
					t.Errorf("it waits for %+v", failure.Awaited)
				}
			} else if err != nil || got.Identity.Version != tc.want {
				t.Errorf("Resolve() = %q, %v; want %q", got.Identity.Version, err, tc.want)
			}
			if diff := cmp.Diff(tc.dead, deadEndsOf(leftOut)); diff != "" {
				t.Errorf("dead ends (-want +got):\n%s", diff)
			}
		})
	}
}

func onKubernetes(version, lowest string) func(*resolve.Package) {
	return func(p *resolve.Package) {
		for i := range p.Bundles {
			if p.Bundles[i].Version == version {
				factsOf(&p.Bundles[i]).MinKubeVersion = lowest
			}
		}
	}
}

func deadEndsOf(leftOut []resolve.LeftOut) []string {
	var versions []string
	for _, left := range leftOut {
		if left.Reason == resolve.DeadEnd {
			versions = append(versions, left.Version)
		}
	}
	return versions
}

// TestCorpusDeadEnds asks for real packages on a cluster that lacks what they
// require.
func TestCorpusDeadEnds(t *testing.T) {
	t.Parallel()
	packages, _ := loadCorpus(t)
	const waits = ""
	tests := map[string]struct {
		request resolve.Request
		has     []requirement.Extension
		want    string
	}{
		"any version":           {request: resolve.Request{Package: "eclipse-che"}, want: waits},
		"a range with the last": {request: resolve.Request{Package: "eclipse-che", Range: mustRange(t, "7.x")}, want: waits},
		"pinned":                {request: resolve.Request{Package: "eclipse-che", Range: mustRange(t, "7.40.1")}, want: "7.40.1"},
		"a range without":       {request: resolve.Request{Package: "eclipse-che", Range: mustRange(t, "<7.42.0")}, want: "7.40.1"},
		"any upgrade":           {request: resolve.Request{Package: "eclipse-che", Policy: resolve.SelfCertified}, want: "7.40.1"},
		"what is installed": {
			request: resolve.Request{Package: "eclipse-che", Installed: &bundle.Identity{Package: "eclipse-che", Name: "eclipse-che.v7.40.1", Version: "7.40.1"}}, want: "7.40.1",
		},
		"what it requires": {
			request: resolve.Request{Package: "eclipse-che"}, has: []requirement.Extension{{Name: "d", Package: "devworkspace-operator", Version: "0.31.0"}}, want: "7.121.0",
		},
		"an older one leads on": {request: resolve.Request{Package: "rabbitmq-messaging-topology-operator"}, want: "1.14.2"},
		"no older one":          {request: resolve.Request{Package: "kuadrant-operator"}, want: waits},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.request.Cluster = clusterWith()
			tc.request.Cluster.Extensions = tc.has
			got, err := resolve.Resolve(tc.request, packages[tc.request.Package])
			if tc.want == waits {
				failure := asError(t, err, resolve.NoBundle)
				if failure.Awaited == nil || failure.Explanation() == "" {
					t.Errorf("it is not said what is awaited: %v", failure)
				}
			} else if err != nil || got.Identity.Version != tc.want {
				t.Errorf("Resolve() = %q, %v; want %q", got.Identity.Version, err, tc.want)
			}
		})
	}
}

// reference is a bundle of a random world.
type reference struct {
	source source
	bundle resolve.Bundle
}

// deadEnds states the rule once more, bundle by bundle, with every way tried.
func (w world) deadEnds(t *testing.T) []reference {
	t.Helper()
	if w.request.Cluster == nil || w.request.Policy == resolve.SelfCertified {
		return nil
	}
	open := w.request
	open.Cluster = nil
	var candidates []reference
	for _, c := range w.catalogs {
		if c.pkg == nil {
			continue
		}
		for _, b := range c.pkg.Bundles {
			if allows(open, c.pkg, b) && grade(c.pkg, b) < 2 {
				candidates = append(candidates, reference{c, b})
			}
		}
	}
	waiting := slices.DeleteFunc(slices.Clone(candidates), func(r reference) bool { return meets(w.request, r.bundle) })
	if len(waiting) == 0 {
		return nil
	}
	best := slices.MinFunc(waiting, func(a, b reference) int { return comparePreference(t, a, b) })
	return slices.DeleteFunc(candidates, func(r reference) bool {
		version, wanted := mustVersion(t, r.bundle.Version), mustVersion(t, best.bundle.Version)
		age := version.Version.Compare(wanted.Version)
		newest := age == 0 || age > 0 && grade(r.source.pkg, r.bundle) == grade(best.source.pkg, best.bundle)
		isInstalled := w.request.Installed != nil && w.request.Installed.Name == r.bundle.Name && w.request.Installed.Version == r.bundle.Version
		return !meets(w.request, r.bundle) || isInstalled || newest || comparePreference(t, best, r) >= 0 || w.leads(t, r, best, nil)
	})
}

// comparePreference has what is preferred first; of the same in two catalogs, that
// of the first.
func comparePreference(t *testing.T, a, b reference) int {
	t.Helper()
	for _, order := range []int{
		grade(a.source.pkg, a.bundle) - grade(b.source.pkg, b.bundle),
		int(b.source.priority) - int(a.source.priority),
		mustVersion(t, b.bundle.Version).Compare(mustVersion(t, a.bundle.Version)),
	} {
		if order != 0 {
			return order
		}
	}
	return 0
}

// leads says whether upgrades in the catalog of to go there.
func (w world) leads(t *testing.T, from, to reference, been []string) bool {
	t.Helper()
	next := w.request
	next.Cluster, next.Installed = nil, &bundle.Identity{Package: "p", Name: from.bundle.Name, Version: from.bundle.Version}
	for _, b := range to.source.pkg.Bundles {
		step := reference{to.source, b}
		if slices.Contains(been, b.Name) || grade(to.source.pkg, b) == 2 || b.Name == from.bundle.Name || !allows(next, to.source.pkg, b) {
			continue
		}
		older := mustVersion(t, b.Version).Compare(mustVersion(t, from.bundle.Version)) <= 0
		if older && grade(to.source.pkg, b) >= grade(from.source.pkg, from.bundle) {
			continue
		}
		if b.Name == to.bundle.Name {
			return true
		}
		lacksMore := slices.ContainsFunc(b.Properties(), func(p *requirement.Property) bool {
			only := b
			only.Facts = &resolve.Facts{Properties: []*requirement.Property{p}}
			return !meets(w.request, only) && !slices.ContainsFunc(to.bundle.Properties(), func(q *requirement.Property) bool { return string(p.Value) == string(q.Value) })
		})
		if !lacksMore && w.leads(t, step, to, append(slices.Clone(been), from.bundle.Name)) {
			return true
		}
	}
	return false
}

func contains(dead []reference, catalog, name string) bool {
	return slices.ContainsFunc(dead, func(r reference) bool { return r.source.name == catalog && r.bundle.Name == name })
}
