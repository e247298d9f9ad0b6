package resolve_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const needsAPI = `{"group":"example.com","version":"v1","kind":"Thing"}`

// needy is a chain of three bundles of which the last needs package "q".
func needy() []resolve.Catalog {
	return one(
		channel("stable", entry("1.0.0"), entry("1.1.0", r("1.0.0")), entry("1.2.0", r("1.1.0"), s("1.0.0"))),
		requires("1.2.0", "q"),
	)
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		request  resolve.Request
		catalogs []resolve.Catalog
		want     string
		explains string
	}{
		"the newest bundle whose requirements are met": {
			request: resolve.Request{Cluster: clusterWith()}, catalogs: needy(), want: "1.1.0",
			explains: `newer but left out: "p.v1.2.0" in catalog "a" (requires package "q" in ">=0.0.0", which is not installed)`,
		},
		"an upgrade to it": {
			request: resolve.Request{Cluster: clusterWith(), Installed: installed("1.0.0")}, catalogs: needy(), want: "1.1.0",
			explains: `newer but left out: "p.v1.2.0" in catalog "a" (requires package "q" in ">=0.0.0", which is not installed)`,
		},
		"what is installed stays": {
			request: resolve.Request{Cluster: clusterWith(), Installed: installed("1.1.0")}, catalogs: needy(), want: "1.1.0",
			explains: `newer but left out: "p.v1.2.0" in catalog "a" (requires package "q" in ">=0.0.0", which is not installed)`,
		},
		"an upgrade from which the newest cannot be reached": {
			request: resolve.Request{Cluster: clusterWith(), Installed: installed("1.0.0")}, want: "1.0.0",
			catalogs: one(channel("c", entry("1.0.0"), entry("1.1.0", r("1.0.0")), entry("2.0.0", r("1.0.0"))), requires("2.0.0", "q")),
			explains: `newer but left out: "p.v2.0.0" in catalog "a" (requires package "q" in ">=0.0.0", which is not installed), ` +
				`"p.v1.1.0" in catalog "a" (no upgrade leads from it to "p.v2.0.0", whose requirements are not met); ` +
				`to have "p.v1.1.0" all the same, set version to "1.1.0"`,
		},
		"the requirement is there": {
			request: resolve.Request{Cluster: clusterWith("q"), Installed: installed("1.0.0")}, catalogs: needy(), want: "1.2.0",
		},
		"an installed bundle stays although its requirement is gone": {
			request: resolve.Request{Cluster: clusterWith(), Installed: installed("1.2.0")}, catalogs: needy(), want: "1.2.0",
			explains: `"p.v1.2.0" requires package "q" in ">=0.0.0", which is not installed`,
		},
		"a renamed bundle of the installed version is a new one": {
			request:  resolve.Request{Cluster: clusterWith(), Installed: installed("1.0.0")},
			catalogs: one(named("p.renamed", "1.0.0"), requires("1.0.0", "q"), blob("1.1.0"), channel("c", entry("1.1.0", r("1.0.0")))),
			want:     "1.1.0",
		},
		"a catalog of lower priority steps in": {
			request:  resolve.Request{Cluster: clusterWith()},
			catalogs: []resolve.Catalog{catalog("hi", 1, pkg(channel("c", entry("2.0.0", r("1.0.0"))), requires("2.0.0", "q"))), catalog("lo", 0, pkg(blob("1.0.0")))},
			want:     "1.0.0",
			explains: `newer but left out: "p.v2.0.0" in catalog "hi" (requires package "q" in ">=0.0.0", which is not installed)`,
		},
		"a version of Kubernetes": {
			request:  resolve.Request{Cluster: clusterWith()},
			catalogs: one(channel("c", entry("1.0.0"), entry("2.0.0", r("1.0.0"))), onKubernetes("2.0.0", "1.99.0")),
			want:     "1.0.0",
			explains: `newer but left out: "p.v2.0.0" in catalog "a" (requires Kubernetes "1.99.0" or later, the cluster has "1.36.0")`,
		},
		"what cannot be told about a worse bundle does not matter": {
			request:  resolve.Request{Cluster: &requirement.Cluster{APIsErr: errors.New("down")}},
			catalogs: one(blob("1.0.0"), blob("0.9.0"), states("0.9.0", "olm.gvk.required", needsAPI)), want: "1.0.0",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.request.Package = "p"
			got, err := resolve.Resolve(tc.request, tc.catalogs)
			if err != nil {
				t.Fatal(err)
			}
			if want := "p.v" + tc.want; got.Identity.Name != want {
				t.Errorf("Resolve() = %q, want %q", got.Identity.Name, want)
			}
			if diff := cmp.Diff(tc.explains, got.Explanation()); diff != "" {
				t.Errorf("Explanation (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUncheckedRequirement shows that nothing older is installed only because
// the cluster could not be asked.
func TestUncheckedRequirement(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	catalogs := one(blob("1.0.0"), states("1.0.0", "olm.gvk.required", needsAPI), blob("0.9.0"))
	_, err := resolve.Resolve(resolve.Request{Package: "p", Cluster: &requirement.Cluster{APIsErr: down}}, catalogs)
	failure := asError(t, err, resolve.Unchecked)
	if !errors.Is(failure, down) {
		t.Errorf("Resolve() failed with %v, want %v as its cause", failure, down)
	}
	if failure.Bundle.Name != "p.v1.0.0" || failure.LeftOut[0].Reason != resolve.RequirementUnknown {
		t.Errorf("Resolve() refused %q for %q", failure.Bundle.Name, failure.LeftOut[0].Reason)
	}
}

func TestMissingIsNamed(t *testing.T) {
	t.Parallel()
	_, err := resolve.Resolve(resolve.Request{Package: "p", Cluster: clusterWith()}, one(blob("1.0.0"), requires("1.0.0", "q")))
	left := asError(t, err, resolve.NoBundle).LeftOut
	want := []requirement.PackageRange{{Package: "q", Range: ">=0.0.0"}}
	if len(left) != 1 || left[0].Reason != resolve.RequirementNotMet || len(left[0].Missing) != 1 {
		t.Fatalf("LeftOut = %+v", left)
	}
	if diff := cmp.Diff(want, left[0].Missing[0].Packages); diff != "" {
		t.Errorf("Packages (-want +got):\n%s", diff)
	}
}

// statingMuch has bundles 1.0.0, 1.0.1 and so on, each with requirements of its own
// that nothing meets.
func statingMuch(bundles, requirements int) resolve.Package {
	p := resolve.Package{Name: "p"}
	for i := range bundles {
		b := resolve.Bundle{Name: fmt.Sprintf("p.v1.0.%d", i), Version: fmt.Sprintf("1.0.%d", i), Image: "registry.test/p:v1"}
		facts := factsOf(&b)
		for j := range requirements {
			facts.Properties = append(facts.Properties, &requirement.Property{
				Type:  "olm.package.required",
				Value: json.RawMessage(fmt.Sprintf(`{"packageName":"q%d-%d","versionRange":">=1.0.0"}`, i, j)),
			})
		}
		p.Bundles = append(p.Bundles, b)
	}
	return p
}

// TestHostileRequirementsTakeLittleMemory: what a package states is bounded, for
// each bundle and in all.
//
//nolint:paralleltest // allocations of other tests would count
func TestHostileRequirementsTakeLittleMemory(t *testing.T) {
	testkit.WithoutRace(t)
	const limit = 192 << 20
	for name, p := range map[string]resolve.Package{
		"each bundle too many": statingMuch(1000, 5000),
		"all too many":         statingMuch(2000, 250),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := resolve.Resolve(resolve.Request{Package: "p", Cluster: clusterWith()}, []resolve.Catalog{catalog("a", 0, p)})
		runtime.ReadMemStats(&after)
		asError(t, err, resolve.NoBundle)
		allocated := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d MiB", name, allocated>>20)
		if allocated > limit {
			t.Errorf("%s: %d MiB were allocated, more than %d", name, allocated>>20, limit>>20)
		}
	}
}

// TestRequirementsOfOnePackageAreBounded: those of the best bundles are read, and a
// bundle beyond the bound says what is wrong with it.
func TestRequirementsOfOnePackageAreBounded(t *testing.T) {
	t.Parallel()
	p := statingMuch(200, 250)
	blob("0.9.0")(&p)
	requires("0.9.0", "there")(&p)
	blob("0.8.0")(&p)
	onKubernetes("0.8.0", "1.20.0")(&p)
	request := resolve.Request{Package: "p", Cluster: clusterWith("there"), Policy: resolve.SelfCertified}
	got, err := resolve.Resolve(request, []resolve.Catalog{catalog("a", 0, p)})
	if err != nil {
		t.Fatal(err)
	}
	if got.Identity.Version != "0.8.0" {
		t.Errorf("Resolve() = %s, want what states nothing that has to be read", got.Identity.Version)
	}
	missing := map[string]string{}
	for _, left := range got.LeftOut {
		missing[left.Version] = left.Missing[0].Text
	}
	if first := missing["1.0.199"]; first != `requires package "q199-0" in ">=1.0.0", which is not installed` {
		t.Errorf("the best bundle: %s", first)
	}
	const beyond = "states requirements beyond the 1048576 bytes that are read of one package"
	for _, version := range []string{"1.0.0", "0.9.0"} {
		if missing[version] != beyond {
			t.Errorf("%s: %q, want %q", version, missing[version], beyond)
		}
	}
}

// TestSharedRequirementsCountOnce: any number of bundles may state the same, and what
// is said of them takes memory once, too.
//
//nolint:paralleltest // allocations of other tests would count
func TestSharedRequirementsCountOnce(t *testing.T) {
	p := statingMuch(2000, 100)
	for i := range p.Bundles {
		p.Bundles[i].Facts = p.Bundles[0].Facts
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := resolve.Resolve(resolve.Request{Package: "p", Cluster: clusterWith()}, []resolve.Catalog{catalog("a", 0, p)})
	runtime.ReadMemStats(&after)
	for _, left := range asError(t, err, resolve.NoBundle).LeftOut {
		if len(left.Missing) != 100 || !strings.HasSuffix(left.Detail, "; and 90 more") {
			t.Fatalf("%s lacks %d, want 100: %s", left.Version, len(left.Missing), left.Detail)
		}
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 16<<20 {
		t.Errorf("%d KiB were allocated for %d bundles", allocated>>10, len(p.Bundles))
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		request  resolve.Request
		catalogs []resolve.Catalog
		want     []string
	}{
		"fresh":   {catalogs: needy(), want: []string{"p.v1.2.0"}},
		"chain":   {request: resolve.Request{Installed: installed("0.1.0")}, catalogs: []resolve.Catalog{fixtureIn("a", 0)}, want: []string{"p.v0.1.0", "p.v1.0.2", "p.v2.0.0", "p.v3.0.0"}},
		"nothing": {request: resolve.Request{Installed: installed("9.0.0")}, catalogs: needy(), want: []string{"p.v9.0.0"}},
		"circle": {
			request:  resolve.Request{Installed: installed("1.0.0")},
			catalogs: one(channel("c", entry("2.0.0", r("1.0.0"))), channel("c", entry("1.0.0", s("2.0.0")), entry("3.0.0", sr("=2.0.0")), entry("1.9.0", r("3.0.0"))), deprecated("2.0.0", "3.0.0", "1.0.0")),
			want:     []string{"p.v1.0.0", "p.v2.0.0", "p.v3.0.0", "p.v1.9.0"},
		},
		"self-reference": {
			request:  resolve.Request{Installed: installed("1.0.0")},
			catalogs: one(channel("c", entry("1.0.0", r("1.0.0"), s("1.0.0")))), want: []string{"p.v1.0.0"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.request.Package = "p"
			var got []string
			for _, identity := range resolve.Path(tc.request, tc.catalogs) {
				got = append(got, identity.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Path() (-want +got):\n%s", diff)
			}
		})
	}
}
