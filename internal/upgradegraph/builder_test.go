package upgradegraph_test

import (
	"fmt"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/upgradegraph"
)

// pkg has a bundle for each version, named "p.v" and the version, and the
// channels.
func pkg(versions string, channels ...resolve.Channel) resolve.Package {
	p := resolve.Package{Name: "p", Channels: channels}
	for version := range strings.FieldsSeq(versions) {
		p.Bundles = append(p.Bundles, resolve.Bundle{Name: name(version), Version: version})
	}
	return p
}

func name(version string) string { return "p.v" + version }

func channel(name string, entries ...resolve.Entry) resolve.Channel {
	return resolve.Channel{Name: name, Entries: entries}
}

// entry of a version that replaces one version, or "", and skips others.
func entry(version, replaces string, skips ...string) resolve.Entry {
	e := resolve.Entry{Name: name(version)}
	if replaces != "" {
		e.Replaces = name(replaces)
	}
	for _, skipped := range skips {
		skip(&e, name(skipped))
	}
	return e
}

// skip has an entry skip one bundle more.
func skip(e *resolve.Entry, bundle string) {
	if e.Skips == nil {
		e.Skips = &resolve.Skips{}
	}
	e.Skips.Bundles = append(e.Skips.Bundles, bundle)
}

func ranged(version, skipRange string) resolve.Entry {
	return resolve.Entry{Name: name(version), Skips: &resolve.Skips{Range: skipRange}}
}

func deprecate(p resolve.Package, scope resolve.Scope, name, message string) resolve.Package {
	p.Deprecations = append(p.Deprecations, resolve.Deprecation{Scope: scope, Name: name, Message: message})
	return p
}

func path(versions ...string) upgradegraph.View {
	var view upgradegraph.View
	for _, version := range versions {
		view.Path = append(view.Path, name(version))
	}
	return view
}

// edges in words: "1.0.0 replaces 2.0.0 in stable, on the path" is the upgrade
// from 1.0.0 to 2.0.0.
func edges(g upgradegraph.Graph) []string {
	var all []string
	for _, edge := range g.Edges {
		text := fmt.Sprintf("%s -> %s: %s", short(g, edge.From), short(g, edge.To), edge.Kind)
		if len(edge.Channels) > 0 {
			text += " in " + channelNames(g, edge.Channels)
		}
		if edge.OnPath {
			text += ", on the path"
		}
		all = append(all, text)
	}
	return all
}

// nodes in words.
func nodes(g upgradegraph.Graph) []string {
	var all []string
	for number, node := range g.Nodes {
		text := short(g, number)
		if len(node.Channels) > 0 {
			text += " in " + channelNames(g, node.Channels)
		}
		if node.Elsewhere {
			text += " elsewhere"
		}
		if node.Missing {
			text += " missing"
		}
		for _, r := range node.Ranges {
			text += fmt.Sprintf(" from %q in %s", r.Text, channelNames(g, r.Channels))
			if r.Invalid {
				text += " invalid"
			}
		}
		if node.Notice.Deprecated {
			text += fmt.Sprintf(" deprecated %q", node.Notice.Message)
		}
		all = append(all, text)
	}
	return all
}

// channels in words.
func channels(g upgradegraph.Graph) []string {
	var all []string
	for _, c := range g.Channels {
		text := c.Name
		if c.Head >= 0 {
			text += " up to " + short(g, c.Head)
		}
		if c.Notice.Deprecated {
			text += fmt.Sprintf(" deprecated %q", c.Notice.Message)
		}
		all = append(all, text)
	}
	return all
}

func short(g upgradegraph.Graph, number int) string {
	return strings.TrimPrefix(g.Nodes[number].Name, "p.v")
}

func channelNames(g upgradegraph.Graph, numbers []int) string {
	var names []string
	for _, number := range numbers {
		names = append(names, g.Channels[number].Name)
	}
	return strings.Join(names, " and ")
}
