package resolve_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func TestExplanation(t *testing.T) {
	t.Parallel()
	linear := one(channel("c", entry("1.0.0"), entry("1.0.1", r("1.0.0")), entry("1.0.2", r("1.0.1")), entry("bad")))
	tests := map[string]struct {
		request   resolve.Request
		catalogs  []resolve.Catalog
		kind      resolve.Kind
		want      string
		reachable []string
	}{
		"two hops away": {
			request:  resolve.Request{Range: mustRange(t, "1.0.2"), Installed: installed("1.0.0")},
			catalogs: linear, kind: resolve.NoBundle, reachable: []string{"1.0.1"},
			want: `upgrades lead to 1.0.1; the way to 1.0.2 is over 1.0.1: set version to "1.0.1" first; of 4 bundles, 1 without a valid version, 2 not in range "1.0.2", 1 without an upgrade edge from what is installed`,
		},
		"channel": {
			request: resolve.Request{Channels: []string{"beta"}}, catalogs: linear, kind: resolve.NoBundle,
			want: `there is no channel "beta", only "c"; of 4 bundles, 4 not in channels [beta]`,
		},
		"no package": {catalogs: []resolve.Catalog{{Name: "a"}}, kind: resolve.NoBundle, want: `no catalog has package "p": looked in "a"; check its name and the selector of catalogs`},
		"no catalog": {
			kind: resolve.NoBundle, want: `no catalog has package "p": there is none to look in; check that catalogs are available, and the selector of catalogs`,
		},
		"no channel at all": {
			request: resolve.Request{Channels: []string{"beta"}}, catalogs: one(blob("1.0.0")), kind: resolve.NoBundle,
			want: `there is no channel "beta", and no other one; of 1 bundle, 1 not in channels [beta]`,
		},
		"another channel": {
			request:  resolve.Request{Channels: []string{"c"}, Range: mustRange(t, "2.x")},
			catalogs: one(channel("c", entry("1.0.0")), channel("d", entry("2.0.0")), channel("e", entry("2.0.0"))), kind: resolve.NoBundle,
			want: `"p.v2.0.0" fits and is in channels "d", "e"; versions outside of the range: 1.0.0; of 2 bundles, 1 not in channels [c], 1 not in range "2.x"`,
		},
		"another channel, and a step before": {
			request:  resolve.Request{Channels: []string{"c"}, Range: mustRange(t, "3.x"), Installed: installed("1.0.0")},
			catalogs: one(channel("c", entry("1.0.0"), entry("2.0.0", r("1.0.0"))), channel("d", entry("3.0.0", r("2.0.0")))), kind: resolve.NoBundle, reachable: []string{"2.0.0"},
			want: `"p.v3.0.0" matches and is in channel "d"; upgrades lead to 2.0.0; of 3 bundles, 1 not in channels [c], 2 not in range "3.x"`,
		},
		"range": {
			request: resolve.Request{Range: mustRange(t, ">2")}, catalogs: linear, kind: resolve.NoBundle,
			want: `versions outside of the range: 1.0.2, 1.0.1, 1.0.0; of 4 bundles, 1 without a valid version, 3 not in range ">2"`,
		},
		"no way": {
			request:  resolve.Request{Installed: installed("0.5.0")},
			catalogs: linear, kind: resolve.NoBundle,
			want: `"p.v1.0.2" is an upgrade of 1.0.1; upgradeConstraintPolicy SelfCertified goes to "p.v1.0.2" without an upgrade edge; of 4 bundles, 4 without an upgrade edge from what is installed`,
		},
		"dead end": {
			request:  resolve.Request{Cluster: clusterWith()},
			catalogs: one(blob("1.0.0"), blob("1.1.0"), blob("2.0.0"), requires("2.0.0", "q")), kind: resolve.NoBundle,
			want: `"p.v2.0.0" requires package "q" in ">=0.0.0", which is not installed; no upgrade leads there from "p.v1.1.0", which could be installed now: ` +
				`set version to "1.1.0" to have that one; of 3 bundles, 1 whose requirements are not met, 2 with no upgrade to the newest`,
		},
		"no bundles": {catalogs: one(), kind: resolve.NoBundle, want: `package "p" has no bundles`},
		"ambiguous": {
			catalogs: []resolve.Catalog{catalog("b", 0, pkg(blob("1.0.0"))), catalog("a", 0, pkg(blob("2.0.0")))}, kind: resolve.Ambiguous,
			want: `priority 0 have "p.v2.0.0" in catalog "a", "p.v1.0.0" in catalog "b"`,
		},
		"requirement": {
			request:  resolve.Request{Cluster: clusterWith()},
			catalogs: one(blob("1.0.0"), requires("1.0.0", "q"), blob("0.9.0"), requires("0.9.0", "q")), kind: resolve.NoBundle,
			want: `"p.v1.0.0" requires package "q" in ">=0.0.0", which is not installed; of 2 bundles, 2 whose requirements are not met`,
		},
		"unreadable": {
			catalogs: []resolve.Catalog{catalog("a", 0, pkg(blob("1.0.0"))), down("x", 1)}, kind: resolve.Unreadable,
			want: `"p.v1.0.0" would be chosen, but catalogs [x] might have a better one`,
		},
		"unreadable, and none that fits": {
			request:  resolve.Request{Channels: []string{"beta"}},
			catalogs: append([]resolve.Catalog{down("x", -1)}, linear...), kind: resolve.Unreadable,
			want: `catalogs [x] might have one that fits; of 4 bundles, 4 not in channels [beta]`,
		},
		"unreadable, and no other has it": {
			catalogs: []resolve.Catalog{{Name: "a"}, down("x", -1)}, kind: resolve.Unreadable,
			want: `no other catalog has bundles of package "p"`,
		},
		"unreadable, and others disagree": {
			catalogs: []resolve.Catalog{catalog("a", 0, pkg(blob("1.0.0"))), catalog("b", 0, pkg(blob("2.0.0"))), down("x", 1)},
			kind:     resolve.Unreadable,
		},
		"message says it": {catalogs: one(blob("bad")), kind: resolve.BadVersion},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.request.Package = "p"
			_, err := resolve.Resolve(tc.request, tc.catalogs)
			failure := asError(t, err, tc.kind)
			if diff := cmp.Diff(tc.want, failure.Explanation()); diff != "" {
				t.Errorf("Explanation (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.reachable, failure.Reachable); diff != "" {
				t.Errorf("Reachable (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExplanationLeavesOutOtherCatalogs has a catalog that cannot be read beside one
// that decides without it.
func TestExplanationLeavesOutOtherCatalogs(t *testing.T) {
	t.Parallel()
	outdated := pkg(blob("1.0.0"), deprecated("1.0.0"))
	tests := map[string]struct {
		catalogs  []resolve.Catalog
		installed *bundle.Identity
		want      string
	}{
		"lower priority": {catalogs: []resolve.Catalog{catalog("a", 0, pkg(blob("1.0.0"))), down("x", -1)}},
		"same priority":  {catalogs: []resolve.Catalog{catalog("a", 0, pkg(blob("1.0.0"))), down("x", 0)}},
		"installed":      {catalogs: []resolve.Catalog{catalog("a", 0, pkg(blob("1.0.0"))), down("x", 0)}, installed: installed("1.0.0")},
		"the way out of a deprecated bundle": {
			catalogs: []resolve.Catalog{catalog("a", 0, outdated), down("x", 0)}, installed: installed("1.0.0"),
			want: "catalogs [x] cannot be read and might have one that is not deprecated",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := resolve.Resolve(resolve.Request{Package: "p", Installed: tc.installed}, tc.catalogs)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Explanation()); diff != "" {
				t.Errorf("Explanation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplanationIsBounded(t *testing.T) {
	t.Parallel()
	var catalogs []resolve.Catalog
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		catalogs = append(catalogs, catalog(name, 0, pkg(blob("1.0.0"))))
	}
	_, err := resolve.Resolve(resolve.Request{Package: "p"}, catalogs)
	text := asError(t, err, resolve.Ambiguous).Explanation()
	if want := `"p.v1.0.0" in catalog "j" and 2 more`; len(text) < len(want) || text[len(text)-len(want):] != want {
		t.Errorf("Explanation() = %q, want it to end with %q", text, want)
	}
}

// TestLongExplanationIsCut has names as long as catalogs may have them.
func TestLongExplanationIsCut(t *testing.T) {
	t.Parallel()
	var options []func(*resolve.Package)
	for i := range 20 {
		options = append(options, channel(strings.Repeat("ä", 100)+strconv.Itoa(i), entry("1.0."+strconv.Itoa(i))))
	}
	_, err := resolve.Resolve(resolve.Request{Package: "p", Channels: []string{"beta"}}, one(options...))
	text := asError(t, err, resolve.NoBundle).Explanation()
	if len(text) > 700 || !utf8.ValidString(text) || !strings.HasPrefix(text, `there is no channel "beta", only "ä`) {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
