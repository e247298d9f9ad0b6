package catalogclient

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// The types of properties by which a bundle states what it needs, and what it
// provides.
const (
	propertyPackageRequired = "olm.package.required"
	propertyGVKRequired     = "olm.gvk.required"
	propertyConstraint      = "olm.constraint"
	propertyMaxOpenShift    = "olm.maxOpenShiftVersion"
	propertyGVK             = "olm.gvk"
)

// The types of properties that are not kept: the version and the lowest version
// of Kubernetes are taken out of them, and rendered manifests and CSV metadata
// make up nearly all of a catalog's size.
const (
	propertyPackage      = "olm.package"
	propertyCSVMetadata  = "olm.csv.metadata"
	propertyBundleObject = "olm.bundle.object"
)

// decodeProperties sets what b has of the properties in list.
func decodeProperties(b *resolve.Bundle, list []byte, n *items) error {
	b.Version, b.Facts = "", nil
	var facts resolve.Facts
	versioned, described := false, false
	err := n.decode(list, func(item []byte) error {
		kind, value, err := decodeProperty(item, n.names)
		if err != nil {
			return err
		}
		switch kind {
		case propertyBundleObject:
		case propertyPackage:
			if !versioned {
				b.Version, versioned = versionOf(value), true
			}
			if len(b.Version) > maxVersionBytes {
				return fmt.Errorf("key %q: %w", "version", tooLong(maxVersionBytes))
			}
		case propertyCSVMetadata:
			if !described {
				facts.MinKubeVersion, described = minKubeVersionOf(value), true
			}
		default:
			return addProperty(&facts, kind, value)
		}
		return nil
	})
	if facts.MinKubeVersion != "" || len(facts.Properties) > 0 {
		b.Facts = &facts
	}
	return err
}

// addProperty adds a property to facts. One that states no requirement is left out if it is too
// large.
func addProperty(f *resolve.Facts, kind string, value []byte) error {
	compacted := compact(value)
	switch kind {
	case propertyPackageRequired, propertyGVKRequired, propertyConstraint, propertyMaxOpenShift, requirement.KubeVersion:
		if len(compacted) > maxRequirementBytes {
			return fmt.Errorf("type %q: %w", kind, tooLong(maxRequirementBytes))
		}
	default:
		if len(compacted) > maxPropertyBytes {
			return nil
		}
	}
	f.Properties = append(f.Properties, &requirement.Property{Type: kind, Value: compacted})
	return nil
}

// decodeProperty decodes the type of a property, of at most limit bytes, but not its
// value.
func decodeProperty(item []byte, limit int) (string, []byte, error) {
	var kind string
	var raw []byte
	err := decodeFields(item, func(key string, value []byte) error {
		switch {
		case strings.EqualFold(key, "type"):
			return decodeText(value, limit, &kind)
		case strings.EqualFold(key, "value"):
			raw = value
		}
		return nil
	})
	return kind, raw, err
}

// versionOf returns the version in the value of an olm.package property.
func versionOf(value []byte) string {
	var property struct {
		Version string `json:"version"`
	}
	// Whether a bundle without version matters is for resolution to say.
	if err := json.Unmarshal(value, &property); err != nil {
		return ""
	}
	return property.Version
}

// minKubeVersionOf returns the minKubeVersion in the value of an olm.csv.metadata
// property, or "". It decodes nothing else, since there may be megabytes. What is too
// long for a version is none, as is what cannot be read as one.
func minKubeVersionOf(value []byte) string {
	if fbc.KindOf(value) != fbc.Map {
		return ""
	}
	found := ""
	for key, field := range fbc.Fields(value) {
		if !strings.EqualFold(key, "minKubeVersion") {
			continue
		}
		if err := decodeText(field, maxVersionBytes, &found); err != nil {
			return ""
		}
	}
	return found
}

// compact returns value, which is valid JSON or nil, without space and in
// memory of its own.
func compact(value []byte) json.RawMessage {
	if value == nil {
		return nil
	}
	var b bytes.Buffer
	b.Grow(len(value))
	// The value was validated with the object it is from.
	if err := json.Compact(&b, value); err != nil {
		return bytes.Clone(value)
	}
	return b.Bytes()
}

// sharedFacts are the facts of one package, and the properties in them, once each:
// the next version of a bundle mostly has those of the one before. Packages share
// nothing, so that one may change without the others.
type sharedFacts struct {
	facts      map[sum]*resolve.Facts
	properties map[sum]*requirement.Property
}

// sum identifies what is too long for a key.
type sum = [sha256.Size]byte

// keepFacts returns facts in memory that is shared with equal facts of the package.
func (b *builder) keepFacts(p *sharedFacts, facts *resolve.Facts) *resolve.Facts {
	if facts == nil {
		return nil
	}
	if p.facts == nil {
		p.facts, p.properties = map[sum]*resolve.Facts{}, map[sum]*requirement.Property{}
	}
	sums := make([]sum, len(facts.Properties))
	whole := sha256.New()
	for i, property := range facts.Properties {
		sums[i] = sumOf(property)
		whole.Write(sums[i][:])
	}
	whole.Write([]byte(facts.MinKubeVersion))
	key := sum(whole.Sum(nil))
	if kept, ok := p.facts[key]; ok {
		return kept
	}
	kept := &resolve.Facts{MinKubeVersion: b.keep(facts.MinKubeVersion), Properties: exactly(facts.Properties)}
	for i, property := range facts.Properties {
		kept.Properties[i] = b.keepProperty(p, sums[i], property)
	}
	p.facts[key] = kept
	b.kept += entryOverhead
	return kept
}

func (b *builder) keepProperty(p *sharedFacts, key sum, property *requirement.Property) *requirement.Property {
	// A copy on disk has it in all the facts that it is in.
	b.kept += entryOverhead + int64(len(property.Value))
	kept, ok := p.properties[key]
	if !ok {
		kept = &requirement.Property{Type: b.keep(property.Type), Value: bytes.Clone(property.Value)}
		p.properties[key] = kept
	}
	return kept
}

// sumOf tells properties apart that differ in anything.
func sumOf(p *requirement.Property) sum {
	text := make([]byte, 0, binary.MaxVarintLen64+len(p.Type)+len(p.Value))
	text = binary.AppendUvarint(text, uint64(len(p.Type)))
	text = append(text, p.Type...)
	// No JSON value is empty: without one there is none.
	return sha256.Sum256(append(text, p.Value...))
}
