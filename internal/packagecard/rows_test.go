package packagecard_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/packagecard"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func sampleRows() resolve.Package {
	needs := &resolve.Facts{
		MinKubeVersion: "1.99.0",
		Properties:     []*requirement.Property{{Type: "olm.gvk.required", Value: json.RawMessage(`{"group":"g","kind":"K","version":"v1"}`)}},
	}
	return resolve.Package{
		Name: "p",
		Channels: []resolve.Channel{
			{Name: "beta", Entries: []resolve.Entry{{Name: "p.v2"}, {Name: "p.v10", Replaces: "p.v2"}, {Name: "p.v10", Replaces: "p.v1"}}},
			{Name: "stable", Entries: []resolve.Entry{{Name: "p.v1"}, {Name: "p.v2", Skips: &resolve.Skips{Bundles: []string{"p.v1"}}}, {Name: "gone"}}},
			{Name: "torn", Entries: []resolve.Entry{{Name: "p.v1"}, {Name: "p.v2"}}},
		},
		Bundles: []resolve.Bundle{
			{Name: "odd"},
			{Name: "p.v1", Version: "1.0.0", Image: "registry.test/p:v1"},
			{Name: "p.v10", Version: "10.0.0", Facts: needs},
			{Name: "p.v2", Version: "2.0.0"},
		},
		Deprecations: []resolve.Deprecation{
			{Scope: resolve.BundleScope, Name: "p.v1", Message: "too old"},
			{Scope: resolve.ChannelScope, Name: "beta"},
			{Scope: resolve.PackageScope, Message: "all of it"},
		},
	}
}

func TestChannels(t *testing.T) {
	t.Parallel()
	want := []packagecard.Channel{
		{Name: "stable", Default: true, Heads: []string{"2.0.0"}, Newest: "2.0.0", Bundles: 3},
		{Name: "beta", Heads: []string{"10.0.0"}, Newest: "10.0.0", Bundles: 3, Deprecated: "deprecated"},
		{Name: "torn", Heads: []string{"2.0.0", "1.0.0"}, Newest: "2.0.0", Bundles: 2},
	}
	if diff := cmp.Diff(want, packagecard.Channels(sampleRows(), "stable")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	requires := []string{`olm.gvk.required {"group":"g","kind":"K","version":"v1"}`, "minKubeVersion 1.99.0"}
	want := []packagecard.Version{
		{Version: "10.0.0", Bundle: "p.v10", Channels: []string{"beta"}, HeadOf: []string{"beta"}, Requires: requires},
		{Version: "2.0.0", Bundle: "p.v2", Channels: []string{"beta", "stable", "torn"}, HeadOf: []string{"stable", "torn"}},
		{Version: "1.0.0", Bundle: "p.v1", Image: "registry.test/p:v1", Channels: []string{"stable", "torn"}, HeadOf: []string{"torn"}, Deprecated: "too old"},
		{Bundle: "odd"},
	}
	if diff := cmp.Diff(want, packagecard.Versions(sampleRows(), nil)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := packagecard.Versions(sampleRows(), &requirement.Cluster{Kubernetes: "1.30.0", Serves: func(requirement.API) bool { return false }})[0].Lacking; len(got) != len(requires) {
		t.Errorf("a cluster without anything lacks %q", got)
	}
}

func TestNotice(t *testing.T) {
	t.Parallel()
	if got := packagecard.Notice(sampleRows()); got != "all of it" {
		t.Errorf("got %q", got)
	}
}

// TestHostileRowsTakeLittle has as many channels of one bundle, and as many deprecations, as a
// package can: each is looked at once.
func TestHostileRowsTakeLittle(t *testing.T) {
	t.Parallel()
	const many = 100_000
	pkg := resolve.Package{Name: "p", Bundles: []resolve.Bundle{{Name: "one", Version: "1.0.0"}}}
	for i := range many {
		name := strconv.Itoa(i)
		pkg.Channels = append(pkg.Channels, resolve.Channel{Name: name, Entries: []resolve.Entry{{Name: "one"}}})
		pkg.Bundles = append(pkg.Bundles, resolve.Bundle{Name: name})
		pkg.Deprecations = append(pkg.Deprecations, resolve.Deprecation{Scope: resolve.BundleScope, Name: name, Message: "m"})
	}
	if got := packagecard.Versions(pkg, nil); len(got) != many+1 || len(got[0].Channels) != many || got[1].Deprecated != "m" {
		t.Errorf("got %d versions", len(got))
	}
	if got := packagecard.Channels(pkg, ""); len(got) != many {
		t.Errorf("got %d channels", len(got))
	}
}
