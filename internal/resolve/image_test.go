package resolve_test

import (
	"testing"

	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func TestImageOfABundle(t *testing.T) {
	t.Parallel()
	prepared := resolve.Prepare(resolve.Package{Name: "p", Bundles: []resolve.Bundle{
		{Name: "p.v1.0.0", Version: "1.0.0", Image: "registry.test/p:v1.0.0"},
		{Name: "p.v2.0.0", Version: "not a version", Image: "registry.test/p:v2.0.0"},
	}})
	for name, want := range map[string]string{
		"p.v1.0.0": "registry.test/p:v1.0.0", "p.v2.0.0": "registry.test/p:v2.0.0", "p.v3.0.0": "",
	} {
		if got := prepared.Image(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
