package resolve_test

import (
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func TestInstalledIdentity(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason    string
		installed bundle.Identity
		options   []func(*resolve.Package)
		want      string // version, empty for none
	}{
		"no name":            {reason: "must not match entries without replaces", installed: bundle.Identity{Package: "p", Version: "1.0.0"}, options: []func(*resolve.Package){channel("c", entry("1.1.0"), entry("1.2.0", func(e *resolve.Entry) { e.Skips = &resolve.Skips{Bundles: []string{""}} }))}},
		"no name, skipRange": {reason: "the version is known", installed: bundle.Identity{Package: "p", Version: "1.0.0"}, options: []func(*resolve.Package){channel("c", entry("1.1.0", sr("<1.1.0")))}, want: "1.1.0"},
		"other package":      {reason: "never each other's upgrade", installed: bundle.Identity{Package: "q", Name: "p.v1.0.0", Version: "1.0.0"}, options: []func(*resolve.Package){channel("c", entry("1.0.0"), entry("1.1.0", r("1.0.0"), sr("<2.0.0")))}},
		"endless skipRange":  {reason: "longer than any that is published", installed: *installed("1.0.0"), options: []func(*resolve.Package){channel("c", entry("1.1.0", sr(strings.Repeat(">=1.0.0 ", 1000))))}},
		"renamed twin":       {reason: "of two equal versions the installed one stays", installed: bundle.Identity{Package: "p", Name: "p.vz", Version: "1.0.0"}, options: []func(*resolve.Package){named("p.va", "1.0.0"), named("p.vz", "1.0.0")}, want: "p.vz"},
		"replaces itself":    {reason: "an edge to itself is staying", installed: *installed("1.0.0"), options: []func(*resolve.Package){channel("c", entry("1.0.0", r("1.0.0"), s("1.0.0"), sr("1.0.0")))}, want: "1.0.0"},
		"cycle":              {reason: "one hop has no end to miss", installed: *installed("1.0.0"), options: []func(*resolve.Package){channel("c", entry("1.0.0", r("1.1.0")), entry("1.1.0", r("1.0.0")))}, want: "1.1.0"},
		"dangling entry":     {reason: "an entry is not a bundle", installed: *installed("1.0.0"), options: []func(*resolve.Package){channel("c", entry("1.1.0", r("1.0.0"))), func(p *resolve.Package) { p.Bundles = nil }}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := resolve.Resolve(resolve.Request{Package: "p", Installed: &tc.installed}, one(tc.options...))
			if tc.want == "" {
				asError(t, err, resolve.NoBundle)
				return
			}
			if err != nil || (got.Identity.Version != tc.want && got.Identity.Name != tc.want) {
				t.Errorf("Resolve() = %v, %v; want %s: %s", got.Identity, err, tc.want, tc.reason)
			}
		})
	}
}

func TestPackageOfAnotherName(t *testing.T) {
	t.Parallel()
	_, err := resolve.Resolve(resolve.Request{Package: "q"}, one(blob("1.0.0")))
	asError(t, err, resolve.NoBundle)
}

// TestInvalidInstalled: the version only matters if there is something to
// upgrade to, and if edges decide.
func TestInvalidInstalled(t *testing.T) {
	t.Parallel()
	broken := &bundle.Identity{Package: "p", Name: "p.vx", Version: "x"}
	catalogs := one(blob("0.0.0"), blob("1.0.0"))
	_, err := resolve.Resolve(resolve.Request{Package: "p", Installed: broken}, catalogs)
	asError(t, err, resolve.InvalidInstalled)

	_, err = resolve.Resolve(resolve.Request{Package: "p", Installed: broken}, []resolve.Catalog{{Name: "a"}})
	asError(t, err, resolve.NoBundle)

	got, err := resolve.Resolve(resolve.Request{Package: "p", Installed: broken, Policy: resolve.SelfCertified}, catalogs)
	if err != nil || got.Identity.Version != "1.0.0" {
		t.Errorf("Resolve() = %v, %v; want 1.0.0", got.Identity, err)
	}
}
