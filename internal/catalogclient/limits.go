package catalogclient

import (
	"cmp"
	"time"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

const (
	// defaultKeptBytes is some ten times what the largest public catalog needs.
	defaultKeptBytes = 64 << 20
	// defaultAllKeptBytes lets four catalogs be as large as one may be.
	defaultAllKeptBytes = 256 << 20
	// defaultSmallBytes is twice what the largest public catalog needs.
	defaultSmallBytes = 16 << 20
	// defaultItems lets a channel of 5,000 bundles skip 20 with each.
	defaultItems = 100_000
	// defaultYAMLBytes is small: servers of catalogs send JSON.
	defaultYAMLBytes = 1 << 20
	// defaultIdle is generous for a server that is busy storing a catalog.
	defaultIdle = 30 * time.Second
	// defaultTotal lets 200 MB through at 100 kB/s.
	defaultTotal = 40 * time.Minute
)

// Bounds on texts in bytes, beside that on names. What is longer makes its object
// malformed, but for messages, which are for people and are cut.
const (
	// maxVersionBytes bounds versions. Published ones have twenty bytes; to parse
	// one takes more than ten times its size.
	maxVersionBytes = 256
	// maxRangeBytes is that of ranges that are understood.
	maxRangeBytes = 4 << 10
	// maxRequirementBytes bounds the value of a property that states a requirement.
	// It is the bound that publishers know for olm.constraint.
	maxRequirementBytes = 64 << 10
	// maxPropertyBytes bounds the value of any other property; one that is larger is
	// left out: what rules look at is small.
	maxPropertyBytes = 4 << 10
	// maxMessageBytes bounds the message of a deprecation, and what is wrong with a
	// package.
	maxMessageBytes = 8 << 10
)

// Limits bounds what one catalog may cost. A zero field stands for its default.
type Limits struct {
	// Content bounds the body as it is parsed, after any decompression.
	Content fbc.Limits
	// KeptBytes is the size of an index in memory in bytes, roughly.
	KeptBytes int64
	// AllKeptBytes is the size of the indexes of all catalogs in memory in bytes,
	// roughly, without those of at most SmallBytes.
	AllKeptBytes, SmallBytes int64
	// Items is the number of entries, skipped bundles, properties or deprecations
	// in one object.
	Items int
	// Idle is the longest time without any data from the server.
	Idle time.Duration
	// Total is the longest time from the request to the end of the body.
	Total time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Content.YAMLBytes = cmp.Or(l.Content.YAMLBytes, defaultYAMLBytes)
	l.Content = l.Content.WithDefaults()
	l.KeptBytes = cmp.Or(l.KeptBytes, defaultKeptBytes)
	l.AllKeptBytes = cmp.Or(l.AllKeptBytes, defaultAllKeptBytes)
	l.SmallBytes = cmp.Or(l.SmallBytes, defaultSmallBytes)
	l.Items = cmp.Or(l.Items, defaultItems)
	l.Idle = cmp.Or(l.Idle, defaultIdle)
	l.Total = cmp.Or(l.Total, defaultTotal)
	return l
}
