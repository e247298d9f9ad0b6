package crdupgrade_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
)

// definition is one with a spec in YAML.
func definition(tb testing.TB, spec string) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "things.p.test"
	if err := yaml.UnmarshalStrict([]byte(spec), &crd.Spec); err != nil {
		tb.Fatalf("%v in\n%s", err, spec)
	}
	return crd
}

// withField is a definition of one version with spec.x as given.
func withField(tb testing.TB, schema string) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	return definition(tb, fmt.Sprintf(`{scope: Namespaced, names: {kind: Thing}, versions: [{name: v1, served: true, storage: true,
schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {x: %s}}}}}}]}`, schema))
}

// said are kinds and lines of findings without what they have in common.
func said(found []crdupgrade.Finding) []string {
	lines := make([]string, len(found))
	for i, f := range found {
		line := strings.TrimPrefix(f.String(), `validating upgrade for CRD "things.p.test": `)
		lines[i] = string(f.Kind) + " " + strings.TrimPrefix(line, "v1: ^.spec.x")
	}
	return lines
}

func TestFields(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		old, newer string
		want       []string
		reason     string
	}{
		"the same": {"{type: string, enum: [a]}", "{type: string, enum: [a]}", nil, ""},
		"metadata": {
			"{type: string}", "{type: string, title: T, description: D, example: a, externalDocs: {url: u}}", nil,
			"they restrict nothing",
		},
		"type": {"{type: string}", "{type: object, required: [a]}", []string{`NeedsData : type: type changed : "string" -> "object"`}, "all else follows"},
		"type widened": {
			"{type: integer}", "{type: number}", nil, "",
		},
		"type narrowed": {"{type: number}", "{type: integer}", []string{`NeedsData : type: type changed : "number" -> "integer"`}, ""},
		"int or string": {
			"{type: string}", "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", nil,
			"strings stay valid",
		},
		"int or string with a pattern": {
			"{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}",
			"{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], pattern: ^a}",
			[]string{`NeedsData : pattern: pattern added : "" -> "^a"`},
			"",
		},
		"int or string no more": {
			"{x-kubernetes-int-or-string: true}", "{type: string}", []string{`NeedsData : type: type changed : "int-or-string" -> "string"`}, "",
		},
		"anything goes": {"{type: object, properties: {a: {type: string}}, required: [a]}", "{x-kubernetes-preserve-unknown-fields: true}", nil, ""},
		"anything no more": {
			"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, properties: {a: {type: string}}}",
			[]string{`NeedsData : unhandled: unhandled changes found (x-kubernetes-preserve-unknown-fields: true -> false)`},
			"",
		},
		"a field where anything was": {
			"{type: object, x-kubernetes-preserve-unknown-fields: true}",
			"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}",
			[]string{`NeedsData .a: type: type changed : "" -> "string"`},
			"stored objects may have another type there",
		},
		"required": {
			"{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}, required: [c]}",
			"{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}, required: [b, a]}",
			[]string{"NeedsData : required: new required fields: [a b]"},
			"sorted, in one line; c is loosened",
		},
		"required with a default": {
			"{type: object, properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string, default: z}}, required: [a]}",
			[]string{`Note .a: default: default added when there was none previously : "\"z\""`},
			"stored objects are read with it",
		},
		"required below a new field": {
			"{type: object}", "{type: object, properties: {a: {type: object, properties: {b: {type: string}}, required: [b]}}}", nil,
			"no stored object has the field",
		},
		"default changed": {
			"{type: string, default: a}", "{type: string, default: b}",
			[]string{`Note : default: default value changed : "\"a\"" -> "\"b\""`},
			"",
		},
		"default written otherwise": {
			`{type: object, default: {"a": 1, "b": 2}}`, `{type: object, default: {"b": 2, "a": 1}}`, nil, "",
		},
		"enum":         {"{type: string, enum: [a, b]}", "{type: string, enum: [b, c]}", []string{`NeedsData : enum: allowed enum values removed : ["a"]`}, ""},
		"enum widened": {"{type: string, enum: [a]}", "{type: string, enum: [b, a]}", nil, ""},
		"enum dropped": {"{type: string, enum: [a]}", "{type: string}", nil, ""},
		"enum added": {
			"{type: string}", "{type: string, enum: [a]}",
			[]string{`NeedsData : enum: enum constraint added when there was none previously : ["a"]`},
			"",
		},
		"bounds tightened": {
			"{type: string, maxLength: 9, minLength: 1}", "{type: string, maxLength: 3, minLength: 2}",
			[]string{"NeedsData : maxLength: maximum decreased : 9 -> 3", "NeedsData : minLength: minimum increased : 1 -> 2"},
			"",
		},
		"bounds added": {
			"{type: integer}", "{type: integer, maximum: 3, minimum: 1}",
			[]string{
				"NeedsData : maximum: maximum constraint added when there was none previously : 3",
				"NeedsData : minimum: minimum constraint added when there was none previously : 1",
			},
			"",
		},
		"bounds loosened":  {"{type: array, items: {type: string}, maxItems: 1, minItems: 2}", "{type: array, items: {type: string}, maxItems: 2}", nil, ""},
		"bounds that hold": {"{type: object}", "{type: object, minProperties: 0}", nil, "nothing has fewer"},
		"exclusive": {
			"{type: integer, maximum: 3, minimum: 1}", "{type: integer, maximum: 3, exclusiveMaximum: true, minimum: 1, exclusiveMinimum: true}",
			[]string{
				"NeedsData : unhandled: unhandled changes found (exclusiveMaximum: false -> true)",
				"NeedsData : unhandled: unhandled changes found (exclusiveMinimum: false -> true)",
			},
			"",
		},
		"multiple": {
			"{type: integer, multipleOf: 4}", "{type: integer, multipleOf: 3}",
			[]string{"NeedsData : unhandled: unhandled changes found (multipleOf: 4 -> 3)"},
			"",
		},
		"multiple loosened": {"{type: integer, multipleOf: 4}", "{type: integer, multipleOf: 2}", nil, ""},
		"multiple added":    {"{type: integer}", "{type: integer, multipleOf: 2}", []string{"NeedsData : unhandled: unhandled changes found (multipleOf: none -> 2)"}, ""},
		"unique":            {"{type: array, items: {type: string}}", "{type: array, items: {type: string}, uniqueItems: true}", []string{"NeedsData : unhandled: unhandled changes found (uniqueItems: false -> true)"}, ""},
		"pattern changed":   {"{type: string, pattern: a}", "{type: string, pattern: b}", []string{`NeedsData : pattern: pattern changed : "a" -> "b"`}, ""},
		"pattern removed":   {"{type: string, pattern: a}", "{type: string}", nil, ""},
		"nullable":          {"{type: string, nullable: true}", "{type: string}", []string{"NeedsData : nullable: nullable removed : true -> false"}, ""},
		"nullable added":    {"{type: string}", "{type: string, nullable: true}", nil, ""},
		"format":            {"{type: string}", "{type: string, format: ipv4}", []string{`NeedsData : unhandled: unhandled changes found (format: "" -> "ipv4")`}, ""},
		"format narrowed":   {"{type: integer, format: int64}", "{type: integer, format: int32}", []string{`NeedsData : unhandled: unhandled changes found (format: "int64" -> "int32")`}, ""},
		"format all have":   {"{type: integer, format: int32}", "{type: integer, format: int64}", nil, ""},
		"format dropped":    {"{type: string, format: ipv4}", "{type: string}", nil, ""},
		"rule": {
			"{type: string}", "{type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: fixed}]}",
			[]string{`NeedsData : unhandled: unhandled changes found (x-kubernetes-validations: rule added : "self == oldSelf")`},
			"",
		},
		"rule reworded": {
			"{type: string, x-kubernetes-validations: [{rule: self != '', message: a}]}",
			"{type: string, x-kubernetes-validations: [{rule: self != '', message: b, reason: FieldValueInvalid}]}", nil, "it demands the same",
		},
		"rule dropped":          {"{type: string, x-kubernetes-validations: [{rule: self != ''}]}", "{type: string}", nil, ""},
		"list atomic, as it is": {"{type: array, items: {type: string}}", "{type: array, items: {type: string}, x-kubernetes-list-type: atomic}", nil, ""},
		"list to set": {
			"{type: array, items: {type: string}}", "{type: array, items: {type: string}, x-kubernetes-list-type: set}",
			[]string{`NeedsData : unhandled: unhandled changes found (x-kubernetes-list-type: "atomic" -> "set")`},
			"it may have doubles",
		},
		"set to list": {
			"{type: array, items: {type: string}, x-kubernetes-list-type: set}", "{type: array, items: {type: string}}",
			[]string{`Note : unhandled: unhandled changes found (x-kubernetes-list-type: "set" -> "atomic")`},
			"",
		},
		"list keys": {
			"{type: array, items: {type: object}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [b, a]}",
			"{type: array, items: {type: object}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a]}",
			[]string{"NeedsData : unhandled: unhandled changes found (x-kubernetes-list-map-keys: [a b] -> [a])"},
			"",
		},
		"map atomic": {
			"{type: object}", "{type: object, x-kubernetes-map-type: atomic}",
			[]string{`Note : unhandled: unhandled changes found (x-kubernetes-map-type: "granular" -> "atomic")`},
			"",
		},
		"embedded": {
			"{type: object, x-kubernetes-preserve-unknown-fields: true}",
			"{type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true, properties: {metadata: {type: object}}}",
			[]string{
				"NeedsData : unhandled: unhandled changes found (x-kubernetes-embedded-resource: false -> true)",
				`NeedsData .metadata: type: type changed : "" -> "object"`,
			},
			"",
		},
		"field removed": {
			"{type: object, properties: {a: {type: object, properties: {b: {type: array, items: {type: object, properties: {c: {type: string}}}}}}}}", "{type: object}",
			[]string{"NeedsData .a: existingFieldRemoval: removed field : v1.^.spec.x.a (with 2 below it)"},
			"those below go without saying",
		},
		"field removed where anything goes": {
			"{type: object, properties: {a: {type: string}}}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", nil, "it is kept",
		},
		"field added": {"{type: object}", "{type: object, properties: {a: {type: string, enum: [b]}}}", nil, ""},
		"items": {
			"{type: array, items: {type: object, properties: {a: {type: string}}}}", "{type: array, items: {type: object, properties: {a: {type: integer}}}}",
			[]string{`NeedsData .items.a: type: type changed : "string" -> "integer"`},
			"",
		},
		"map: field added, described": {
			"{type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}",
			"{type: object, additionalProperties: {type: object, properties: {a: {type: string, description: D}, b: {type: string}}}}", nil, "",
		},
		"map: value tightened": {
			"{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: {type: string, maxLength: 3}}",
			[]string{"NeedsData .additionalProperties: maxLength: maximum constraint added when there was none previously : 3"},
			"",
		},
		"map to fields": {
			"{type: object, additionalProperties: {type: string}}", "{type: object, properties: {a: {type: integer}}}",
			[]string{
				`NeedsData .a: type: type changed : "string" -> "integer"`,
				"NeedsData .additionalProperties: existingFieldRemoval: removed field : v1.^.spec.x.additionalProperties",
			},
			"",
		},
		"fields to map": {
			"{type: object, properties: {a: {type: string}, b: {type: integer}}}", "{type: object, additionalProperties: {type: string}}",
			[]string{`NeedsData .b: type: type changed : "integer" -> "string"`},
			"",
		},
		"anyOf added":   {"{type: string}", "{type: string, anyOf: [{pattern: a}]}", []string{`NeedsData : unhandled: unhandled changes found (anyOf: constraint added : [{"pattern":"a"}])`}, ""},
		"anyOf dropped": {"{type: string, anyOf: [{pattern: a}]}", "{type: string}", nil, ""},
		"anyOf widened": {"{type: string, anyOf: [{pattern: a}]}", "{type: string, anyOf: [{pattern: b}, {pattern: a}]}", nil, ""},
		"anyOf narrowed": {
			"{type: string, anyOf: [{pattern: b}, {pattern: a}]}", "{type: string, anyOf: [{pattern: a}]}",
			[]string{`NeedsData : unhandled: unhandled changes found (anyOf: removed or narrowed [{"pattern":"b"}])`},
			"one finding",
		},
		"anyOf branch loosened": {
			"{type: object, anyOf: [{required: [a, b]}, {properties: {a: {maxLength: 3}}}]}", "{type: object, anyOf: [{required: [a]}, {properties: {a: {maxLength: 4}}}]}", nil, "",
		},
		"anyOf branch tightened below": {
			"{type: object, anyOf: [{properties: {a: {maxLength: 3}}}]}", "{type: object, anyOf: [{properties: {a: {maxLength: 3}, b: {items: {enum: [a]}}}}]}",
			[]string{`NeedsData : unhandled: unhandled changes found (anyOf: removed or narrowed [{"properties":{"a":{"maxLength":3}}}])`},
			"",
		},
		"allOf": {
			"{type: string, allOf: [{pattern: a}]}", "{type: string, allOf: [{pattern: b}]}",
			[]string{`NeedsData : unhandled: unhandled changes found (allOf: added [{"pattern":"b"}])`},
			"",
		},
		"allOf dropped":   {"{type: string, allOf: [{pattern: a}]}", "{type: string}", nil, ""},
		"oneOf added":     {"{type: object}", "{type: object, oneOf: [{required: [a]}]}", []string{`NeedsData : oneOf: oneOf constraint added when there was none previously : [{"required":["a"]}]`}, ""},
		"oneOf described": {"{type: object, oneOf: [{required: [a]}, {required: [b]}]}", "{type: object, oneOf: [{required: [b]}, {required: [a], description: D}]}", nil, "order and words do not matter"},
		"oneOf widened": {
			"{type: object, oneOf: [{required: [a]}]}", "{type: object, oneOf: [{required: [a]}, {required: [b]}]}",
			[]string{`NeedsData : oneOf: allowed oneOf schemas added : [{"required":["b"]}]`},
			"what has both is refused now",
		},
		"oneOf narrowed": {
			"{type: object, oneOf: [{required: [a]}, {required: [b]}]}", "{type: object, oneOf: [{required: [a]}]}",
			[]string{`NeedsData : oneOf: allowed oneOf schemas removed : [{"required":["b"]}]`},
			"",
		},
		"not":         {"{type: object}", "{type: object, not: {required: [a]}}", []string{`NeedsData : unhandled: unhandled changes found (not: {"required":["a"]})`}, ""},
		"not dropped": {"{type: object, not: {required: [a]}}", "{type: object}", nil, ""},
		"what is no longer allowed in schemas": {
			"{type: array}", "{type: array, $ref: r, patternProperties: {a: {}}, dependencies: {a: [b]}, definitions: {a: {}}, additionalItems: true, items: [{}]}",
			[]string{
				"NeedsData : unhandled: unhandled changes found ($ref changed)",
				"NeedsData : unhandled: unhandled changes found (additionalItems changed)",
				"NeedsData : unhandled: unhandled changes found (definitions changed)",
				"NeedsData : unhandled: unhandled changes found (dependencies changed)",
				"NeedsData : unhandled: unhandled changes found (items changed)",
				"NeedsData : unhandled: unhandled changes found (patternProperties changed)",
			},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := said(crdupgrade.Compare(withField(t, test.old), withField(t, test.newer)))
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got)\n%s", test.reason, diff)
			}
		})
	}
}
