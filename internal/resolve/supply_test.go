package resolve_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func TestSupply(t *testing.T) {
	t.Parallel()
	thing := requirement.API{Group: "g", Version: "v1", Kind: "Thing"}
	const property = `{"group":"g","version":"v1","kind":"Thing"}`
	packages := map[string]*resolve.Prepared{
		"p": resolve.Prepare(pkg(blob("0.9.0"), blob("0.10.0"), blob("0.14.0"), deprecated("0.14.0"),
			states("0.9.0", "olm.gvk", property), states("0.10.0", "olm.gvk", property))),
	}
	stock := resolve.Stock{
		Catalogs: []string{"a", "b"},
		Package: func(catalog, name string) *resolve.Prepared {
			if catalog == "b" {
				return nil
			}
			return packages[name]
		},
		Providers: func(api requirement.API) []resolve.Provider {
			if api != thing {
				return nil
			}
			return []resolve.Provider{{Catalog: "a", Package: "p"}, {Catalog: "not available", Package: "p"}}
		},
	}
	of := func(name, versions string) requirement.Unmet {
		return requirement.Unmet{Packages: []requirement.PackageRange{{Package: name, Range: versions}}}
	}
	tests := map[string]struct {
		missing []requirement.Unmet
		want    resolve.Supply
	}{
		"nothing": {},
		"a version in the range": {
			missing: []requirement.Unmet{of("p", "0.9.0")},
			want:    resolve.Supply{Providers: []string{`package "p" of catalog "a" in version "0.9.0"`}},
		},
		"any version: the best": {
			missing: []requirement.Unmet{of("p", "")},
			want:    resolve.Supply{Providers: []string{`package "p" of catalog "a" in version "0.10.0"`}},
		},
		"other versions": {
			missing: []requirement.Unmet{of("p", ">=1.0.0")},
			want:    resolve.Supply{Gaps: []string{`package "p" of catalog "a" has no version in ">=1.0.0", only 0.10.0, 0.9.0, 0.14.0`}},
		},
		"no package": {
			missing: []requirement.Unmet{of("z", "1.0.0")},
			want:    resolve.Supply{Gaps: []string{`no catalog has package "z"`}},
		},
		"an API": {
			missing: []requirement.Unmet{{APIs: []requirement.API{thing}}},
			want:    resolve.Supply{Providers: []string{`package "p" of catalog "a" in version "0.10.0"`}},
		},
		"an API of a package in a range": {
			missing: []requirement.Unmet{{APIs: []requirement.API{thing}}, of("p", "<0.10.0")},
			want:    resolve.Supply{Providers: []string{`package "p" of catalog "a" in version "0.9.0"`}},
		},
		"an API that is not in the range": {
			missing: []requirement.Unmet{{APIs: []requirement.API{thing}}, of("p", ">0.13.0")},
			want: resolve.Supply{Providers: []string{
				`package "p" of catalog "a" in version "0.10.0"`, `package "p" of catalog "a" in version "0.14.0"`,
			}},
		},
		"an API of nobody": {
			missing: []requirement.Unmet{{APIs: []requirement.API{{Version: "v1", Kind: "Other"}}}},
			want:    resolve.Supply{Gaps: []string{`no catalog has a package that brings API "v1, Kind=Other"`}},
		},
		"one of two is enough": {
			missing: []requirement.Unmet{{Packages: slices.Concat(of("p", "0.9.0").Packages, of("z", "").Packages)}},
			want:    resolve.Supply{Providers: []string{`package "p" of catalog "a" in version "0.9.0"`}},
		},
		"a version of Kubernetes": {missing: []requirement.Unmet{{Text: "requires Kubernetes", Kubernetes: "1.99.0"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, stock.Supply(tc.missing)); diff != "" {
				t.Errorf("Supply (-want +got):\n%s", diff)
			}
		})
	}
}
