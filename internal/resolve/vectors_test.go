package resolve_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// fixture has three channels, edges by skipRange only, and two deprecated
// bundles.
func fixture() resolve.Package {
	return pkg(
		channel("alpha", entry("0.1.0"), entry("1.0.0", sr("<1.0.0")), entry("1.0.1", sr("<1.0.1")),
			entry("1.0.2", sr("<1.0.2")), entry("2.0.0", sr(">=1.0.0 <2.0.0"))),
		channel("beta", entry("0.1.0"), entry("1.0.2", sr("<1.0.2"))),
		channel("gamma", entry("3.0.0", sr(">=2.0.0 <3.0.0"))),
		deprecated("1.0.0", "1.0.1"),
	)
}

func fixtureIn(name string, priority int32) resolve.Catalog {
	return catalog(name, priority, fixture())
}

// mixed are five catalogs of one priority, three of them with a deprecated
// bundle only.
func mixed() []resolve.Catalog {
	return []resolve.Catalog{
		catalog("b", 0, pkg(channel("stable", entry("1.0.0")), deprecated("1.0.0"))),
		catalog("c", 0, pkg(channel("stable", entry("1.0.1")), deprecated("1.0.1"))),
		catalog("d", 0, pkg(channel("stable", entry("1.0.2")))),
		catalog("e", 0, pkg(channel("stable", entry("1.0.3")), deprecated("1.0.3"))),
		catalog("f", 0, pkg(channel("stable", entry("1.0.4"), entry("1.0.5")))),
	}
}

const (
	none     = `no bundles found for package "p"`
	found    = `found bundles for package "p"`
	tied     = ` in multiple catalogs with the same priority `
	upgrade1 = `error upgrading from currently installed version "1.0.0": `
)

// vector is a question with the answer of the reference implementation, unless
// differs says what is better here and why.
type vector struct {
	catalogs  []resolve.Catalog
	installed *bundle.Identity
	version   string
	channels  []string
	policy    resolve.Policy
	cluster   *requirement.Cluster

	want    string // name of the bundle, without "p.v"
	from    string // its catalog, if it matters
	err     string
	differs string
}

func TestVectors(t *testing.T) {
	t.Parallel()
	for _, vectors := range []map[string]vector{
		freshVectors(), upgradeVectors(), catalogVectors(), versionVectors(), refusalVectors(),
	} {
		for name, v := range vectors {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				v.check(t)
			})
		}
	}
}

func (v vector) check(t *testing.T) {
	t.Helper()
	got, err := resolve.Resolve(resolve.Request{
		Package:   "p",
		Range:     mustRange(t, v.version),
		Channels:  v.channels,
		Policy:    v.policy,
		Installed: v.installed,
		Cluster:   v.cluster,
	}, v.catalogs)
	if v.err != "" {
		if _, ok := errors.AsType[*resolve.Error](err); !ok {
			t.Fatalf("Resolve() = %v, %v; want a *resolve.Error", got.Identity, err)
		}
		if diff := cmp.Diff(v.err, err.Error()); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
		return
	}
	if err != nil {
		t.Fatalf("Resolve() failed: %v", err)
	}
	if want := "p.v" + v.want; got.Identity.Name != want {
		t.Errorf("Resolve() = %q, want %q (%s)", got.Identity.Name, want, v.differs)
	}
	if v.from != "" && got.Catalog != v.from {
		t.Errorf("Resolve() is from catalog %q, want %q", got.Catalog, v.from)
	}
}

func freshVectors() map[string]vector {
	p := []resolve.Catalog{fixtureIn("a", 0)}
	return map[string]vector{
		"1 no catalog has it":           {catalogs: []resolve.Catalog{{Name: "a"}, {Name: "b"}, {Name: "c"}}, err: none},
		"2 anything":                    {catalogs: p, want: "3.0.0"},
		"3 no such version":             {catalogs: p, version: "4.0.0", err: none + ` matching version "4.0.0"`},
		"4 range":                       {catalogs: p, version: ">=1.0.0 <2.0.0", want: "1.0.2"},
		"5 no such channel":             {catalogs: p, channels: []string{"stable"}, err: none + ` in channels [stable]`},
		"6 channel":                     {catalogs: p, channels: []string{"beta"}, want: "1.0.2"},
		"7 version of another channel":  {catalogs: p, channels: []string{"beta"}, version: "3.0.0", err: none + ` matching version "3.0.0" in channels [beta]`},
		"8 version in channel":          {catalogs: p, channels: []string{"alpha"}, version: "0.1.0", want: "0.1.0"},
		"9 two channels":                {catalogs: p, channels: []string{"beta", "alpha"}, want: "2.0.0"},
		"10 deprecated is second":       {catalogs: p, version: ">=0.1.0 <=1.0.0", want: "0.1.0"},
		"11 all deprecated":             {catalogs: p, version: ">=1.0.0 <=1.0.1", want: "1.0.1"},
		"12 one hop":                    {catalogs: p, installed: installed("0.1.0"), want: "1.0.2"},
		"13 empty range":                {catalogs: p, installed: installed("0.1.0"), version: "<1.0.0 >=2.0.0", err: `error upgrading from currently installed version "0.1.0": ` + none + ` matching version "<1.0.0 >=2.0.0"`},
		"14 downgrade":                  {catalogs: p, installed: installed("1.0.2"), version: "<1.0.2", policy: resolve.SelfCertified, want: "0.1.0"},
		"15 nothing to downgrade to":    {catalogs: p, installed: installed("1.0.2"), version: ">0.1.0 <1.0.0", policy: resolve.SelfCertified, err: `error upgrading from currently installed version "1.0.2": ` + none + ` matching version ">0.1.0 <1.0.0"`},
		"56 bundle in no channel":       {catalogs: one(blob("5.0.0"), channel("a", entry("1.0.0"))), want: "5.0.0"},
		"51a pre-release is the latest": {catalogs: one(channel("a", entry("1.0.0"), entry("2.0.0-alpha"))), want: "2.0.0-alpha"},
		"51b range without one":         {catalogs: one(channel("a", entry("1.0.0"), entry("2.0.0-alpha"))), version: ">=1.0.0", want: "1.0.0"},
		"51c range with one":            {catalogs: one(channel("a", entry("1.0.0"), entry("2.0.0-alpha"))), version: ">=1.0.0-0", want: "2.0.0-alpha"},
	}
}

func catalogVectors() map[string]vector {
	boom := errors.New("boom")
	notServed := errors.New(`catalog "b" is not being served`)
	beta := func(name string, priority int32) resolve.Catalog {
		return catalog(name, priority, pkg(channel("beta", entry("1.0.0"))))
	}
	hiLo := []resolve.Catalog{
		catalog("hi", 100, pkg(channel("c", entry("2.0.0")), deprecated("2.0.0"))),
		catalog("lo", -5, pkg(channel("c", entry("1.0.0")))),
	}
	return map[string]vector{
		"19 unreadable": {
			catalogs: []resolve.Catalog{{Name: "a", Err: boom}},
			err:      `error walking catalogs: error getting package "p" from catalog "a": boom`,
		},
		"20 another one unreadable": {
			catalogs: []resolve.Catalog{fixtureIn("a", 0), {Name: "b", Err: notServed}}, want: "3.0.0", from: "a",
			differs: `the reference fails with "error walking catalogs: …": every catalog must be readable, although b could not win`,
		},
		"21 one selected":  {catalogs: []resolve.Catalog{fixtureIn("b", 0)}, want: "3.0.0", from: "b"},
		"22 empty catalog": {catalogs: []resolve.Catalog{{Name: "a"}}, err: none},
		"23 no catalog":    {version: ">=1.0.0", err: none + ` matching version ">=1.0.0"`},
		"24 one enabled":   {catalogs: []resolve.Catalog{fixtureIn("a", 1)}, version: ">=1.0.0", want: "3.0.0"},
		"25 priority before version": {
			catalogs: []resolve.Catalog{
				catalog("a", 1, pkg(channel("c", entry("1.0.0")))), catalog("b", 0, pkg(channel("c", entry("1.1.0")))),
			},
			want: "1.0.0", from: "a",
		},
		"26 ambiguous": {
			catalogs: []resolve.Catalog{fixtureIn("a", 1), fixtureIn("b", 0), fixtureIn("c", 1)}, version: ">=1.0.0 <=1.0.1",
			err: found + ` matching version ">=1.0.0 <=1.0.1"` + tied + `[a b c]`,
		},
		"27 one sound among deprecated": {catalogs: mixed(), version: ">=1.0.0 <=1.0.3", want: "1.0.2", from: "d"},
		"28 ambiguous among deprecated": {catalogs: mixed(), version: ">=1.0.0 <=1.0.1", err: found + ` matching version ">=1.0.0 <=1.0.1"` + tied + `[b c]`},
		"29 ambiguous among sound":      {catalogs: mixed(), version: ">=1.0.0 <=1.0.4", err: found + ` matching version ">=1.0.0 <=1.0.4"` + tied + `[d f]`},
		"30 highest of one catalog":     {catalogs: mixed(), version: ">=1.0.4 <=1.0.5", want: "1.0.5"},
		"31a deprecation over priority": {catalogs: hiLo, want: "1.0.0", from: "lo"},
		"31b deprecation, other order":  {catalogs: []resolve.Catalog{hiLo[1], hiLo[0]}, want: "1.0.0", from: "lo"},
		"32 ambiguous with everything": {
			catalogs:  []resolve.Catalog{beta("z", 0), beta("b", 0), beta("m", -3)},
			installed: installed("1.0.0"), version: "1.0.0", channels: []string{"beta", "stable"},
			err: upgrade1 + found + ` matching version "1.0.0" in channels [beta stable]` + tied + `[b m z]`,
		},
		"33 ambiguous with staying": {
			catalogs: []resolve.Catalog{
				catalog("a", 0, pkg(channel("c", entry("1.0.0"), entry("1.1.0", r("1.0.0"))))),
				catalog("b", 0, pkg(channel("c", entry("1.0.0")))),
			},
			installed: installed("1.0.0"), err: upgrade1 + found + tied + `[a b]`,
		},
	}
}

func upgradeVectors() map[string]vector {
	v1, beta := installed("1.0.0"), []string{"beta"}
	edgeInAlpha := one(channel("alpha", entry("1.1.0", r("1.0.0"))), channel("beta", entry("1.0.0"), entry("1.1.0")))
	return map[string]vector{
		"34 edge in channel":        {catalogs: one(channel("alpha", entry("1.0.0")), channel("beta", entry("1.1.0", r("1.0.0")))), installed: v1, channels: beta, want: "1.1.0"},
		"35 edge of other channel":  {catalogs: edgeInAlpha, installed: v1, channels: beta, want: "1.0.0"},
		"36 edge of any channel":    {catalogs: edgeInAlpha, installed: v1, want: "1.1.0"},
		"37 left the channel":       {catalogs: one(channel("alpha", entry("1.0.0")), channel("beta", entry("1.1.0"))), installed: v1, channels: beta, err: upgrade1 + none + ` in channels [beta]`},
		"38 no edge":                {catalogs: one(channel("a", entry("2.0.0"))), installed: v1, err: upgrade1 + none},
		"39 installed not there":    {catalogs: one(channel("a", entry("2.0.0", sr(">=1.0.0 <2.0.0")))), installed: v1, want: "2.0.0"},
		"40 skips":                  {catalogs: one(channel("a", entry("1.0.0"), entry("1.1.0", r("1.0.0")), entry("1.2.0", s("1.0.0")), entry("1.3.0", r("1.2.0")))), installed: v1, want: "1.2.0"},
		"41 skipped bundle":         {catalogs: one(channel("a", entry("1.0.0"), entry("1.1.0"), entry("1.2.0", r("1.0.0"), s("1.1.0")))), installed: installed("1.1.0"), want: "1.2.0"},
		"42 names, not versions":    {catalogs: one(channel("a", entry("2.0.0"), entry("2.1.0", r("2.0.0")), entry("2.2.0", r("2.1.0"), s("2.0.0+1"))), blob("2.0.0+1")), installed: installed("2.0.0+1"), want: "2.2.0"},
		"43 comma in skipRange":     {catalogs: one(channel("a", entry("1.0.0"), entry("1.1.0", sr(">=1.0.0, <1.1.0")))), installed: v1, want: "1.0.0"},
		"44 skipRange, pre-release": {catalogs: one(channel("a", entry("1.0.0", sr("<1.0.0")))), installed: installed("1.0.0-alpha"), want: "1.0.0"},
		"45 backward edge":          {catalogs: one(channel("a", entry("1.0.0", sr(">=2.0.0")))), installed: installed("2.0.0"), want: "1.0.0"},
		"46 renamed":                {catalogs: one(named("p.vrenamed", "1.0.0")), installed: v1, want: "renamed"},
		"47 deprecated successor":   {catalogs: one(channel("a", entry("1.0.0"), entry("1.1.0", r("1.0.0"))), deprecated("1.1.0")), installed: v1, want: "1.0.0"},
		"48 deprecated installed":   {catalogs: one(channel("a", entry("1.0.0"), entry("1.1.0", r("1.0.0"))), deprecated("1.0.0")), installed: v1, want: "1.1.0"},
		"49 pin what is installed":  {catalogs: one(channel("a", entry("1.0.0"), entry("1.1.0", r("1.0.0")))), installed: v1, version: "1.0.0", want: "1.0.0"},
		"50 automatic downgrade":    {catalogs: one(channel("a", entry("1.0.0"))), installed: installed("3.0.0"), policy: resolve.SelfCertified, want: "1.0.0"},
	}
}

func versionVectors() map[string]vector {
	releases := one(channel("a", entry("1.0.0+1"), entry("1.0.0+2")))
	return map[string]vector{
		"52 releases":               {catalogs: one(channel("a", entry("1.0.0"), entry("1.0.0+1"), entry("1.0.0+9"), entry("1.0.0+10"), entry("1.0.0+001"))), want: "1.0.0+10"},
		"53 text after number":      {catalogs: one(channel("a", entry("1.0.0+10"), entry("1.0.0+rc.1"))), version: "1.0.0", want: "1.0.0+rc.1"},
		"54a release in range":      {catalogs: releases, version: "1.0.0+1", want: "1.0.0+2"},
		"54b release installed":     {catalogs: releases, installed: installed("1.0.0+1"), want: "1.0.0+1"},
		"55 release without edge":   {catalogs: one(channel("a", entry("1.0.0+2"))), installed: installed("1.0.0"), err: upgrade1 + none},
		"57 no version at all":      {catalogs: one(named("p.x", "")), err: `error getting resolved bundle version for bundle "p.x": no package property found in bundle "p.x"`},
		"58 bad version and a good": {catalogs: one(named("p.vv9.0.0", "v9.0.0"), blob("1.0.0")), want: "1.0.0"},
		"59 bad version, deprecated": {
			catalogs: one(blob("bad"), blob("1.0.0"), deprecated("1.0.0")), want: "1.0.0",
			differs: `the reference fails with "error getting resolved bundle version …": it prefers what it then has to refuse`,
		},
		"61 no installed version": {
			catalogs: one(blob("1.0.0")), installed: &bundle.Identity{Package: "p", Name: "p.v1.0.0"},
			err: `error walking catalogs: error finding upgrade edges: failed to get version and release of installed bundle: Version string empty`,
		},
	}
}

// refusalVectors are about requirements. The reference refuses a bundle that
// states any, and does not look at the others.
func refusalVectors() map[string]vector {
	const better = "the reference fails: it supports no requirements"
	vectors := map[string]vector{}
	for property, value := range map[string]string{
		"olm.package.required": `{"packageName":"q","versionRange":">=1.0.0"}`,
		"olm.gvk.required":     `{"group":"g","version":"v1","kind":"K"}`,
		"olm.constraint":       `{"package":{"packageName":"q","versionRange":">=1.0.0"}}`,
	} {
		vectors["60 "+property] = vector{
			catalogs: one(channel("c", entry("0.9.0"), entry("1.0.0", r("0.9.0"))), states("1.0.0", "olm.gvk", "{}"), states("1.0.0", property, value)),
			cluster:  clusterWith(), want: "0.9.0", differs: better,
		}
		vectors["60 dead end "+property] = vector{
			catalogs: one(blob("1.0.0"), blob("0.9.0"), states("1.0.0", property, value)),
			cluster:  clusterWith(), err: none, differs: "the reference fails with another message",
		}
	}
	vectors["60 requirement met"] = vector{
		catalogs: one(blob("1.0.0"), blob("0.9.0"), requires("1.0.0", "q")), cluster: clusterWith("q"), want: "1.0.0", differs: better,
	}
	vectors["60 no cluster to ask"] = vector{
		catalogs: one(blob("1.0.0"), blob("0.9.0"), requires("1.0.0", "q")), want: "1.0.0", differs: better,
	}
	return vectors
}
