package catalogcheck

import (
	"regexp"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// goneOrMisspelled explains why it is no error to name a bundle that the catalog
// does not have.
const goneOrMisspelled = "fine if it once was: whoever has it installed is upgraded"

var versionWithV = regexp.MustCompile(`[vV][0-9]`)

// channel is a channel with what is needed to check its entries.
type channel struct {
	at      fbc.FileObject
	entries []entry
	// numbers are the places of the entries by name.
	numbers map[string]int
	// bundles are those of the package.
	bundles versions
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
			c.report.errorf(ch.at, "there is more than one entry %s", quote(e.Name))
			continue
		}
		ch.numbers[e.Name] = i
	}
	for _, e := range ch.entries {
		c.checkEntry(ch, e)
	}
	c.checkGraph(ch)
}

func (c *checker) checkEntry(ch *channel, e entry) {
	if _, exists := ch.bundles[e.Name]; !exists && e.Name != "" && !c.incomplete {
		c.report.errorf(ch.at, "entry %s: there is no such bundle", quote(e.Name))
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
		c.report.errorf(ch.at, "entry %s replaces itself", quote(e.Name))
		return
	}
	if _, inChannel := ch.numbers[e.Replaces]; !inChannel && !c.incomplete {
		c.report.warnf(ch.at, "entry %s replaces %s, which %s", quote(e.Name), quote(e.Replaces), ch.missing(e.Replaces))
	}
	from, to := ch.bundles[e.Replaces], ch.bundles[e.Name]
	if from != nil && to != nil && from.Compare(*to) > 0 {
		c.report.warnf(ch.at, "entry %s replaces %s, which is newer: %s instead of %s",
			quote(e.Name), quote(e.Replaces), quote(from.String()), quote(to.String()))
	}
}

// missing says why a name stands for no entry of the channel.
func (ch *channel) missing(name string) string {
	if _, exists := ch.bundles[name]; exists {
		return "is a bundle but has no entry in this channel"
	}
	return "is not in the catalog (" + goneOrMisspelled + ")"
}

func (c *checker) checkSkips(ch *channel, e entry) {
	var missing []string
	for _, name := range e.Skips {
		_, inChannel := ch.numbers[name]
		_, exists := ch.bundles[name]
		switch {
		case name == "":
			c.report.errorf(ch.at, "entry %s skips an empty name", quote(e.Name))
		case name == e.Name:
			c.report.errorf(ch.at, "entry %s skips itself", quote(e.Name))
		case !inChannel && !exists:
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 && !c.incomplete {
		slices.Sort(missing)
		c.report.warnf(ch.at, "entry %s skips what is not in the catalog (%s): %s",
			quote(e.Name), goneOrMisspelled, list(slices.Compact(missing)))
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
		quote(e.Name), quote(e.SkipRange), hint, err)
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
