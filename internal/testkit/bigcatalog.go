package testkit

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
)

// BigCatalog describes a made-up catalog with the proportions of large public
// ones: few packages have most of the bundles, each bundle is in some channels
// and replaces or skips earlier ones, and long descriptions and examples in
// olm.csv.metadata properties make up nearly all of its size. The same values
// always give the same content.
type BigCatalog struct {
	// Seed sets apart catalogs of the same proportions.
	Seed uint64
	// Packages and Bundles are the numbers of olm.package and olm.bundle
	// objects. There is at least one bundle per package.
	Packages, Bundles int
	// Bytes is the size of the content, which comes as close to it as the text
	// of the last bundles allows.
	Bytes int64
	// Revision stands for later contents of the same catalog: each adds a
	// channel to the first package and leaves all else as it is.
	Revision int
}

// PublicCatalog returns a catalog of the size of the largest public one.
func PublicCatalog(seed uint64) BigCatalog {
	return BigCatalog{Seed: seed, Packages: 450, Bundles: 16_150, Bytes: 202_000_000}
}

// WriteTo writes the content as one JSON object per line, as catalog servers
// serve it, and returns its size. The error is that of w.
func (c BigCatalog) WriteTo(w io.Writer) (int64, error) {
	c.Bundles = max(c.Bundles, c.Packages)
	counted := &countingWriter{out: w}
	g := &bigCatalogWriter{
		BigCatalog: c,
		out:        bufio.NewWriterSize(counted, 1<<20),
		random:     rand.New(rand.NewPCG(c.Seed, 0)),
		filler:     rand.New(rand.NewPCG(c.Seed, 1)),
		counted:    counted,
	}
	g.sentences = g.makeTexts(g.sentence)
	g.examples = g.makeTexts(g.example)
	for i, bundles := range g.shares() {
		g.writePackage(i, bundles)
	}
	err := g.out.Flush()
	return counted.bytes, err
}

type bigCatalogWriter struct {
	BigCatalog

	out     *bufio.Writer
	counted *countingWriter
	// random decides on facts, filler on texts, of which the length depends on
	// what was written so far: a revision must not change other facts.
	random, filler *rand.Rand
	// sentences and examples are pieces of JSON strings.
	sentences, examples []string
	bundles             int
}

type countingWriter struct {
	out   io.Writer
	bytes int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.out.Write(p)
	w.bytes += int64(n)
	return n, err
}

// printf writes text. What went wrong shows when the writer is flushed.
func (g *bigCatalogWriter) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(g.out, format, args...)
}

// text writes about n bytes of pieces.
func (g *bigCatalogWriter) text(pieces []string, n int) {
	for n > 0 {
		piece := pieces[g.filler.IntN(len(pieces))]
		_, _ = g.out.WriteString(piece)
		n -= len(piece)
	}
}

// shares returns the number of bundles of every package.
func (g *bigCatalogWriter) shares() []int {
	const flatness = 12 // the largest package has some 6 % of the bundles
	weights, sum := make([]float64, g.Packages), 0.0
	for i := range weights {
		weights[i] = 1 / float64(i+flatness)
		sum += weights[i]
	}
	shares, spare := make([]int, g.Packages), g.Bundles-g.Packages
	left := spare
	for i := range shares {
		share := int(float64(spare) * weights[i] / sum)
		shares[i] = 1 + share
		left -= share
	}
	// What rounding left over goes around.
	for i := range left {
		shares[i%len(shares)]++
	}
	return shares
}

func (g *bigCatalogWriter) writePackage(index, bundles int) {
	name := fmt.Sprintf("%s-%s-operator-%d", word(g.random), word(g.random), index)
	g.printf(`{"defaultChannel":"stable","description":"`)
	g.text(g.sentences, 400)
	g.printf(`","icon":{"base64data":"`)
	for range 60 {
		g.printf("%016X", g.random.Uint64())
	}
	g.printf(`","mediatype":"image/svg+xml"},"name":%q,"schema":"olm.package"}`+"\n", name)

	versions := g.versions(bundles)
	g.writeChannels(name, versions)
	if index == 0 {
		for i := range g.Revision {
			g.writeChannel(name, "revision-"+strconv.Itoa(i+1), versions)
		}
	}
	for _, version := range versions {
		g.writeBundle(name, version)
	}
	if index%9 == 0 {
		g.printf(`{"entries":[{"message":"`)
		g.text(g.sentences, 120)
		g.printf(`","reference":{"name":"%s.v%s","schema":"olm.bundle"}}],"package":%q,"schema":"olm.deprecations"}`+"\n",
			name, versions[0], name)
	}
}

// versions returns n versions in ascending order.
func (g *bigCatalogWriter) versions(n int) []string {
	versions := make([]string, n)
	major, minor, patch := 0, 1, 0
	for i := range versions {
		versions[i] = fmt.Sprintf("%d.%d.%d", major, minor, patch)
		switch g.random.IntN(10) {
		case 0:
			major, minor, patch = major+1, 0, 0
		case 1, 2, 3:
			minor, patch = minor+1, 0
		default:
			patch++
		}
	}
	return versions
}

// writeChannels writes channels of which one has all bundles and each other has
// those from some version on.
func (g *bigCatalogWriter) writeChannels(name string, versions []string) {
	g.writeChannel(name, "stable", versions)
	for i := range g.random.IntN(4) {
		from := g.random.IntN(len(versions))
		g.writeChannel(name, "stable-"+versions[from]+"-"+strconv.Itoa(i), versions[from:])
	}
}

func (g *bigCatalogWriter) writeChannel(name, channel string, versions []string) {
	g.printf(`{"entries":[`)
	for i, version := range versions {
		if i > 0 {
			g.printf(",")
		}
		g.printf(`{"name":"%s.v%s"`, name, version)
		if i > 0 {
			g.printf(`,"replaces":"%s.v%s"`, name, versions[i-1])
		}
		// By the place and not by chance, so that a revision changes nothing else.
		if i > 1 && i%7 == 0 {
			g.printf(`,"skipRange":">=%s \u003c%s","skips":["%s.v%s"]`, versions[0], version, name, versions[i-2])
		}
		g.printf("}")
	}
	g.printf(`],"name":%q,"package":%q,"schema":"olm.channel"}`+"\n", channel, name)
}

func (g *bigCatalogWriter) writeBundle(name, version string) {
	size := g.bundleBytes()
	g.printf(`{"image":"registry.test/%s/%s@sha256:`, word(g.random), name)
	for range 4 {
		g.printf("%016x", g.random.Uint64())
	}
	g.printf(`","name":"%s.v%s","package":%q,"properties":[`, name, version, name)
	for i := range 1 + g.random.IntN(8) {
		g.printf(`{"type":"olm.gvk","value":{"group":"%s.example.com","kind":"Kind%d","version":"v1alpha1"}},`, name, i)
	}
	if g.random.IntN(10) == 0 {
		g.printf(`{"type":"olm.gvk.required","value":{"group":"%s.example.com","kind":"Other","version":"v1"}},`, word(g.random))
	}
	g.printf(`{"type":"olm.package","value":{"packageName":%q,"version":%q}},`, name, version)
	g.printf(`{"type":"olm.csv.metadata","value":{"annotations":{"alm-examples":"[`)
	g.text(g.examples, size/4)
	g.printf(`]","capabilities":"Full Lifecycle","certified":"false"},"apiServiceDefinitions":{},"description":"`)
	g.text(g.sentences, size-size/4)
	g.printf(`","displayName":%q,"installModes":[{"supported":true,"type":"AllNamespaces"}],"keywords":[%q,%q],"links":[{"name":"Home","url":"https://%[1]s.example.com"}],"provider":{"name":%q}}}],"relatedImages":[{"image":"registry.test/%[1]s:v%[5]s","name":"manager"}],"schema":"olm.bundle"}`+"\n",
		name, word(g.random), word(g.random), word(g.random), version)
	g.bundles++
}

// bundleBytes returns how much text the next bundle has: half to one and a half
// times what is left for each bundle.
func (g *bigCatalogWriter) bundleBytes() int {
	const other = 1300 // about what a bundle has besides
	left := g.Bytes - g.counted.bytes - int64(g.out.Buffered())
	mean := int(left)/(g.Bundles-g.bundles) - other
	if mean <= 0 {
		return 0
	}
	if g.bundles == g.Bundles-1 {
		return mean
	}
	return mean/2 + g.filler.IntN(mean)
}

func (g *bigCatalogWriter) makeTexts(write func() string) []string {
	const variety = 500
	texts := make([]string, variety)
	for i := range texts {
		texts[i] = write()
	}
	return texts
}

// sentence returns a line of Markdown as part of a JSON string.
func (g *bigCatalogWriter) sentence() string {
	words := g.words(5+g.random.IntN(20), " ")
	return `* ` + words + `\u003c` + word(g.random) + `\u003e, \"` + word(g.random) + `\" – ` + word(g.random) + `.\n`
}

// example returns an indented object as part of a JSON string.
func (g *bigCatalogWriter) example() string {
	fields := g.words(2+g.random.IntN(8), `\": 1,\n      \"`)
	return `\n  {\n    \"apiVersion\": \"` + word(g.random) + `.example.com/v1\",\n    \"spec\": {\n      \"` +
		fields + `size\": 3\n    }\n  },`
}

// words returns n words, each with end behind it.
func (g *bigCatalogWriter) words(n int, end string) string {
	var text strings.Builder
	for range n {
		text.WriteString(word(g.random))
		text.WriteString(end)
	}
	return text.String()
}

func word(random *rand.Rand) string {
	return bigCatalogWords[random.IntN(len(bigCatalogWords))]
}

var bigCatalogWords = []string{
	"access", "agent", "backup", "broker", "certificate", "cloud", "cluster", "config", "data", "database",
	"deployment", "edge", "event", "gateway", "grid", "identity", "image", "ingress", "key", "lifecycle",
	"logging", "mesh", "metrics", "monitor", "namespace", "network", "node", "observability", "pipeline", "policy",
	"proxy", "queue", "registry", "replication", "scheduler", "search", "secret", "service", "snapshot", "storage",
	"stream", "tenant", "token", "trace", "upgrade", "vault", "volume", "webhook", "workflow", "workload",
}
