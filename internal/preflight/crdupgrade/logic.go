package crdupgrade

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// logicChanges compares how schemas are combined of others: branches.
func logicChanges(old, newer *schema, at place) []change {
	var found []change
	if added := without(branches(newer, newer.AllOf), branches(old, old.AllOf)); len(added) > 0 {
		found = append(found, unhandled("allOf: added "+list(added)))
	}
	found = append(found, anyOfChanges(branches(old, old.AnyOf), branches(newer, newer.AnyOf), at)...)
	found = append(found, oneOfChanges(branches(old, old.OneOf), branches(newer, newer.OneOf))...)
	if newer.Not != nil && (old.Not == nil || canonical(old.Not) != canonical(newer.Not)) {
		found = append(found, unhandled("not: "+canonical(newer.Not)))
	}
	return found
}

// branch is one of the schemas that a schema is combined of.
type branch struct {
	schema *schema
	text   string
}

func branches(parent *schema, all []schema) []branch {
	var kept []branch
	for i := range all {
		if !sayIntOrString(parent, &all[i], all) {
			kept = append(kept, branch{&all[i], canonical(&all[i])})
		}
	}
	return kept
}

// sayIntOrString reports whether a branch only repeats that the value is an
// integer or a string.
func sayIntOrString(parent, s *schema, siblings []schema) bool {
	if !parent.XIntOrString {
		return false
	}
	both := func(all []schema) bool {
		return len(all) == 2 && all[0].Type == "integer" && all[1].Type == "string"
	}
	return both(siblings) && s.Type != "" || both(s.AnyOf)
}

// without are those of all that are not among others.
func without(all, others []branch) []branch {
	known := map[string]bool{}
	for _, b := range others {
		known[b.text] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(b branch) bool { return known[b.text] })
}

func list(all []branch) string {
	texts := make([]string, len(all))
	for i, b := range all {
		texts[i] = b.text
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// anyOfChanges finds branches that fewer values match than before. A branch that
// changed has its successor at its place among those that did.
func anyOfChanges(old, newer []branch, at place) []change {
	switch {
	case len(newer) == 0:
		return nil
	case len(old) == 0:
		return []change{unhandled("anyOf: constraint added : " + list(newer))}
	}
	gone, added := without(old, newer), without(newer, old)
	gone = slices.DeleteFunc(gone, func(b branch) bool {
		if len(added) == 0 {
			return false
		}
		successor := added[0]
		added = added[1:]
		return !narrows(at, b.schema, successor.schema)
	})
	if len(gone) == 0 {
		return nil
	}
	return []change{unhandled("anyOf: removed or narrowed " + list(gone))}
}

// narrows reports whether values may match old and not newer, both branches.
func narrows(at place, old, newer *schema) bool {
	narrower := false
	w := &walk{report: func(f Finding) { narrower = narrower || f.Kind == NeedsData }}
	w.node(place{path: at.path, depth: at.depth + 1, branch: true}, old, newer)
	return narrower
}

// oneOfChanges takes any other set of branches as narrower: one more can match
// what only another did.
func oneOfChanges(old, newer []branch) []change {
	switch {
	case len(newer) == 0:
		return nil
	case len(old) == 0:
		return []change{tightening(checkOneOf, "oneOf constraint added when there was none previously : "+list(newer))}
	}
	var found []change
	if added := without(newer, old); len(added) > 0 {
		found = append(found, tightening(checkOneOf, "allowed oneOf schemas added : "+list(added)))
	}
	if gone := without(old, newer); len(gone) > 0 {
		found = append(found, tightening(checkOneOf, "allowed oneOf schemas removed : "+list(gone)))
	}
	return found
}

// canonical is a schema as JSON without what does not restrict values. It is the
// same for schemas that are written the same but for the order of keys.
func canonical(s *schema) string {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Sprintf("%+v", s)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return string(raw)
	}
	restrictions(value)
	if raw, err = json.Marshal(value); err != nil {
		return fmt.Sprintf("%+v", s)
	}
	return string(raw)
}

// restrictions takes what restricts nothing out of a schema.
func restrictions(value any) {
	keywords, ok := value.(map[string]any)
	if !ok {
		return
	}
	for _, name := range []string{"title", "description", "example", "externalDocs", "default", "id", "$schema"} {
		delete(keywords, name)
	}
	for _, name := range []string{"items", "not", "additionalProperties", "additionalItems"} {
		restrictions(keywords[name])
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		branches, _ := keywords[name].([]any)
		for _, branch := range branches {
			restrictions(branch)
		}
	}
	for _, name := range []string{"properties", "patternProperties", "definitions"} {
		fields, _ := keywords[name].(map[string]any)
		for _, field := range fields {
			restrictions(field)
		}
	}
}
