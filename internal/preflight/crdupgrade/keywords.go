package crdupgrade

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

// change is a finding without its place.
type change struct {
	kind          Kind
	check, detail string
}

func tightening(check, detail string) change {
	return change{kind: NeedsData, check: check, detail: detail}
}

// unhandled is a tightening of a keyword for which there is no check.
func unhandled(detail string) change {
	return tightening(checkUnhandled, "unhandled changes found ("+detail+")")
}

// bounds are those comparisons of crdify whose every finding is a tightening.
var bounds = enforced(
	&property.Enum{EnumConfig: property.EnumConfig{AdditionPolicy: property.AdditionPolicyAllow}},
	&property.Maximum{}, &property.MaxItems{}, &property.MaxLength{}, &property.MaxProperties{},
	&property.Minimum{}, &property.MinItems{}, &property.MinLength{}, &property.MinProperties{},
)

// comparator is a check of crdify.
type comparator interface {
	validations.Validation
	validations.Comparator[schema]
}

func enforced(all ...comparator) []comparator {
	for _, c := range all {
		c.SetEnforcement(config.EnforcementPolicyError)
	}
	return all
}

var defaults = enforced(&property.Default{})

// keywordChanges compares the keywords of two schemas that are about the value
// itself.
func keywordChanges(old, newer *schema) []change {
	a, b := spelled(old), spelled(newer)
	var found []change
	if len(b.Enum) == 0 {
		a.Enum = nil // Dropping it allows more.
	}
	// Comparators clear what they have compared, so that the copies are used up.
	for _, c := range bounds {
		for _, text := range c.Compare(a, b).Errors {
			found = append(found, tightening(c.Name(), text))
		}
	}
	for _, c := range defaults {
		for _, text := range c.Compare(a, b).Errors {
			found = append(found, change{kind: Note, check: c.Name(), detail: text})
		}
	}
	for _, compare := range []func(old, newer *schema) []change{
		requiredChanges, patternChanges, nullableChanges, exclusiveChanges, multipleChanges, formatChanges,
		ruleChanges, listChanges, extensionChanges, otherChanges,
	} {
		found = append(found, compare(old, newer)...)
	}
	return found
}

// spelled is a copy of what crdify compares, written in one way only.
func spelled(s *schema) *schema {
	c := &schema{
		Maximum: s.Maximum, MaxItems: s.MaxItems, MaxLength: s.MaxLength, MaxProperties: s.MaxProperties,
		Minimum: s.Minimum, MinItems: aboveZero(s.MinItems), MinLength: aboveZero(s.MinLength), MinProperties: aboveZero(s.MinProperties),
	}
	if s.Default != nil {
		c.Default = &apiextensionsv1.JSON{Raw: compact(s.Default.Raw)}
	}
	for _, value := range s.Enum {
		c.Enum = append(c.Enum, apiextensionsv1.JSON{Raw: compact(value.Raw)})
	}
	return c
}

// aboveZero leaves out a bound that nothing breaks.
func aboveZero(bound *int64) *int64 {
	if bound != nil && *bound <= 0 {
		return nil
	}
	return bound
}

// compact writes JSON in one way only, and leaves alone what is none.
func compact(raw []byte) []byte {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return raw
	}
	text, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return text
}

// requiredChanges leaves out fields with a default, which no object lacks.
func requiredChanges(old, newer *schema) []change {
	names := slices.DeleteFunc(missing(newer.Required, old.Required), func(name string) bool {
		return newer.Properties[name].Default != nil
	})
	if len(names) == 0 {
		return nil
	}
	return []change{tightening(checkRequired, fmt.Sprintf("%s: %v", property.ErrNewRequiredFields, names))}
}

func patternChanges(old, newer *schema) []change {
	switch {
	case old.Pattern == newer.Pattern, newer.Pattern == "":
		return nil
	case old.Pattern == "":
		return []change{tightening(checkPattern, fmt.Sprintf("pattern added : %q -> %q", "", newer.Pattern))}
	}
	return []change{tightening(checkPattern, fmt.Sprintf("pattern changed : %q -> %q", old.Pattern, newer.Pattern))}
}

// nullableChanges takes a schema without a type as one that allows null.
func nullableChanges(old, newer *schema) []change {
	if old.Nullable && !newer.Nullable && typeOf(newer) != "" {
		return []change{tightening(checkNullable, "nullable removed : true -> false")}
	}
	return nil
}

// exclusiveChanges is about bounds that stay what they are.
func exclusiveChanges(old, newer *schema) []change {
	var found []change
	if newer.ExclusiveMaximum && !old.ExclusiveMaximum && same(old.Maximum, newer.Maximum) {
		found = append(found, unhandled("exclusiveMaximum: false -> true"))
	}
	if newer.ExclusiveMinimum && !old.ExclusiveMinimum && same(old.Minimum, newer.Minimum) {
		found = append(found, unhandled("exclusiveMinimum: false -> true"))
	}
	return found
}

func same(a, b *float64) bool { return a != nil && b != nil && *a == *b }

func multipleChanges(old, newer *schema) []change {
	if newer.MultipleOf == nil {
		return nil
	}
	from := "none"
	if old.MultipleOf != nil {
		if *old.MultipleOf == *newer.MultipleOf || math.Mod(*old.MultipleOf, *newer.MultipleOf) == 0 {
			return nil
		}
		from = number(*old.MultipleOf)
	}
	return []change{unhandled(fmt.Sprintf("multipleOf: %s -> %s", from, number(*newer.MultipleOf)))}
}

func number(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

// formatChanges leaves out the formats of numbers that all numbers of an API
// have.
func formatChanges(old, newer *schema) []change {
	switch newer.Format {
	case old.Format, "", "int64", "double":
		return nil
	}
	return []change{unhandled(fmt.Sprintf("format: %q -> %q", old.Format, newer.Format))}
}

// ruleChanges compares rules in CEL by what they demand, not by what they say to
// those who break them.
func ruleChanges(old, newer *schema) []change {
	type demand struct {
		rule     string
		optional bool
	}
	known := map[demand]bool{}
	for _, rule := range old.XValidations {
		known[demand{rule.Rule, optional(rule)}] = true
	}
	var found []change
	for _, rule := range newer.XValidations {
		if !known[demand{rule.Rule, optional(rule)}] {
			found = append(found, unhandled(fmt.Sprintf("x-kubernetes-validations: rule added : %q", rule.Rule)))
		}
	}
	return found
}

func optional(r apiextensionsv1.ValidationRule) bool {
	return r.OptionalOldSelf != nil && *r.OptionalOldSelf
}

// listChanges compares what lists and maps are to server-side apply. Only sets
// and maps refuse what is twice in them.
func listChanges(old, newer *schema) []change {
	var found []change
	was, is := text(old.XListType, "atomic"), text(newer.XListType, "atomic")
	switch detail := fmt.Sprintf("x-kubernetes-list-type: %q -> %q", was, is); {
	case was == is:
	case is == "atomic":
		found = append(found, change{kind: Note, check: checkUnhandled, detail: "unhandled changes found (" + detail + ")"})
	default:
		found = append(found, unhandled(detail))
	}
	if was, is := sorted(old.XListMapKeys), sorted(newer.XListMapKeys); len(was) > 0 && len(is) > 0 && !slices.Equal(was, is) {
		found = append(found, unhandled(fmt.Sprintf("x-kubernetes-list-map-keys: %v -> %v", was, is)))
	}
	if was, is := text(old.XMapType, "granular"), text(newer.XMapType, "granular"); was != is {
		detail := fmt.Sprintf("unhandled changes found (x-kubernetes-map-type: %q -> %q)", was, is)
		found = append(found, change{kind: Note, check: checkUnhandled, detail: detail})
	}
	return found
}

func text(value *string, otherwise string) string {
	if value == nil {
		return otherwise
	}
	return *value
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func extensionChanges(old, newer *schema) []change {
	if old.XEmbeddedResource == newer.XEmbeddedResource {
		return nil
	}
	return []change{unhandled(fmt.Sprintf("x-kubernetes-embedded-resource: %t -> %t", old.XEmbeddedResource, newer.XEmbeddedResource))}
}

// otherChanges is about keywords that an API server takes in no definition of
// today, but may still have in one of before.
func otherChanges(old, newer *schema) []change {
	var found []change
	if newer.UniqueItems && !old.UniqueItems {
		found = append(found, unhandled("uniqueItems: false -> true"))
	}
	for _, keyword := range []struct {
		name       string
		was, is    any
		restricted bool
	}{
		{"$ref", old.Ref, newer.Ref, newer.Ref != nil},
		{"patternProperties", old.PatternProperties, newer.PatternProperties, len(newer.PatternProperties) > 0},
		{"dependencies", old.Dependencies, newer.Dependencies, len(newer.Dependencies) > 0},
		{"definitions", old.Definitions, newer.Definitions, len(newer.Definitions) > 0},
		{"additionalItems", old.AdditionalItems, newer.AdditionalItems, newer.AdditionalItems != nil},
		{"items", tuple(old), tuple(newer), len(tuple(newer)) > 0},
	} {
		if keyword.restricted && !reflect.DeepEqual(keyword.was, keyword.is) {
			found = append(found, unhandled(keyword.name+" changed"))
		}
	}
	return found
}

func tuple(s *schema) []schema {
	if s.Items == nil {
		return nil
	}
	return s.Items.JSONSchemas
}
