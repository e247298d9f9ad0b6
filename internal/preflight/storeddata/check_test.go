package storeddata_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/preflight/storeddata"
)

// upgrade is a change of the schema of spec, and an object that lives through it.
type upgrade struct {
	old, updated string
	spec         string
	want         []string // problems, as path: detail

	// The API server refuses a new object like it for another reason.
	wrongBefore, wrongIfNew bool
}

// anything is a schema that forbids and knows everything.
const anything = "type: object\nx-kubernetes-preserve-unknown-fields: true"

var upgrades = map[string]upgrade{
	"nothing changes": {
		old:     "{type: object, properties: {size: {type: integer}}}",
		updated: "{type: object, properties: {size: {type: integer}}}",
		spec:    "size: 3",
	},
	"an integer is an integer": {
		old:     anything,
		updated: "{type: object, properties: {size: {type: integer, format: int64, minimum: 3, maximum: 3, multipleOf: 3}}}",
		spec:    "size: 3",
	},
	"an integer is a number": {
		old:     anything,
		updated: "{type: object, properties: {size: {type: number, enum: [3]}}}",
		spec:    "size: 3",
	},
	"a number without a fraction is an integer": {
		old:     anything,
		updated: "{type: object, properties: {size: {type: integer}}}",
		spec:    "size: 3.0",
	},
	"a fraction is no integer": {
		old:     anything,
		updated: "{type: object, properties: {size: {type: integer}}}",
		spec:    "size: 3.5",
		want: []string{
			"Invalid value: Checked value must be of type integer (default format) in spec.size",
			`spec.size: Invalid value: spec.size in body must be of type integer: "number"`,
		},
	},
	"integer or string": {
		old:     anything,
		updated: "{type: object, properties: {a: {x-kubernetes-int-or-string: true}, b: {x-kubernetes-int-or-string: true}, c: {x-kubernetes-int-or-string: true}}}",
		spec:    "{a: 1, b: 50%, c: true}",
		want:    []string{`spec.c: Invalid value: spec.c in body must be of type integer,string: "boolean"`},
	},
	"another type": {
		old:     "{type: object, properties: {size: {type: integer}}}",
		updated: "{type: object, properties: {size: {type: string}}}",
		spec:    "size: 3",
		want:    []string{`spec.size: Invalid value: spec.size in body must be of type string: "integer"`},
	},
	"a field is required now": {
		old:     "{type: object, properties: {size: {type: integer}}}",
		updated: "{type: object, required: [size], properties: {size: {type: integer}}}",
		spec:    "{}",
		want:    []string{`spec.size: Required value`},
	},
	"a field that is required has a default": {
		old:     "{type: object, properties: {size: {type: integer}}}",
		updated: "{type: object, required: [size], properties: {size: {type: integer, default: 1}}}",
		spec:    "{}",
	},
	"null stands for nothing": {
		old:     "{type: object, properties: {size: {type: integer, nullable: true}}}",
		updated: "{type: object, required: [size], properties: {size: {type: integer}}}",
		spec:    "size: null",
		want:    []string{`spec.size: Required value`},
	},
	"null becomes the default": {
		old:     "{type: object, properties: {size: {type: integer, nullable: true}}}",
		updated: "{type: object, required: [size], properties: {size: {type: integer, default: 1}}}",
		spec:    "size: null",
	},
	"bounds of numbers": {
		old:     "{type: object, additionalProperties: {type: integer}}",
		updated: "{type: object, properties: {a: {type: integer, maximum: 5}, b: {type: integer, minimum: 5}, c: {type: integer, maximum: 5, exclusiveMaximum: true}, d: {type: integer, multipleOf: 2}}}",
		spec:    "{a: 6, b: 4, c: 5, d: 3}",
		want: []string{
			"spec.a: Invalid value: spec.a in body should be less than or equal to 5",
			"spec.b: Invalid value: spec.b in body should be greater than or equal to 5",
			"spec.c: Invalid value: spec.c in body should be less than 5",
			"spec.d: Invalid value: spec.d in body should be a multiple of 2",
		},
	},
	"bounds of text": {
		old:     "{type: object, additionalProperties: {type: string}}",
		updated: "{type: object, properties: {a: {type: string, maxLength: 2}, b: {type: string, minLength: 4}, c: {type: string, pattern: '^[a-z]+$'}, d: {type: string, enum: [x, w]}, e: {type: string, format: date-time}}}",
		spec:    "{a: abc, b: abc, c: a1, d: z, e: today}",
		want: []string{
			"spec.a: Too long: may not be more than 2 bytes",
			"spec.b: Invalid value: spec.b in body should be at least 4 chars long",
			"spec.c: Invalid value: spec.c in body should match '^[a-z]+$'",
			`spec.d: Unsupported value: supported values: "x", "w"`,
			`spec.e: Invalid value: spec.e in body must be of type date-time`,
		},
	},
	"bounds of lists and maps": {
		old:     "{type: object, properties: {a: {type: array, items: {type: string}}, b: {type: array, items: {type: string}}, c: {type: object, additionalProperties: {type: string}}, d: {type: object, additionalProperties: {type: string}}}}",
		updated: "{type: object, properties: {a: {type: array, maxItems: 1, items: {type: string}}, b: {type: array, minItems: 2, items: {type: string}}, c: {type: object, maxProperties: 1, additionalProperties: {type: string}}, d: {type: object, minProperties: 2, additionalProperties: {type: string}}}}",
		spec:    "{a: [x, z], b: [x], c: {k: x, l: z}, d: {k: x}}",
		want: []string{
			"spec.a: Too many: must have at most 1 item",
			"spec.b: Invalid value: spec.b in body should have at least 2 items",
			"spec.c: Too many: must have at most 1 item",
			"spec.d: Invalid value: spec.d in body should have at least 2 properties",
		},
	},
	"combinations": {
		old:     "{type: object, additionalProperties: {type: integer}}",
		updated: "{type: object, properties: {a: {type: integer, anyOf: [{minimum: 5}, {maximum: 1}]}, b: {type: integer, allOf: [{minimum: 5}]}, c: {type: integer, not: {minimum: 1}}, d: {type: integer, oneOf: [{minimum: 1}, {maximum: 5}]}}}",
		spec:    "{a: 3, b: 3, c: 3, d: 3}",
		want: []string{
			`Invalid value: "spec.a" must validate at least one schema (anyOf)`,
			`Invalid value: "spec.b" must validate all the schemas (allOf). None validated`,
			`Invalid value: "spec.c" must not validate the schema (not)`,
			`Invalid value: "spec.d" must validate one and only one schema (oneOf). Found 2 valid alternatives`,
			"spec.a: Invalid value: spec.a in body should be greater than or equal to 5",
			"spec.b: Invalid value: spec.b in body should be greater than or equal to 5",
		},
	},
	"sets have each item once": {
		old:     "{type: object, properties: {a: {type: array, items: {type: string}}}}",
		updated: "{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}",
		spec:    "a: [x, z, x]",
		want:    []string{"spec.a[2]: Duplicate value"},
	},
	"maps have each key once": {
		old:     "{type: object, properties: {a: {type: array, items: {type: object, properties: {k: {type: string}, v: {type: string}}}}}}",
		updated: "{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}, v: {type: string}}}}}}",
		spec:    "a: [{k: x, v: '1'}, {k: z}, {k: x, v: '2'}]",
		want:    []string{"spec.a[2]: Duplicate value"},
	},
	"fields are removed": {
		old:     "{type: object, properties: {a: {type: string}, b: {type: object, properties: {c: {type: string}, d: {type: string}}}, l: {type: array, items: {type: object, properties: {x: {type: string}, z: {type: string}}}}}}",
		updated: "{type: object, properties: {b: {type: object, properties: {d: {type: string}}}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}}}",
		spec:    "{a: '1', b: {c: '1', d: '1'}, l: [{x: '1'}, {x: '1', z: '1'}]}",
		want: []string{
			"spec.a: field would be removed",
			"spec.b.c: field would be removed",
			"spec.l[1].z: field would be removed",
		},
	},
	"unknown fields may be kept": {
		old:     "{type: object, properties: {a: {type: object, properties: {b: {type: string}, c: {type: object, properties: {d: {type: string}}}}}}}",
		updated: "{type: object, properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {c: {type: object}}}}}",
		spec:    "a: {b: x, c: {d: x}}",
		want:    []string{"spec.a.c.d: field would be removed"},
	},
	"values of maps lose fields": {
		old:     "{type: object, additionalProperties: {type: object, properties: {x: {type: string}, z: {type: string}}}}",
		updated: "{type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}",
		spec:    "{one: {x: '1', z: '1'}, two: {x: '1'}}",
		want:    []string{"spec.one.z: field would be removed"},
	},
	"embedded objects have a kind": {
		old:     "{type: object, properties: {template: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
		updated: "{type: object, properties: {template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}",
		spec:    "template: {metadata: {name: Not A Name}}",
		want: []string{
			"spec.template.apiVersion: Required value",
			"spec.template.kind: Required value",
		},
	},
	"embedded objects are of a version": {
		old:     "{type: object, properties: {template: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
		updated: "{type: object, properties: {template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}",
		spec:    "template: {apiVersion: /v1/, kind: Pod}",
		want:    []string{"spec.template.apiVersion: Invalid value: unexpected GroupVersion string: /v1/"},
	},
	"metadata of embedded objects is an object": {
		old:     "{type: object, properties: {template: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
		updated: "{type: object, properties: {template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}",
		spec:    "template: {apiVersion: v1, kind: Pod, metadata: {labels: 3}}",
		want:    []string{"spec.template.metadata: Invalid value: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string"},
	},
	"metadata of embedded objects has its form": {
		old:     "{type: object, properties: {template: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
		updated: "{type: object, properties: {template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}",
		spec:    "template: {apiVersion: v1, kind: Pod, metadata: {name: p, colour: red}}",
		want:    []string{"spec.template.metadata.colour: field would be removed"},
	},
	"a rule is broken": {
		old:     "{type: object, properties: {low: {type: integer}, high: {type: integer}}}",
		updated: "{type: object, properties: {low: {type: integer}, high: {type: integer}}, x-kubernetes-validations: [{rule: 'self.low <= self.high', message: low is above high, fieldPath: .low}]}",
		spec:    "{low: 3, high: 2}",
		want:    []string{"spec.low: Invalid value: low is above high"},
	},
	"a rule without a message": {
		old:     "{type: object, properties: {low: {type: integer}}}",
		updated: "{type: object, properties: {low: {type: integer, x-kubernetes-validations: [{rule: 'self > 3'}]}}}",
		spec:    "{low: 3}",
		want:    []string{"spec.low: Invalid value: failed rule: self > 3"},
	},
	"a rule cannot be evaluated": {
		old:     "{type: object, properties: {a: {type: object, additionalProperties: {type: string}}}}",
		updated: "{type: object, properties: {a: {type: object, additionalProperties: {type: string}, x-kubernetes-validations: [{rule: \"self['k'] == 'v'\"}]}}}",
		spec:    "a: {l: v}",
		want:    []string{"spec.a: Invalid value: no such key: k evaluating rule: self['k'] == 'v'"},
	},
	"rules about a change do not apply": {
		wrongIfNew: true,
		old:        "{type: object, properties: {a: {type: string}}}",
		updated:    "{type: object, properties: {a: {type: string, x-kubernetes-validations: [{rule: \"oldSelf == 'x'\"}, {rule: \"oldSelf.hasValue() || self == 'x'\", optionalOldSelf: true}]}}}",
		spec:       "a: z",
	},
	"rules are not evaluated on what has the wrong type": {
		old:     anything,
		updated: "{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: 'self.a > 3'}]}",
		spec:    "a: three",
		want:    []string{`spec.a: Invalid value: spec.a in body must be of type integer: "string"`},
	},
	"what was wrong before is not the upgrade's": {
		wrongBefore: true,
		old:         "{type: object, required: [c], properties: {a: {type: integer, maximum: 5}, b: {type: string, pattern: '^x$'}, d: {type: array, maxItems: 1, items: {type: string}}, e: {type: string, enum: [x]}, f: {type: integer}, g: {type: string, maxLength: 1}}}",
		updated:     "{type: object, required: [c], properties: {a: {type: integer, maximum: 4}, b: {type: string, pattern: '^y$'}, d: {type: array, maxItems: 1, items: {type: string}}, e: {type: string, enum: [y]}, f: {type: boolean}, g: {type: string, maxLength: 0}}}",
		spec:        "{a: 6, b: z, d: [x, w], e: z, f: text, g: long, unknown: field}",
	},
	"another check of the same field is the upgrade's": {
		wrongBefore: true,
		old:         "{type: object, properties: {a: {type: integer, minimum: 3}, b: {type: integer, x-kubernetes-validations: [{rule: self > 1, message: is low}]}}}",
		updated:     "{type: object, properties: {a: {type: integer, minimum: 3, multipleOf: 2}, b: {type: integer, x-kubernetes-validations: [{rule: self > 1, message: is low}, {rule: self != 0, message: is none}]}}}",
		spec:        "{a: 1, b: 0}",
		want: []string{
			"spec.a: Invalid value: spec.a in body should be a multiple of 2",
			"spec.b: Invalid value: is none",
		},
	},
	"rules are evaluated next to what was wrong before": {
		wrongBefore: true,
		old:         "{type: object, properties: {a: {type: integer}, b: {type: integer}}}",
		updated:     "{type: object, properties: {a: {type: integer}, b: {type: integer, x-kubernetes-validations: [{rule: self > 1, message: is low}]}}}",
		spec:        "{a: text, b: 0}",
		want:        []string{"spec.b: Invalid value: is low"},
	},
	"part of what was removed before": {
		wrongBefore: true,
		old:         "{type: object, properties: {b: {type: string}}}",
		updated:     "{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}",
		spec:        "{a: {b: x, c: x}, b: x}",
		want:        []string{"spec.b: field would be removed"},
	},
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range upgrades {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := widget(t, "w", tc.spec)
			unchanged := stored.DeepCopy()
			problems := validator(t, widgets(t, tc.old), widgets(t, tc.updated)).Check(t.Context(), stored)
			if diff := cmp.Diff(tc.want, lines(problems)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(unchanged, stored); diff != "" {
				t.Error("the object was changed:", diff)
			}
		})
	}
}

func lines(problems []storeddata.Problem) []string {
	var lines []string
	for _, problem := range problems {
		lines = append(lines, problem.String())
	}
	return lines
}
