package mirrorset

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.podman.io/image/v5/docker/reference"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Kind says which pulls the mirrors of a set are for.
type Kind string

// The kinds of sets.
const (
	Digests Kind = "ImageDigestMirrorSet"
	Tags    Kind = "ImageTagMirrorSet"
)

const (
	// maxEntries bounds the sources of one set. Those that tools write have a tenth of it.
	maxEntries = 1_000
	// maxName bounds a source or a mirror in bytes: that of a repository has 255 at most, and
	// that of a host as many.
	maxName = 512
	// maxText bounds what is said of one set, in bytes.
	maxText = 768
)

// Set is what a mirror set says, as far as it can be used.
type Set struct {
	Kind    Kind
	Name    string
	UID     types.UID
	Entries []Entry

	// Problems say what of the set is not used.
	Problems []string
}

// Entry has the mirrors of a source: a host, "*." and a domain, or a repository or what is
// above some.
type Entry struct {
	Source  string
	Mirrors []string
	// Never says that the source itself is not to be asked.
	Never bool
}

// field is where an object of the kind has its entries.
func (k Kind) field() string {
	if k == Tags {
		return "imageTagMirrors"
	}
	return "imageDigestMirrors"
}

// setOf reads an object. Entries and mirrors that cannot be used are left out.
func setOf(kind Kind, object *unstructured.Unstructured) Set {
	set := Set{Kind: kind, Name: object.GetName(), UID: object.GetUID()}
	entries, found, err := unstructured.NestedFieldNoCopy(object.Object, "spec", kind.field())
	list, isList := entries.([]any)
	if found && entries != nil && !isList || err != nil {
		set.Problems = append(set.Problems, fmt.Sprintf("spec.%s is no list", kind.field()))
	}
	if len(list) > maxEntries {
		set.Problems = append(set.Problems, fmt.Sprintf("it has %d entries, and only the first %d are used", len(list), maxEntries))
		list = list[:maxEntries]
	}
	for i, item := range list {
		entry, problems := entryOf(item)
		for _, problem := range problems {
			set.Problems = append(set.Problems, fmt.Sprintf("%s[%d]: %s", kind.field(), i, problem))
		}
		if entry.Source != "" {
			set.Entries = append(set.Entries, entry)
		}
	}
	return set
}

// entryOf reads one entry, which has no source if nothing of it can be used.
func entryOf(item any) (Entry, []string) {
	fields, isObject := item.(map[string]any)
	if !isObject {
		return Entry{}, []string{"it is no object"}
	}
	source, _ := fields["source"].(string)
	if err := checkSource(source); err != nil {
		return Entry{}, []string{fmt.Sprintf("source %s: %s", excerpt.Quote(source), err)}
	}
	entry := Entry{Source: source}
	switch policy, given := fields["mirrorSourcePolicy"]; policy {
	case nil, "", "AllowContactingSource":
	case "NeverContactSource":
		entry.Never = true
	default:
		if given {
			return Entry{}, []string{"mirrorSourcePolicy is neither AllowContactingSource nor NeverContactSource"}
		}
	}
	var problems []string
	mirrors, isList := fields["mirrors"].([]any)
	if !isList && fields["mirrors"] != nil {
		problems = append(problems, "mirrors is no list")
	}
	if len(mirrors) > maxMirrors {
		problems = append(problems, fmt.Sprintf("it has %d mirrors, and only the first %d are used", len(mirrors), maxMirrors))
		mirrors = mirrors[:maxMirrors]
	}
	for _, item := range mirrors {
		mirror, _ := item.(string)
		if err := checkLocation(mirror); err != nil {
			problems = append(problems, fmt.Sprintf("mirror %s: %s", excerpt.Quote(mirror), err))
			continue
		}
		entry.Mirrors = append(entry.Mirrors, mirror)
	}
	return entry, problems
}

var (
	domain = regexp.MustCompile("^" + reference.DomainRegexp.String() + "$")

	errLong     = fmt.Errorf("it is longer than %d bytes", maxName)
	errLocation = errors.New("it is neither a host nor a repository of one")
	errWildcard = errors.New(`"*." comes before a domain, without a port or a path`)
)

// checkSource takes what registries.conf takes as a prefix.
func checkSource(source string) error {
	below, isWildcard := strings.CutPrefix(source, "*.")
	if !isWildcard {
		return checkLocation(source)
	}
	if err := checkLocation(below); err != nil {
		return err
	}
	if strings.ContainsAny(below, "/:") {
		return errWildcard
	}
	return nil
}

// checkLocation takes a host, with a port or not, and what comes of it and a path. A
// location that this refuses could make every pull fail, also those it is not about:
// registries.conf is accepted or refused as a whole.
func checkLocation(location string) error {
	if len(location) > maxName {
		return errLong
	}
	if domain.MatchString(location) {
		return nil
	}
	named, err := reference.ParseNamed(location)
	if err != nil || !reference.IsNameOnly(named) || named.String() != location {
		return errLocation
	}
	return nil
}
