package resolve_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func TestLeftOut(t *testing.T) {
	t.Parallel()
	hi := catalog("hi", 10, pkg(
		channel("stable", entry("1.0.0"), entry("1.1.0", r("1.0.0")), entry("1.2.0", s("1.0.0")), entry("1.3.0", r("1.2.0")),
			entry("1.4.0", sr(">=1.0.0, <1.4.0")), entry("1.5.0", r("1.0.0")), entry("2.0.0", r("1.0.0")), entry("bad")),
		channel("beta", entry("1.9.0", r("1.0.0"))),
		deprecated("1.5.0"),
	))
	lo := catalog("lo", -1, pkg(channel("stable", entry("1.2.1", r("1.0.0"))), blob("1.2.2")))
	got, err := resolve.Resolve(resolve.Request{
		Package:   "p",
		Range:     mustRange(t, "<2"),
		Channels:  []string{"stable"},
		Installed: installed("1.0.0"),
	}, []resolve.Catalog{lo, hi})
	if err != nil {
		t.Fatal(err)
	}
	if got.Identity.Name != "p.v1.2.0" || got.Image != "registry.test/p:v1.2.0" || got.Catalog != "hi" {
		t.Fatalf("Resolve() = %v", got)
	}
	noUpgrade := `no upgrade from "p.v1.0.0" version "1.0.0"`
	want := []resolve.LeftOut{
		{Name: "p.v2.0.0", Version: "2.0.0", Catalog: "hi", Reason: resolve.OutsideRange, Detail: `not in range "<2"`},
		{Name: "p.v1.9.0", Version: "1.9.0", Catalog: "hi", Reason: resolve.NotInChannel, Detail: `not in channels [stable]`},
		{Name: "p.v1.4.0", Version: "1.4.0", Catalog: "hi", Reason: resolve.NoUpgradeEdge, Detail: noUpgrade + `; skipRange ">=1.0.0, <1.4.0" in channel "stable" is invalid: Could not parse Range ">=1.0.0,": Could not parse version "1.0.0," in ">=1.0.0,": Invalid character(s) found in patch number "0,"`},
		{Name: "p.v1.3.0", Version: "1.3.0", Catalog: "hi", Reason: resolve.NoUpgradeEdge, Detail: noUpgrade},
		{Name: "p.v1.1.0", Version: "1.1.0", Catalog: "hi", Reason: resolve.LowerVersion, Detail: `"p.v1.2.0" has version "1.2.0"`},
		{Name: "p.v1.0.0", Version: "1.0.0", Catalog: "hi", Reason: resolve.LowerVersion, Detail: `"p.v1.2.0" has version "1.2.0"`},
		{Name: "p.v1.5.0", Version: "1.5.0", Catalog: "hi", Reason: resolve.Deprecated, Detail: `"p.v1.2.0" is not deprecated`},
		{Name: "p.vbad", Version: "bad", Catalog: "hi", Reason: resolve.InvalidVersion, Detail: `parsing version "bad": No Major.Minor.Patch elements found`},
		{Name: "p.v1.2.2", Version: "1.2.2", Catalog: "lo", Reason: resolve.NotInChannel, Detail: `not in channels [stable]`},
		{Name: "p.v1.2.1", Version: "1.2.1", Catalog: "lo", Reason: resolve.LowerPriority, Detail: `catalog "hi" has priority 10`},
	}
	if diff := cmp.Diff(want, got.LeftOut); diff != "" {
		t.Errorf("LeftOut (-want +got):\n%s", diff)
	}
}

func TestLeftOutOfFailures(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		catalogs []resolve.Catalog
		kind     resolve.Kind
		want     []resolve.LeftOut
	}{
		"bad version": {
			catalogs: one(named("p.x", ""), blob("bad")),
			kind:     resolve.BadVersion,
			want: []resolve.LeftOut{
				{Name: "p.vbad", Version: "bad", Catalog: "a", Reason: resolve.InvalidVersion, Detail: `parsing version "bad": No Major.Minor.Patch elements found`},
				{Name: "p.x", Catalog: "a", Reason: resolve.InvalidVersion, Detail: `no package property found in bundle "p.x"`},
			},
		},
		"ambiguous": {
			catalogs: []resolve.Catalog{
				catalog("low", -1, pkg(blob("3.0.0"))), catalog("b", 0, pkg(blob("1.0.0"), blob("0.9.0"))), catalog("a", 0, pkg(blob("2.0.0"))),
			},
			kind: resolve.Ambiguous,
			want: []resolve.LeftOut{
				{Name: "p.v2.0.0", Version: "2.0.0", Catalog: "a", Reason: resolve.Tied, Detail: `catalogs [a b] have priority 0`},
				{Name: "p.v1.0.0", Version: "1.0.0", Catalog: "b", Reason: resolve.Tied, Detail: `catalogs [a b] have priority 0`},
				{Name: "p.v0.9.0", Version: "0.9.0", Catalog: "b", Reason: resolve.LowerVersion, Detail: `"p.v1.0.0" has version "1.0.0"`},
				{Name: "p.v3.0.0", Version: "3.0.0", Catalog: "low", Reason: resolve.LowerPriority, Detail: `catalog "a" has priority 0`},
			},
		},
		"unreadable": {
			catalogs: []resolve.Catalog{catalog("a", 0, pkg(blob("1.0.0"))), down("x", 1)},
			kind:     resolve.Unreadable,
			want: []resolve.LeftOut{
				{Name: "p.v1.0.0", Version: "1.0.0", Catalog: "a", Reason: resolve.CatalogUnreadable, Detail: `catalogs [x] might have a better one`},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := resolve.Resolve(resolve.Request{Package: "p"}, tc.catalogs)
			if diff := cmp.Diff(tc.want, asError(t, err, tc.kind).LeftOut); diff != "" {
				t.Errorf("LeftOut (-want +got):\n%s", diff)
			}
		})
	}
}
