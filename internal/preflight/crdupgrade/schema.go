package crdupgrade

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

type schema = apiextensionsv1.JSONSchemaProps

const (
	// root is the path of an object.
	root = "^"
	// maxDepth is how deep fields may be nested; real ones are by less than 30.
	maxDepth = 100
)

// walk compares two schemas of objects, field by field.
type walk struct {
	version string
	// ownStatus: the status is written apart from the object, by its controller.
	ownStatus bool
	report    func(Finding)
}

// place is where a schema is.
type place struct {
	path  string
	depth int
	// root: it is that of whole objects, which have their metadata.
	root bool
	// branch: it is below anyOf or the like, where fields are restricted that are
	// declared elsewhere.
	branch bool
}

// below keeps no more of the path than is told of it, even where the names of fields
// have control characters: each field has a copy.
func (p place) below(name string) place {
	path := p.path
	if len(path) < 4*maxPath {
		path += "." + name[:min(len(name), 4*maxPath)]
	}
	return place{path: path, depth: p.depth + 1, branch: p.branch}
}

func (w *walk) add(at place, c change) {
	w.report(Finding{Version: w.version, Path: at.path, Check: c.check, Detail: c.detail, Kind: c.kind})
}

// node compares what two schemas allow at a place.
func (w *walk) node(at place, old, newer *schema) {
	if at.depth > maxDepth {
		if canonical(old) != canonical(newer) {
			w.add(at, unhandled(fmt.Sprintf("nested more than %d deep", maxDepth)))
		}
		return
	}
	was, is := typeOf(old), typeOf(newer)
	if was != is && !widens(was, is) {
		w.add(at, tightening(checkType, fmt.Sprintf("%s : %q -> %q", property.ErrTypeChanged, was, is)))
		return
	}
	for _, change := range keywordChanges(old, newer) {
		w.add(at, change)
	}
	for _, change := range logicChanges(old, newer, at) {
		w.add(at, change)
	}
	w.properties(at, old, newer)
	w.additionalProperties(at, old, newer)
	w.items(at, old, newer)
}

// typeOf is the type that values have; empty: any.
func typeOf(s *schema) string {
	if s.XIntOrString {
		return "int-or-string"
	}
	return s.Type
}

// widens reports whether all values of one type have the other.
func widens(from, to string) bool {
	switch to {
	case "":
		return true
	case "number":
		return from == "integer"
	case "int-or-string":
		return from == "integer" || from == "string"
	}
	return false
}

// properties compares fields by name. A field of one side is held against what
// the other says about fields that it does not name.
func (w *walk) properties(at place, old, newer *schema) {
	names := slices.Collect(maps.Keys(old.Properties))
	for name := range newer.Properties {
		if _, ok := old.Properties[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		was, isOld := old.Properties[name]
		is, isNew := newer.Properties[name]
		switch {
		case implied(name) && (at.root || old.XEmbeddedResource && newer.XEmbeddedResource):
			w.implied(at.below(name), was, is)
		case isOld && isNew:
			w.node(at.below(name), &was, &is)
		case isOld:
			if rest := others(newer, at); rest != nil {
				w.node(at.below(name), &was, rest)
			} else {
				w.removed(at.below(name), &was)
			}
		default:
			// That anything is allowed no longer is said once, for all fields.
			if rest := others(old, at); rest != nil && (!preserves(old) || preserves(newer)) {
				w.node(at.below(name), rest, &is)
			}
		}
	}
}

// others is what values of fields have to be that s does not name; nil: they are
// dropped.
func others(s *schema, at place) *schema {
	switch {
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return s.AdditionalProperties.Schema
	case preserves(s), s.AdditionalProperties != nil && s.AdditionalProperties.Allows, at.branch:
		return &schema{XPreserveUnknownFields: new(true)}
	}
	return nil
}

func preserves(s *schema) bool { return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields }

// implied reports whether whole objects have the field without its being named.
func implied(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

// implied compares what is demanded of a field that is kept in any case.
func (w *walk) implied(at place, old, newer schema) {
	if old.Type == "" || newer.Type == "" {
		old.Type = cmp.Or(old.Type, newer.Type)
		newer.Type = old.Type
	}
	old.XPreserveUnknownFields, newer.XPreserveUnknownFields = new(true), new(true)
	w.node(at, &old, &newer)
}

// removed says that a field is gone; what is below it goes without saying.
func (w *walk) removed(at place, old *schema) {
	detail := fmt.Sprintf("removed field : %s.%s", w.version, at.path)
	if n := countFields(old, at.depth); n > 0 {
		detail += fmt.Sprintf(" (with %d below it)", n)
	}
	kind := NeedsData
	if w.ownStatus && (at.path == root+".status" || strings.HasPrefix(at.path, root+".status.")) {
		kind = Note
	}
	w.add(at, change{kind: kind, check: checkFieldRemoval, detail: detail})
}

func countFields(s *schema, depth int) int {
	if depth > maxDepth {
		return 0
	}
	count := len(s.Properties)
	for _, field := range s.Properties {
		count += countFields(&field, depth+1)
	}
	if s.Items != nil && s.Items.Schema != nil {
		count += countFields(s.Items.Schema, depth+1)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		count += countFields(s.AdditionalProperties.Schema, depth+1)
	}
	return count
}

// additionalProperties compares what may be in fields that have no name.
func (w *walk) additionalProperties(at place, old, newer *schema) {
	if preserves(old) && !preserves(newer) && !at.branch {
		w.add(at, unhandled("x-kubernetes-preserve-unknown-fields: true -> false"))
		return
	}
	was, is := others(old, at), others(newer, at)
	below := at.below("additionalProperties")
	switch {
	case was == nil:
	case is == nil:
		w.removed(below, was)
	case newer.AdditionalProperties != nil && newer.AdditionalProperties.Schema != nil:
		w.node(below, was, is)
	}
}

// items compares what may be in lists.
func (w *walk) items(at place, old, newer *schema) {
	if newer.Items == nil || newer.Items.Schema == nil {
		return
	}
	was := &schema{XPreserveUnknownFields: new(true)}
	if old.Items != nil && old.Items.Schema != nil {
		was = old.Items.Schema
	}
	w.node(at.below("items"), was, newer.Items.Schema)
}
