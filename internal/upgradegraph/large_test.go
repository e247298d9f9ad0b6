package upgradegraph_test

import (
	"fmt"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/upgradegraph"
)

// large is a package of a thousand versions in fifty channels: each has all
// versions up to its own, and is reached from what is a minor version older.
func large() resolve.Package {
	const minors, patches = 50, 20
	p := pkg("")
	for i := range minors * patches {
		version := fmt.Sprintf("1.%d.%d", i/patches, i%patches)
		p.Bundles = append(p.Bundles, resolve.Bundle{Name: name(version), Version: version})
	}
	for minor := range minors {
		c := channel(fmt.Sprintf("stable-1.%d", minor))
		for i, b := range p.Bundles[:(minor+1)*patches] {
			e := resolve.Entry{Name: b.Name, Skips: &resolve.Skips{Range: fmt.Sprintf(">=1.%d.0 <%s", max(0, i/patches-1), b.Version)}}
			if i > 0 {
				e.Replaces = p.Bundles[i-1].Name
			}
			for j := max(0, i-5); j < i-1; j++ {
				skip(&e, p.Bundles[j].Name)
			}
			c.Entries = append(c.Entries, e)
		}
		p.Channels = append(p.Channels, c)
	}
	return p
}

func TestLargePackages(t *testing.T) {
	t.Parallel()
	g := upgradegraph.New(large(), path("1.0.0", "1.49.19"))
	if g.LeftOut != (upgradegraph.LeftOut{}) {
		t.Errorf("left out: %+v", g.LeftOut)
	}
	for format := range formats {
		if size := len(draw(t, format, g)); size > 16<<20 {
			t.Errorf("%s: %d bytes", format, size)
		}
	}
}

func BenchmarkLargePackage(b *testing.B) {
	p, view := large(), path("1.0.0", "1.49.19")
	for format := range formats {
		b.Run(format, func(b *testing.B) {
			size := 0
			for b.Loop() {
				size = len(draw(b, format, upgradegraph.New(p, view)))
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
