package fbc

import (
	"cmp"
	"fmt"
)

// Default bounds. Catalogs of several hundred packages, with rendered manifests
// inside, weigh some 200 MB in 20,000 objects of at most a few megabytes.
const (
	defaultStreamBytes = 2 << 30
	defaultObjectBytes = 16 << 20
	defaultYAMLBytes   = 4 << 20
	defaultObjects     = 1_000_000
	defaultKeys        = 1000
	defaultNesting     = 256
	// defaultValues is that of a channel of 5,000 bundles that skip 20 each, twice. Who
	// decodes an object takes some 300 bytes for each of them.
	defaultValues    = 250_000
	defaultNameBytes = 1024
)

// Default bounds on folders. Catalogs have ten thousand files, and one or two
// patterns in an .indexignore file, if any.
const (
	defaultFiles        = 50_000
	defaultEntries      = 200_000
	defaultDepth        = 64
	defaultIgnoreBytes  = 64 << 10
	defaultPatterns     = 1000
	defaultPatternBytes = 1 << 10
	// defaultMatching lets 200 bytes of patterns meet 50,000 paths of 100 bytes. All
	// of it takes some seconds.
	defaultMatching = 1 << 30
)

// Limits bounds one stream. A zero field stands for its default.
type Limits struct {
	// StreamBytes is the size of the whole stream in bytes.
	StreamBytes int64
	// ObjectBytes is the size of one object or document in bytes.
	ObjectBytes int
	// YAMLBytes is the size of one YAML document in bytes, where that is less:
	// decoding one may take more than a hundred times its size in memory.
	YAMLBytes int
	// Objects is the number of objects in the stream.
	Objects int
	// Keys is the number of top-level keys of one object.
	Keys int
	// Nesting is the depth of objects and arrays within one object.
	Nesting int
	// Values is the number of values within one object, those in others too. Of YAML
	// it is what separates them: dashes, colons and commas, in texts as well.
	Values int
	// NameBytes is the length of a schema, package or object name, and of a
	// top-level key, in bytes.
	NameBytes int
}

// WithDefaults returns l with every zero field replaced by its default.
func (l Limits) WithDefaults() Limits {
	l.StreamBytes = cmp.Or(l.StreamBytes, defaultStreamBytes)
	l.ObjectBytes = cmp.Or(l.ObjectBytes, defaultObjectBytes)
	l.YAMLBytes = cmp.Or(l.YAMLBytes, defaultYAMLBytes)
	l.Objects = cmp.Or(l.Objects, defaultObjects)
	l.Keys = cmp.Or(l.Keys, defaultKeys)
	l.Nesting = cmp.Or(l.Nesting, defaultNesting)
	l.Values = cmp.Or(l.Values, defaultValues)
	l.NameBytes = cmp.Or(l.NameBytes, defaultNameBytes)
	return l
}

// WalkLimits bounds the way through a folder. A zero field stands for its default.
type WalkLimits struct {
	// Files is the number of files that are not excluded.
	Files int
	// Entries is the number of files and folders, excluded or not.
	Entries int
	// Depth is the number of names in a path.
	Depth int
	// IgnoreBytes is the size of all .indexignore files in bytes.
	IgnoreBytes int
	// Patterns is the number of patterns in all .indexignore files.
	Patterns int
	// PatternBytes is the length of one pattern in bytes.
	PatternBytes int
	// Matching is the work of matching: the bytes of all patterns, with those of
	// the folders they hold for, times the bytes of all paths of files.
	Matching int64
}

func (l WalkLimits) withDefaults() WalkLimits {
	return WalkLimits{
		Files:        cmp.Or(l.Files, defaultFiles),
		Entries:      cmp.Or(l.Entries, defaultEntries),
		Depth:        cmp.Or(l.Depth, defaultDepth),
		IgnoreBytes:  cmp.Or(l.IgnoreBytes, defaultIgnoreBytes),
		Patterns:     cmp.Or(l.Patterns, defaultPatterns),
		PatternBytes: cmp.Or(l.PatternBytes, defaultPatternBytes),
		Matching:     cmp.Or(l.Matching, defaultMatching),
	}
}

// LimitError says that content is larger than its reader allows.
type LimitError struct {
	// What is the thing that is too large, with its unit, such as "object bytes".
	What string
	// Limit is the largest allowed value of it.
	Limit int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s exceed the limit of %d", e.What, e.Limit)
}
