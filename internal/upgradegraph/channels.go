package upgradegraph

import (
	"cmp"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// channelsOf are the channels to draw, one for each name.
func channelsOf(pkg resolve.Package, view View) []resolve.Channel {
	var found []resolve.Channel
	numbers := map[string]int{}
	for _, channel := range pkg.Channels {
		if len(view.Channels) > 0 && !slices.Contains(view.Channels, channel.Name) {
			continue
		}
		number, known := numbers[channel.Name]
		if !known {
			number = len(found)
			numbers[channel.Name] = number
			found = append(found, resolve.Channel{Name: channel.Name})
		}
		found[number].Entries = append(found[number].Entries, channel.Entries...)
	}
	return found
}

// numbered is a channel with its number in the graph.
type numbered struct {
	resolve.Channel

	number int
}

// addChannels adds the channels, that with the newest head first, and returns
// those that are drawn.
func (b *builder) addChannels(channels []resolve.Channel) []numbered {
	heads := make(map[string]int, len(channels))
	for _, channel := range channels {
		heads[channel.Name] = b.head(channel)
	}
	slices.SortFunc(channels, func(x, y resolve.Channel) int {
		return cmp.Or(
			trueFirst(heads[x.Name] >= 0, heads[y.Name] >= 0),
			cmp.Compare(heads[x.Name], heads[y.Name]),
			cmp.Compare(len(y.Entries), len(x.Entries)),
			cmp.Compare(x.Name, y.Name),
		)
	})
	kept := min(len(channels), maxChannels)
	b.graph.LeftOut.Channels = len(channels) - kept
	drawn := make([]numbered, 0, kept)
	for number, channel := range channels[:kept] {
		b.graph.Channels = append(b.graph.Channels, Channel{
			Name:   channel.Name,
			Notice: b.notice(resolve.ChannelScope, channel.Name),
			Head:   heads[channel.Name],
		})
		drawn = append(drawn, numbered{Channel: channel, number: number})
	}
	return drawn
}

// head of a channel; see [Channel.Head].
func (b *builder) head(channel resolve.Channel) int {
	followed := channel.Followed()
	newest, head := -1, -1
	for _, entry := range channel.Entries {
		number, drawn := b.numbers[entry.Name]
		if !drawn || b.graph.Nodes[number].Missing {
			continue
		}
		newest = lower(newest, number)
		if !followed[entry.Name] {
			head = lower(head, number)
		}
	}
	if head < 0 {
		return newest
	}
	return head
}

// lower of two numbers of nodes, of which the first may be none.
func lower(known, number int) int {
	if known < 0 {
		return number
	}
	return min(known, number)
}

// addEntries adds what the entries of a channel declare.
func (b *builder) addEntries(channel numbered) {
	for _, entry := range channel.Entries {
		to, drawn := b.numbers[entry.Name]
		if !drawn {
			continue
		}
		node := &b.graph.Nodes[to]
		node.Elsewhere = false
		if !slices.Contains(node.Channels, channel.number) {
			node.Channels = append(node.Channels, channel.number)
		}
		b.addNamed(entry.Replaces, to, Replaces, channel.number)
		for _, name := range entry.Skipped() {
			b.addNamed(name, to, Skips, channel.number)
		}
		if entry.SkipRange() != "" {
			b.addRange(node, entry.SkipRange(), channel.number)
		}
	}
}

// addNamed adds an edge, unless it leads nowhere or one of its ends is not
// drawn.
func (b *builder) addNamed(from string, to int, kind Kind, channel int) {
	number, drawn := b.numbers[from]
	if !drawn || number == to {
		return
	}
	edge := b.edge(upgrade{from: number, to: to, kind: kind})
	edge.Channels = append(edge.Channels, channel)
}
