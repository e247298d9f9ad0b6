package resolve_test

import (
	"fmt"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// large has 1,000 bundles, each with an entry in every one of 50 channels.
func large() resolve.Package {
	const bundles, channels = 1000, 50
	p := resolve.Package{Name: "p"}
	version := func(i int) string { return fmt.Sprintf("%d.%d.%d", i/100, i/10%10, i%10) }
	for i := range bundles {
		blob(version(i))(&p)
		if i%7 == 0 {
			deprecated(version(i))(&p)
		}
	}
	for number := range channels {
		c := resolve.Channel{Name: fmt.Sprintf("channel-%02d", number)}
		for i := 1; i < bundles; i++ {
			c.Entries = append(c.Entries, entry(version(i), r(version(i-1)), s(version(i/2)), sr(fmt.Sprintf(">=%s <%s", version(i/3), version(i)))))
		}
		p.Channels = append(p.Channels, c)
	}
	return p
}

func BenchmarkLargePackage(b *testing.B) {
	catalogs := []resolve.Catalog{catalog("a", 0, large())}
	for name, request := range map[string]resolve.Request{
		"fresh":    {},
		"upgrade":  {Installed: installed("5.0.0")},
		"channel":  {Installed: installed("5.0.0"), Channels: []string{"channel-07"}, Range: mustRange(b, ">=5.0.0 <7.0.0")},
		"channels": {Channels: []string{"channel-07", "channel-42"}, Range: mustRange(b, "~5.2 || ^7")},
		"none":     {Installed: installed("5.0.0"), Range: mustRange(b, "99.x")},
	} {
		request.Package = "p"
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = resolve.Resolve(request, catalogs)
			}
		})
	}
}

// BenchmarkRequirements has every version of a large package lack what it
// requires, so that all of them are checked.
func BenchmarkRequirements(b *testing.B) {
	const rule = `{"cel":{"rule":"properties.exists(p, p.type == \"olm.package\" && semver_compare(p.value.version, \"2.0.0\") > 0)"}}`
	for name, state := range map[string]func(version string) func(*resolve.Package){
		"package": func(version string) func(*resolve.Package) { return requires(version, "missing") },
		"rule":    func(version string) func(*resolve.Package) { return states(version, "olm.constraint", rule) },
	} {
		p := large()
		for _, bundle := range p.Bundles {
			state(bundle.Version)(&p)
		}
		catalogs := []resolve.Catalog{catalog("a", 0, p)}
		request := resolve.Request{Package: "p", Cluster: clusterWith("q", "r", "s")}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = resolve.Resolve(request, catalogs)
			}
		})
	}
}

func BenchmarkPrepareLargePackage(b *testing.B) {
	p := large()
	b.ReportAllocs()
	for b.Loop() {
		resolve.Prepare(p)
	}
}

// BenchmarkDeadEnds has the newest version of a large package lack what it
// requires: the one before leads there, or none does, and all are searched.
func BenchmarkDeadEnds(b *testing.B) {
	for name, apart := range map[string]bool{"led": false, "apart": true} {
		p := large()
		requires("9.9.9", "missing")(&p)
		for i := range p.Channels {
			last := &p.Channels[i].Entries[len(p.Channels[i].Entries)-1]
			if apart {
				*last = resolve.Entry{Name: last.Name}
			}
		}
		catalogs := []resolve.Catalog{catalog("a", 0, p)}
		request := resolve.Request{Package: "p", Cluster: clusterWith()}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = resolve.Resolve(request, catalogs)
			}
		})
	}
}
