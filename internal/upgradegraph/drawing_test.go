package upgradegraph_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/upgradegraph"
)

var update = flag.Bool("update", false, "write the drawings into testdata")

// formats by the suffix of their files.
var formats = map[string]func(upgradegraph.Graph, io.Writer) error{
	"mmd": upgradegraph.Graph.WriteMermaid,
	"dot": upgradegraph.Graph.WriteDOT,
	"svg": upgradegraph.Graph.WriteSVG,
}

func draw(tb testing.TB, format string, g upgradegraph.Graph) string {
	tb.Helper()
	var out bytes.Buffer
	if err := formats[format](g, &out); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

// everything there is to draw, with the path of an upgrade.
func everything() (resolve.Package, upgradegraph.View) {
	p := pkg("1.0.0 1.1.0 1.1.1 1.2.0 2.0.0 2.1.0 3.0.0",
		channel("stable",
			entry("1.0.0", "0.9.0"), entry("1.1.0", "1.0.0"), entry("1.1.1", "1.0.0", "1.1.0"),
			resolve.Entry{Name: name("1.2.0"), Replaces: name("1.1.1"), Skips: &resolve.Skips{Range: ">=1.0.0 <1.2.0"}}),
		channel("candidate", ranged("2.0.0", ">=1.2.0 <2.0.0"), entry("2.1.0", "2.0.0"), ranged("2.1.0", "~2")),
		channel("old", entry("1.0.0", "")),
	)
	p.Bundles = append(p.Bundles, resolve.Bundle{Name: "separate", Version: "1.2.0-rc.1"})
	p = deprecate(p, resolve.PackageScope, "", "Move to q.")
	p = deprecate(p, resolve.ChannelScope, "old", "Use stable.")
	p = deprecate(p, resolve.BundleScope, name("1.0.0"), "")
	p = deprecate(p, resolve.BundleScope, name("1.1.0"), "It loses data.")
	return p, path("1.0.0", "1.2.0", "2.0.0", "2.1.0", "3.0.0")
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for format := range formats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			got := draw(t, format, upgradegraph.New(everything()))
			file := filepath.Join("testdata", "everything."+format)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	p, view := everything()
	// What should be there once is there twice, and differs.
	p.Bundles = append(p.Bundles, resolve.Bundle{Name: "separate", Version: "1.2.0-rc.2"})
	p.Channels = append(p.Channels, channel("stable", entry("1.2.0", "", "1.1.0"), ranged("1.2.0", "<1.1.0")))
	p = deprecate(p, resolve.BundleScope, name("1.1.0"), "It loses much data.")
	want := map[string]string{}
	for format := range formats {
		want[format] = draw(t, format, upgradegraph.New(p, view))
	}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		shuffle(rng, p.Bundles)
		shuffle(rng, p.Deprecations)
		shuffle(rng, p.Channels)
		for _, c := range p.Channels {
			shuffle(rng, c.Entries)
			for _, e := range c.Entries {
				shuffle(rng, e.Skipped())
			}
		}
		for format := range formats {
			if diff := cmp.Diff(want[format], draw(t, format, upgradegraph.New(p, view))); diff != "" {
				t.Fatalf("seed %d, %s (-want +got)\n%s", seed, format, diff)
			}
		}
	}
}

func shuffle[T any](rng *rand.Rand, items []T) {
	rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
}

// The input is not changed: it may be shared.
func TestInputIsLeftAlone(t *testing.T) {
	t.Parallel()
	p, view := everything()
	same, sameView := everything()
	upgradegraph.New(p, view)
	if diff := cmp.Diff(same, p); diff != "" {
		t.Errorf("package (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(sameView, view); diff != "" {
		t.Errorf("view (-before +after):\n%s", diff)
	}
}

const hostile = "\"]);%%{init: {}}%%<script>alert(1)</script>&amp;#quot;\\N\\\"\r\n\x00\x1b[31m\u2028\u202e\ufffe\xff`*`--><!--]]>|end|"

func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{hostile, strings.Repeat(hostile, 1000)} {
		p := hostilePackage(text, text+"1.0.0")
		for format, check := range checks {
			t.Run(fmt.Sprintf("%s/%d", format, len(text)), func(t *testing.T) {
				t.Parallel()
				drawing := draw(t, format, upgradegraph.New(p, upgradegraph.View{Path: []string{text}}))
				check(t, drawing)
				if len(drawing) > 20000 {
					t.Errorf("%d bytes: texts are not cut", len(drawing))
				}
			})
		}
	}
}

// hostilePackage has the text wherever a catalog can have one.
func hostilePackage(text, version string) resolve.Package {
	return resolve.Package{
		Name: text,
		Channels: []resolve.Channel{
			{Name: text, Entries: []resolve.Entry{
				{Name: text, Replaces: text + "2", Skips: &resolve.Skips{Bundles: []string{text, text + "3"}, Range: text}},
				{Name: text + "2", Replaces: text, Skips: &resolve.Skips{Range: ">=0.0.0"}},
			}},
			{Name: text + "2", Entries: []resolve.Entry{{Name: text + "2", Replaces: "0"}}},
		},
		Bundles: []resolve.Bundle{{Name: text, Version: version}, {Name: text + "2", Version: "1.0.0"}, {Name: "0"}},
		Deprecations: []resolve.Deprecation{
			{Scope: resolve.PackageScope, Message: text},
			{Scope: resolve.ChannelScope, Name: text, Message: text},
			{Scope: resolve.BundleScope, Name: text, Message: text},
		},
	}
}

// checks that a drawing is what its format allows, and nothing that was not
// meant.
var checks = map[string]func(testing.TB, string){"mmd": checkMermaid, "dot": checkDOT, "svg": checkSVG}

var (
	mermaidLine = regexp.MustCompile(`^(---|title: "[^"]*"|flowchart BT|` +
		`  [ncr]\d*(\["[^"]*"\]|\(\["[^"]*"\]\))(:::\w+)?|` +
		`  n\d+ (-->|==>|-\.->)(\|"[^"]*"\|)? n\d+|  n\d+ --- c\d+|` +
		`  classDef \w+ [-\w:#,]+|  class [n\d,]+ path|  linkStyle [\d,]+ [-\w:#,]+)$`)
	mermaidCode = regexp.MustCompile(`#\d+;`)
	dotLine     = regexp.MustCompile(`^(digraph upgrades \{|\}|  \w+=("(\\.|[^"\\])*"|\w+)|` +
		`  (node|edge|[nc]\d+|n\d+ -> [nc]\d+) \[(\w+=("(\\.|[^"\\])*"|\w+)(, )?)+\])$`)
)

func checkMermaid(tb testing.TB, drawing string) {
	tb.Helper()
	for line := range strings.Lines(drawing) {
		line = strings.TrimSuffix(line, "\n")
		if !mermaidLine.MatchString(line) {
			tb.Errorf("line %q", line)
		}
		for _, quoted := range strings.Split(line, `"`)[1:] {
			rest := mermaidCode.ReplaceAllString(strings.ReplaceAll(quoted, "<br>", ""), "")
			if strings.Contains(line, "linkStyle") || !strings.ContainsAny(rest, "<>&#%{}`\\;*") {
				continue
			}
			tb.Errorf("text %q", quoted)
		}
	}
}

func checkDOT(tb testing.TB, drawing string) {
	tb.Helper()
	for line := range strings.Lines(drawing) {
		if line = strings.TrimSuffix(line, "\n"); !dotLine.MatchString(line) {
			tb.Errorf("line %q", line)
		}
	}
}

func checkSVG(tb testing.TB, drawing string) {
	tb.Helper()
	decoder := xml.NewDecoder(strings.NewReader(drawing))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			tb.Fatalf("%v in\n%s", err, drawing)
		}
		switch token := token.(type) {
		case xml.StartElement:
			known := []string{"svg", "title", "desc", "style", "rect", "g", "path", "text", "tspan"}
			if !slices.Contains(known, token.Name.Local) {
				tb.Errorf("element %q", token.Name.Local)
			}
			for _, attribute := range token.Attr {
				if strings.HasPrefix(attribute.Name.Local, "on") || strings.Contains(attribute.Value, "script") {
					tb.Errorf("attribute %v", attribute)
				}
			}
		case xml.EndElement, xml.CharData:
		default:
			tb.Errorf("%T %v", token, token)
		}
	}
}

func FuzzDraw(f *testing.F) {
	f.Add(hostile, "1.0.0", ">=0.5.0 <2.0.0")
	f.Add("p.v1.0.0", "2.0.0", "")
	f.Add("ü\u200b→", "1.0.0+1", "~1")
	f.Fuzz(func(t *testing.T, text, version, skipRange string) {
		p := hostilePackage(text, version)
		p.Channels[1].Entries = append(p.Channels[1].Entries, resolve.Entry{Name: text, Skips: &resolve.Skips{Range: skipRange}})
		for _, view := range []upgradegraph.View{{}, {Path: []string{"0", text, text + "2"}}, {Channels: []string{text + "2"}}} {
			for format, check := range checks {
				check(t, draw(t, format, upgradegraph.New(p, view)))
			}
		}
	})
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestErrorsOfTheWriter(t *testing.T) {
	t.Parallel()
	for format, write := range formats {
		if err := write(upgradegraph.New(pkg("1.0.0"), upgradegraph.View{}), broken{}); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", format, err)
		}
	}
}
