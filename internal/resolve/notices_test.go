package resolve_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// TestNotices has several messages about one subject, in either order, and one without a text.
func TestNotices(t *testing.T) {
	t.Parallel()
	deprecations := []resolve.Deprecation{
		{Scope: resolve.PackageScope, Name: "ignored", Message: "use q"},
		{Scope: resolve.PackageScope, Message: "use r"},
		{Scope: resolve.ChannelScope, Name: "x"},
		{Scope: resolve.BundleScope, Name: "x", Message: "broken"},
	}
	reversed := []resolve.Deprecation{deprecations[3], deprecations[2], deprecations[1], deprecations[0]}
	want := map[resolve.Subject]string{
		{Scope: resolve.PackageScope}:            "use r",
		{Scope: resolve.ChannelScope, Name: "x"}: "",
		{Scope: resolve.BundleScope, Name: "x"}:  "broken",
	}
	for _, said := range [][]resolve.Deprecation{deprecations, reversed} {
		if diff := cmp.Diff(want, resolve.Package{Deprecations: said}.Notices()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
