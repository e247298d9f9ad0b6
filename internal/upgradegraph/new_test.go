package upgradegraph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/upgradegraph"
)

func TestEdges(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		pkg  resolve.Package
		view upgradegraph.View
		want []string
	}{
		"what entries name, those that replace first": {
			pkg: pkg("1.0.0 1.1.0 1.2.0",
				channel("stable", entry("1.2.0", "1.0.0", "1.1.0"), entry("1.1.0", "1.0.0"), entry("1.0.0", ""))),
			want: []string{
				"1.0.0 -> 1.1.0: replaces in stable",
				"1.0.0 -> 1.2.0: replaces in stable",
				"1.1.0 -> 1.2.0: skips in stable",
			},
		},
		"one edge for all channels that declare it": {
			pkg: pkg("1.0.0 1.1.0",
				channel("stable", entry("1.1.0", "1.0.0")), channel("fast", entry("1.1.0", "1.0.0")),
				channel("fast", entry("1.1.0", "1.0.0"))),
			want: []string{"1.0.0 -> 1.1.0: replaces in fast and stable"},
		},
		"a range leads to the newest from where nothing else leads on": {
			pkg: pkg("1.0.0 1.1.0 1.2.0 1.3.0", channel("stable",
				entry("1.0.0", ""), entry("1.1.0", "1.0.0"), ranged("1.2.0", "<1.2.0"), ranged("1.3.0", ">=1.1.0 <1.3.0"))),
			want: []string{
				"1.0.0 -> 1.1.0: replaces in stable",
				"1.2.0 -> 1.3.0: skipRange in stable",
				"1.1.0 -> 1.3.0: skipRange in stable",
			},
		},
		"all channels whose ranges lead to the newest": {
			pkg: pkg("1.0.0 1.1.0",
				channel("a", ranged("1.1.0", "<1.1.0")), channel("b", ranged("1.1.0", ">=1.0.0 <1.1.0")),
				channel("c", ranged("1.1.0", "<1.0.0"))),
			want: []string{"1.0.0 -> 1.1.0: skipRange in a and b"},
		},
		"a range leads to nothing older, and not from what has no version": {
			pkg:  pkg("1.0.0 1.1.0 bad", channel("stable", ranged("1.0.0", ">=0.0.0"), entry("0.9.0", ""))),
			want: nil,
		},
		"nothing upgrades itself": {
			pkg:  pkg("1.0.0", channel("stable", entry("1.0.0", "1.0.0", "1.0.0"), ranged("1.0.0", "<2.0.0"))),
			want: nil,
		},
		"circles are what they are": {
			pkg: pkg("1.0.0 1.1.0", channel("stable", entry("1.0.0", "1.1.0"), entry("1.1.0", "1.0.0"))),
			want: []string{
				"1.0.0 -> 1.1.0: replaces in stable",
				"1.1.0 -> 1.0.0: replaces in stable",
			},
		},
		"the path takes what is declared": {
			pkg: pkg("1.0.0 1.1.0 1.2.0",
				channel("stable", entry("1.1.0", "1.0.0", "1.0.0"), entry("1.2.0", "", "1.1.0"))),
			view: path("1.0.0", "1.1.0", "1.2.0"),
			want: []string{
				"1.0.0 -> 1.1.0: replaces in stable, on the path",
				"1.1.0 -> 1.2.0: skips in stable, on the path",
				"1.0.0 -> 1.1.0: skips in stable, on the path",
			},
		},
		"the path takes ranges that have no edge otherwise": {
			pkg: pkg("1.0.0 1.1.0 2.0.0",
				channel("stable", entry("1.1.0", "1.0.0"), entry("2.0.0", "1.1.0"), ranged("2.0.0", "<2.0.0"))),
			view: path("1.0.0", "2.0.0"),
			want: []string{
				"1.0.0 -> 2.0.0: skipRange in stable, on the path",
				"1.1.0 -> 2.0.0: replaces in stable",
				"1.0.0 -> 1.1.0: replaces in stable",
			},
		},
		"the path goes where nothing leads": {
			pkg:  pkg("1.0.0 2.0.0", channel("stable", entry("1.0.0", "")), channel("next", entry("2.0.0", ""))),
			view: path("2.0.0", "1.0.0"),
			want: []string{"2.0.0 -> 1.0.0: not declared, on the path"},
		},
		"of the channels asked for only": {
			pkg: pkg("1.0.0 1.1.0 1.2.0",
				channel("stable", entry("1.1.0", "1.0.0")), channel("fast", entry("1.2.0", "1.1.0"))),
			view: upgradegraph.View{Channels: []string{"fast"}},
			want: []string{"1.1.0 -> 1.2.0: replaces in fast"},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, edges(upgradegraph.New(test.pkg, test.view))); diff != "" {
				t.Errorf("edges (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		pkg  resolve.Package
		view upgradegraph.View
		want []string
	}{
		"newest first, by version": {
			pkg:  pkg("1.9.0 1.10.0 1.10.0-rc.1 1.10.0+2 1.10.0+10"),
			want: []string{"1.10.0+10", "1.10.0+2", "1.10.0", "1.10.0-rc.1", "1.9.0"},
		},
		"without a version last": {
			pkg:  pkg("bad 0.1.0"),
			want: []string{"0.1.0", "bad"},
		},
		"whatever is named, where its name says": {
			pkg: pkg("1.0.0 1.3.0",
				channel("stable", entry("1.3.0", "1.2.0", "1.1.0"), entry("1.4.0", ""), resolve.Entry{Name: "odd"}, entry("1.0.0", ""))),
			want: []string{
				"1.4.0 in stable missing",
				"1.3.0 in stable",
				"1.2.0 missing",
				"1.1.0 missing",
				"1.0.0 in stable",
				"odd in stable missing",
			},
		},
		"what is installed": {
			pkg:  pkg("1.1.0"),
			view: path("1.0.0"),
			want: []string{"1.1.0", "1.0.0 missing"},
		},
		"all ranges, also those without effect": {
			pkg: pkg("1.0.0",
				channel("a", ranged("1.0.0", "<1.0.0"), ranged("1.0.0", "~1.0")), channel("b", ranged("1.0.0", "<1.0.0"))),
			want: []string{`1.0.0 in a and b from "<1.0.0" in a and b from "~1.0" in a invalid`},
		},
		"what is deprecated": {
			pkg:  deprecate(pkg("1.0.0"), resolve.BundleScope, "p.v1.0.0", "old"),
			want: []string{`1.0.0 deprecated "old"`},
		},
		"of channels asked for, and what they name": {
			pkg: pkg("1.0.0 1.1.0 1.2.0 1.3.0",
				channel("stable", entry("1.1.0", "1.0.0")), channel("fast", entry("1.2.0", "1.1.0", "1.0.0"))),
			view: upgradegraph.View{Channels: []string{"fast"}},
			want: []string{"1.2.0 in fast", "1.1.0 elsewhere", "1.0.0"},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, nodes(upgradegraph.New(test.pkg, test.view))); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChannels(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		pkg  resolve.Package
		want []string
	}{
		"that with the newest head first, then the larger one": {
			pkg: pkg("1.0.0 1.1.0 2.0.0",
				channel("empty"), channel("old", entry("1.0.0", "")), channel("b", entry("2.0.0", "")), channel("a", entry("2.0.0", "")),
				channel("z", entry("2.0.0", "1.1.0"), entry("1.1.0", ""))),
			want: []string{"z up to 2.0.0", "a up to 2.0.0", "b up to 2.0.0", "old up to 1.0.0", "empty"},
		},
		"the head is not skipped": {
			pkg:  pkg("1.0.0 1.1.0", channel("a", entry("1.0.0", "", "1.1.0"), entry("1.1.0", ""))),
			want: []string{"a up to 1.0.0"},
		},
		"what skips itself is a head": {
			pkg:  pkg("1.0.0 1.1.0", channel("a", entry("1.0.0", ""), entry("1.1.0", "1.0.0", "1.1.0"))),
			want: []string{"a up to 1.1.0"},
		},
		"in a circle, the newest is the head": {
			pkg:  pkg("1.0.0 1.1.0", channel("a", entry("1.0.0", "1.1.0"), entry("1.1.0", "1.0.0"))),
			want: []string{"a up to 1.1.0"},
		},
		"what the catalog does not have is no head": {
			pkg:  pkg("1.0.0", channel("a", entry("1.0.0", ""), entry("1.1.0", "")), channel("b", entry("1.1.0", ""))),
			want: []string{"a up to 1.0.0", "b"},
		},
		"what is deprecated": {
			pkg:  deprecate(pkg("", channel("a")), resolve.ChannelScope, "a", "over"),
			want: []string{`a deprecated "over"`},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, channels(upgradegraph.New(test.pkg, upgradegraph.View{}))); diff != "" {
				t.Errorf("channels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeprecatedPackageNeedsNoName(t *testing.T) {
	t.Parallel()
	want := upgradegraph.Notice{Deprecated: true, Message: "over"}
	for _, name := range []string{"", "p"} {
		g := upgradegraph.New(deprecate(pkg("1.0.0"), resolve.PackageScope, name, "over"), upgradegraph.View{})
		if g.Notice != want {
			t.Errorf("deprecation of package %q: %+v, want %+v", name, g.Notice, want)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	p := pkg("")
	for i := range 2100 {
		version := fmt.Sprintf("1.%d.0", i)
		p.Bundles = append(p.Bundles, resolve.Bundle{Name: name(version), Version: version})
	}
	// Each of 130 channels skips a hundred versions, four times.
	for i := range 130 {
		c := channel(fmt.Sprintf("c%03d", i))
		for j := range 4 {
			e := resolve.Entry{Name: name(fmt.Sprintf("1.%d.0", 2099-i))}
			for k := range 100 {
				skip(&e, name(fmt.Sprintf("1.%d.0", 1900-100*j-k)))
			}
			c.Entries = append(c.Entries, e)
		}
		p.Channels = append(p.Channels, c)
	}
	g := upgradegraph.New(p, path("1.0.0", "1.2099.0"))
	if len(g.Nodes) != 2000 || len(g.Channels) != 100 || len(g.Edges) != 10000 {
		t.Errorf("%d nodes, %d channels, %d edges", len(g.Nodes), len(g.Channels), len(g.Edges))
	}
	if want := (upgradegraph.LeftOut{Nodes: 100, Channels: 30, Edges: 100*400 + 1 - 10000}); g.LeftOut != want {
		t.Errorf("left out: %+v, want %+v", g.LeftOut, want)
	}
	if got := g.Nodes[g.Path[0]].Name; got != name("1.0.0") {
		t.Errorf("the path begins with %s: what is on it is never left out", got)
	}
	if got := g.Nodes[1998].Name; got != name("1.101.0") {
		t.Errorf("the oldest that is drawn otherwise is %s", got)
	}
	if !strings.Contains(draw(t, "dot", g), "not drawn: 100 older bundles, 30 channels, 30001 edges") {
		t.Error("the drawing does not say so")
	}
}

func TestLinesAreBounded(t *testing.T) {
	t.Parallel()
	var versions strings.Builder
	for i := range 100 {
		fmt.Fprintf(&versions, "1.%d.0 ", i)
	}
	p := pkg(versions.String())
	for i := range 100 {
		c := channel(fmt.Sprint(i))
		for j := range 50 {
			e := resolve.Entry{Name: p.Bundles[99-j].Name}
			for k := range 50 {
				skip(&e, p.Bundles[k].Name)
			}
			c.Entries = append(c.Entries, e)
		}
		p.Channels = append(p.Channels, c)
	}
	g := upgradegraph.New(p, upgradegraph.View{})
	if len(g.Edges) != 2000 || g.LeftOut.Edges != 500 {
		t.Errorf("%d edges in a hundred channels, %d left out", len(g.Edges), g.LeftOut.Edges)
	}
	if drawing := draw(t, "svg", g); len(drawing) > 16<<20 {
		t.Errorf("%d bytes", len(drawing))
	}
}
