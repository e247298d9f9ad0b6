package catalogcheck

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// gone are bundles that entries replace or skip and that the catalog does not have.
// Whoever has them installed is upgraded, so that catalogs are full of them.
type gone struct {
	entries int
	names   map[string]struct{}
}

func (g *gone) add(names ...string) {
	g.entries++
	for _, name := range names {
		g.names[name] = struct{}{}
	}
}

// noteGone has all of them in one line, for who looks for a misspelling.
func (c *checker) noteGone() {
	if c.gone.entries == 0 || c.incomplete {
		return
	}
	entries, bundles := "1 entry replaces or skips", "1 bundle"
	if c.gone.entries > 1 {
		entries = fmt.Sprintf("%d entries replace or skip", c.gone.entries)
	}
	if len(c.gone.names) > 1 {
		bundles = fmt.Sprintf("%d bundles", len(c.gone.names))
	}
	c.report.notef(fbc.FileObject{}, "%s %s that the catalog does not have, which is fine if it once had: whoever has one installed is upgraded: %s",
		entries, bundles, list(slices.Sorted(maps.Keys(c.gone.names))))
}

var versionWithV = regexp.MustCompile(`[vV][0-9]`)

// channel is a channel with what is needed to check its entries.
type channel struct {
	at      fbc.FileObject
	entries []entry
	// numbers are the places of the entries by name.
	numbers map[string]int
	// bundles are those of the package.
	bundles versions
	// oldest is the entry of the lowest version, if it can be told.
	oldest string
}

func (c *checker) checkChannels(p *pkg) {
	placed := map[string]bool{}
	malformed := false
	for _, o := range p.channels {
		if !isName(o.at.Name) {
			c.report.warnf(o.at, "no ClusterExtension can ask for this channel: %s", nameRule)
		}
		if o.malformed {
			malformed = true
			continue
		}
		ch := channel{at: o.at, entries: o.value.Entries, bundles: p.versions, numbers: map[string]int{}}
		c.checkChannel(&ch)
		for name := range ch.numbers {
			placed[name] = true
		}
	}
	// That there are no channels at all is said once, of the package.
	if malformed || c.incomplete || len(p.channels) == 0 {
		return
	}
	for _, o := range p.bundles {
		if !placed[o.at.Name] {
			c.report.warnf(o.at, "the bundle is in no channel")
		}
	}
}

func (c *checker) checkChannel(ch *channel) {
	if len(ch.entries) == 0 {
		c.report.warnf(ch.at, "the channel has no entries")
		return
	}
	for i, e := range ch.entries {
		if e.Name == "" {
			c.report.errorf(ch.at, "entry %d has no name", i)
			continue
		}
		if _, again := ch.numbers[e.Name]; again {
			c.report.errorf(ch.at, "there is more than one entry %s", excerpt.Quote(e.Name))
			continue
		}
		ch.numbers[e.Name] = i
	}
	ch.oldest = ch.findOldest()
	for _, e := range ch.entries {
		c.checkEntry(ch, e)
	}
	c.checkGraph(ch)
}

func (c *checker) checkEntry(ch *channel, e entry) {
	if _, exists := ch.bundles[e.Name]; !exists && e.Name != "" && !c.incomplete {
		c.report.errorf(ch.at, "entry %s: there is no such bundle", excerpt.Quote(e.Name))
	}
	c.checkReplaces(ch, e)
	c.checkSkips(ch, e)
	c.checkSkipRange(ch, e)
}

func (c *checker) checkReplaces(ch *channel, e entry) {
	if e.Replaces == "" {
		return
	}
	if e.Replaces == e.Name {
		c.report.errorf(ch.at, "entry %s replaces itself", excerpt.Quote(e.Name))
		return
	}
	if _, inChannel := ch.numbers[e.Replaces]; !inChannel && !c.incomplete {
		c.checkEnd(ch, e)
	}
	from, to := ch.bundles[e.Replaces], ch.bundles[e.Name]
	if from != nil && to != nil && from.Compare(*to) > 0 {
		c.report.warnf(ch.at, "entry %s replaces %s, which is newer: %s instead of %s",
			excerpt.Quote(e.Name), excerpt.Quote(e.Replaces), excerpt.Quote(from.String()), excerpt.Quote(to.String()))
	}
}

// checkEnd is about an entry that replaces what has no entry in the channel. That is
// how old installations, and those of other channels, come to its oldest one. An
// entry that has older ones should replace one of them.
func (c *checker) checkEnd(ch *channel, e entry) {
	_, exists := ch.bundles[e.Replaces]
	hasOlder := ch.hasOlder(e.Name)
	switch {
	case hasOlder && exists:
		c.report.warnf(ch.at, "entry %s replaces %s, which is a bundle but has no entry in this channel, although the channel has older ones, such as %s",
			excerpt.Quote(e.Name), excerpt.Quote(e.Replaces), excerpt.Quote(ch.oldest))
	case hasOlder:
		c.report.warnf(ch.at, "entry %s replaces %s, which the catalog does not have, although the channel has older ones, such as %s: is it misspelled?",
			excerpt.Quote(e.Name), excerpt.Quote(e.Replaces), excerpt.Quote(ch.oldest))
	case !exists:
		c.gone.add(e.Replaces)
	}
}

// findOldest is the entry of the lowest version; empty if no version can be told.
func (ch *channel) findOldest() (oldest string) {
	for _, e := range ch.entries {
		version, lowest := ch.bundles[e.Name], ch.bundles[oldest]
		if version != nil && (lowest == nil || version.Compare(*lowest) < 0) {
			oldest = e.Name
		}
	}
	return oldest
}

// hasOlder is false too if it cannot be told.
func (ch *channel) hasOlder(name string) bool {
	version, oldest := ch.bundles[name], ch.bundles[ch.oldest]
	return version != nil && oldest != nil && oldest.Compare(*version) < 0
}

func (c *checker) checkSkips(ch *channel, e entry) {
	var missing []string
	for _, name := range e.Skips {
		_, inChannel := ch.numbers[name]
		_, exists := ch.bundles[name]
		switch {
		case name == "":
			c.report.errorf(ch.at, "entry %s skips an empty name", excerpt.Quote(e.Name))
		case name == e.Name:
			c.report.errorf(ch.at, "entry %s skips itself", excerpt.Quote(e.Name))
		case !inChannel && !exists:
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		c.gone.add(missing...)
	}
}

func (c *checker) checkSkipRange(ch *channel, e entry) {
	if e.SkipRange == "" {
		return
	}
	err := resolve.CheckSkipRange(e.SkipRange)
	if err == nil {
		return
	}
	hint := ""
	switch {
	case strings.Contains(e.SkipRange, ","):
		hint = " (comparisons are separated by spaces, not by commas)"
	case versionWithV.MatchString(e.SkipRange):
		hint = " (versions have no v in front)"
	case strings.ContainsAny(e.SkipRange, "~^"):
		hint = " (there are no ranges with ~ and ^)"
	}
	c.report.errorf(ch.at, "entry %s: the skipRange %s is invalid and upgrades nothing%s: %v",
		excerpt.Quote(e.Name), excerpt.Quote(e.SkipRange), hint, err)
}

func (c *checker) checkGraph(ch *channel) {
	if len(ch.numbers) == 0 {
		return
	}
	g := newGraph(ch)
	g.cycles(func(entries []int) {
		c.report.errorf(ch.at, "entries replace or skip each other in a circle: %s", g.circle(entries))
	})
	switch heads := g.heads(); {
	case len(heads) == 0:
		c.report.errorf(ch.at, "the channel has no head: every entry is replaced or skipped by another")
	case len(heads) > 1:
		slices.Sort(heads)
		c.report.warnf(ch.at, "the channel has %d heads, entries that no other one replaces or skips, and other readers of catalogs require one: %s",
			len(heads), list(heads))
	}
}
