package resolve_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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
			want: `of 4 bundles, 1 without a valid version, 2 not in range "1.0.2", 1 without an upgrade edge from what is installed; upgrades lead to 1.0.1; the way to 1.0.2 is over 1.0.1`,
		},
		"channel": {
			request: resolve.Request{Channels: []string{"beta"}}, catalogs: linear, kind: resolve.NoBundle,
			want: `of 4 bundles, 4 not in channels [beta]`,
		},
		"no package": {catalogs: []resolve.Catalog{{Name: "a"}}, kind: resolve.NoBundle, want: `no catalog has package "p"`},
		"no bundles": {catalogs: one(), kind: resolve.NoBundle, want: `package "p" has no bundles`},
		"ambiguous": {
			catalogs: []resolve.Catalog{catalog("b", 0, pkg(blob("1.0.0"))), catalog("a", 0, pkg(blob("2.0.0")))}, kind: resolve.Ambiguous,
			want: `priority 0 have "p.v2.0.0" in catalog "a", "p.v1.0.0" in catalog "b"`,
		},
		"requirement": {
			request:  resolve.Request{Cluster: clusterWith()},
			catalogs: one(blob("1.0.0"), requires("1.0.0", "q"), blob("0.9.0"), requires("0.9.0", "q")), kind: resolve.NoBundle,
			want: `of 2 bundles, 2 whose requirements are not met; "p.v1.0.0" requires package "q" in ">=0.0.0", which is not installed`,
		},
		"unreadable": {
			catalogs: []resolve.Catalog{catalog("a", 0, pkg(blob("1.0.0"))), down("x", 1)}, kind: resolve.Unreadable,
			want: `"p.v1.0.0" would be chosen, but catalogs [x] might have a better one`,
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
