package resolve_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// pkg is a package "p" whose bundles are called "p.v<version>".
func pkg(options ...func(*resolve.Package)) resolve.Package {
	p := resolve.Package{Name: "p"}
	for _, option := range options {
		option(&p)
	}
	return p
}

// channel adds a channel, and the bundles of its entries.
func channel(name string, entries ...resolve.Entry) func(*resolve.Package) {
	return func(p *resolve.Package) {
		p.Channels = append(p.Channels, resolve.Channel{Name: name, Entries: entries})
		for _, entry := range entries {
			blob(entry.Name[len("p.v"):])(p)
		}
	}
}

// blob adds a bundle that is in no channel yet.
func blob(version string) func(*resolve.Package) {
	return named("p.v"+version, version)
}

func named(name, version string) func(*resolve.Package) {
	return func(p *resolve.Package) {
		known := slices.ContainsFunc(p.Bundles, func(b resolve.Bundle) bool { return b.Name == name })
		if !known {
			p.Bundles = append(p.Bundles, resolve.Bundle{Name: name, Version: version, Image: "registry.test/p:v" + version})
		}
	}
}

// pinned gives the image of a bundle a digest.
func pinned(version, repository, hex string) func(*resolve.Package) {
	return image(version, repository+"@sha256:"+hex)
}

func image(version, reference string) func(*resolve.Package) {
	return func(p *resolve.Package) {
		for i := range p.Bundles {
			if p.Bundles[i].Version == version {
				p.Bundles[i].Image = reference
			}
		}
	}
}

// factsOf are the facts of a bundle, to be changed.
func factsOf(b *resolve.Bundle) *resolve.Facts {
	if b.Facts == nil {
		b.Facts = &resolve.Facts{}
	}
	return b.Facts
}

// skipsOf are the skips of an entry, to be changed.
func skipsOf(e *resolve.Entry) *resolve.Skips {
	if e.Skips == nil {
		e.Skips = &resolve.Skips{}
	}
	return e.Skips
}

// states gives a bundle a property.
func states(version, property, value string) func(*resolve.Package) {
	return func(p *resolve.Package) {
		for i := range p.Bundles {
			if p.Bundles[i].Version == version {
				facts := factsOf(&p.Bundles[i])
				facts.Properties = append(facts.Properties, &requirement.Property{Type: property, Value: json.RawMessage(value)})
			}
		}
	}
}

// requires makes a bundle need any version of a package.
func requires(version, name string) func(*resolve.Package) {
	return states(version, "olm.package.required", `{"packageName":"`+name+`","versionRange":">=0.0.0"}`)
}

// clusterWith has the packages installed, each in version 1.0.0, and serves no
// API.
func clusterWith(packages ...string) *requirement.Cluster {
	cluster := &requirement.Cluster{
		Kubernetes: "1.36.0",
		Serves:     func(requirement.API) bool { return false },
	}
	for _, name := range packages {
		cluster.Extensions = append(cluster.Extensions, requirement.Extension{Name: name, Package: name, Version: "1.0.0"})
	}
	return cluster
}

func deprecated(versions ...string) func(*resolve.Package) {
	return func(p *resolve.Package) {
		for _, version := range versions {
			p.Deprecations = append(p.Deprecations, resolve.Deprecation{
				Scope: resolve.BundleScope, Name: "p.v" + version, Message: version + " is deprecated",
			})
		}
	}
}

// entry of a bundle; edges are made by r, s and sr.
func entry(version string, edges ...func(*resolve.Entry)) resolve.Entry {
	e := resolve.Entry{Name: "p.v" + version}
	for _, edge := range edges {
		edge(&e)
	}
	return e
}

func r(version string) func(*resolve.Entry) {
	return func(e *resolve.Entry) { e.Replaces = "p.v" + version }
}

func s(version string) func(*resolve.Entry) {
	return func(e *resolve.Entry) { skips := skipsOf(e); skips.Bundles = append(skips.Bundles, "p.v"+version) }
}

func sr(skipRange string) func(*resolve.Entry) {
	return func(e *resolve.Entry) { skipsOf(e).Range = skipRange }
}

func catalog(name string, priority int32, p resolve.Package) resolve.Catalog {
	return resolve.Catalog{Name: name, Priority: priority, Package: resolve.Prepare(p)}
}

// one is a single catalog with the package.
func one(options ...func(*resolve.Package)) []resolve.Catalog {
	return []resolve.Catalog{catalog("a", 0, pkg(options...))}
}

func installed(version string) *bundle.Identity {
	return &bundle.Identity{Package: "p", Name: "p.v" + version, Version: version}
}

func mustRange(t testing.TB, text string) resolve.Range {
	t.Helper()
	parsed, err := resolve.ParseRange(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
