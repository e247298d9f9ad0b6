package chartrepo

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v2"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

const (
	// maxIndexValues bounds the bytes of an index that can start a value. The parser takes 150
	// bytes of memory for a value of two bytes. With 30,000 versions, an index has 2.4 million.
	maxIndexValues = 8 << 20

	// maxIndexError bounds what a message quotes of the parser, in bytes.
	maxIndexError = 300

	// maxIndexNames bounds the names of charts in a message, in bytes.
	maxIndexNames = 240
)

// index is the part of an index.yaml that locates archives.
type index struct {
	Entries map[string][]entry `yaml:"entries"`
}

// entry is a version of a chart.
type entry struct {
	Version string   `yaml:"version"`
	URLs    []string `yaml:"urls"`
	Digest  string   `yaml:"digest"`
}

// parseIndex reads an index.yaml, which may be JSON.
func parseIndex(content []byte) (index, error) {
	if maxValues(content) > maxIndexValues {
		return index{}, fmt.Errorf("it has more than %d values", maxIndexValues)
	}
	var parsed index
	if err := yaml.Unmarshal(content, &parsed); err != nil {
		return index{}, errors.New(excerpt.Line(err.Error(), maxIndexError))
	}
	if len(parsed.Entries) == 0 {
		return index{}, errors.New("it is no index of charts: it has no entries")
	}
	return parsed, nil
}

// maxValues returns an upper bound for the number of values, without parsing.
func maxValues(content []byte) (count int) {
	for _, separator := range []byte("\n\r,[{:-?") {
		count += bytes.Count(content, []byte{separator})
	}
	return count
}

// Range is a range of versions, as Helm reads it.
type Range struct {
	text    string
	allowed *semver.Constraints
}

// ParseRange reads a version or a range of versions, such as "1.2.3", "^1.2" or ">0-0". The empty
// text stands for all versions. A prerelease is in a range only if the range names a prerelease.
func ParseRange(text string) (Range, error) {
	constraint := text
	if text == "" {
		constraint = "*"
	}
	allowed, err := semver.NewConstraint(constraint)
	if err != nil {
		return Range{}, fmt.Errorf("%s is no range of versions: %w", excerpt.Quote(text), err)
	}
	return Range{text: text, allowed: allowed}, nil
}

// newest returns the newest version of a chart in a range. As with Helm, an entry whose version is
// the text of the range comes first, and entries without a semantic version are skipped.
// Of two entries with equal versions, the first one is returned.
func (i index) newest(name string, versions Range) (entry, error) {
	entries, isKnown := i.Entries[name]
	if !isKnown {
		return entry{}, fmt.Errorf("chart %s is not in the index, which has %s", excerpt.Quote(name), i.names())
	}
	if at := slices.IndexFunc(entries, func(e entry) bool { return e.Version == versions.text }); at >= 0 && versions.text != "" {
		return entries[at], nil
	}
	if found, isFound := newestOf(entries, versions.allowed.Check); isFound {
		return found, nil
	}
	last, isVersion := newestOf(entries, func(*semver.Version) bool { return true })
	if !isVersion {
		return entry{}, fmt.Errorf("chart %s has no semantic version", excerpt.Quote(name))
	}
	if versions.text == "" {
		return entry{}, fmt.Errorf("chart %s has prereleases only, the newest is %s. Name it with --version, or a range such as '>0-0'",
			excerpt.Quote(name), excerpt.Quote(last.Version))
	}
	return entry{}, fmt.Errorf("chart %s has no version in the range %s: the newest version is %s",
		excerpt.Quote(name), excerpt.Quote(versions.text), excerpt.Quote(last.Version))
}

func newestOf(entries []entry, allows func(*semver.Version) bool) (newest entry, isFound bool) {
	var highest *semver.Version
	for _, candidate := range entries {
		version, err := semver.NewVersion(candidate.Version)
		if err != nil || !allows(version) || highest != nil && !version.GreaterThan(highest) {
			continue
		}
		newest, highest = candidate, version
	}
	return newest, highest != nil
}

// names lists the charts of the index for a message.
func (i index) names() string {
	names := slices.Sorted(maps.Keys(i.Entries))
	for n, name := range names {
		names[n] = excerpt.Quote(name)
	}
	return excerpt.Of(names, maxIndexNames)
}
