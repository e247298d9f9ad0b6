package schematest

// Upgrade is a change of the schema of spec, and an object that is stored meanwhile.
type Upgrade struct {
	Old, Updated string
	Spec         string

	// Want are the problems of the object after the change, as "path: detail".
	Want []string

	// WrongBefore and WrongIfNew report that the API server rejects a new object with this
	// content for another reason.
	WrongBefore, WrongIfNew bool
}

// Anything is a schema that allows every field and value.
const Anything = "type: object\nx-kubernetes-preserve-unknown-fields: true"

// Upgrades are examples of each change that can invalidate stored objects, by their names.
var Upgrades = map[string]Upgrade{
	"nothing changes": {
		Old:     "{type: object, properties: {size: {type: integer}}}",
		Updated: "{type: object, properties: {size: {type: integer}}}",
		Spec:    "size: 3",
	},
	"an integer is an integer": {
		Old:     Anything,
		Updated: "{type: object, properties: {size: {type: integer, format: int64, minimum: 3, maximum: 3, multipleOf: 3}}}",
		Spec:    "size: 3",
	},
	"an integer is a number": {
		Old:     Anything,
		Updated: "{type: object, properties: {size: {type: number, enum: [3]}}}",
		Spec:    "size: 3",
	},
	"a number without a fraction is an integer": {
		Old:     Anything,
		Updated: "{type: object, properties: {size: {type: integer}}}",
		Spec:    "size: 3.0",
	},
	"a fraction is no integer": {
		Old:     Anything,
		Updated: "{type: object, properties: {size: {type: integer}}}",
		Spec:    "size: 3.5",
		Want: []string{
			"Invalid value: Checked value must be of type integer (default format) in spec.size",
			`spec.size: Invalid value: spec.size in body must be of type integer: "number"`,
		},
	},
	"integer or string": {
		Old:     Anything,
		Updated: "{type: object, properties: {a: {x-kubernetes-int-or-string: true}, b: {x-kubernetes-int-or-string: true}, c: {x-kubernetes-int-or-string: true}}}",
		Spec:    "{a: 1, b: 50%, c: true}",
		Want:    []string{`spec.c: Invalid value: spec.c in body must be of type integer,string: "boolean"`},
	},
	"another type": {
		Old:     "{type: object, properties: {size: {type: integer}}}",
		Updated: "{type: object, properties: {size: {type: string}}}",
		Spec:    "size: 3",
		Want:    []string{`spec.size: Invalid value: spec.size in body must be of type string: "integer"`},
	},
	"a field is required now": {
		Old:     "{type: object, properties: {size: {type: integer}}}",
		Updated: "{type: object, required: [size], properties: {size: {type: integer}}}",
		Spec:    "{}",
		Want:    []string{`spec.size: Required value`},
	},
	"a field that is required has a default": {
		Old:     "{type: object, properties: {size: {type: integer}}}",
		Updated: "{type: object, required: [size], properties: {size: {type: integer, default: 1}}}",
		Spec:    "{}",
	},
	"null stands for nothing": {
		Old:     "{type: object, properties: {size: {type: integer, nullable: true}}}",
		Updated: "{type: object, required: [size], properties: {size: {type: integer}}}",
		Spec:    "size: null",
		Want:    []string{`spec.size: Required value`},
	},
	"null becomes the default": {
		Old:     "{type: object, properties: {size: {type: integer, nullable: true}}}",
		Updated: "{type: object, required: [size], properties: {size: {type: integer, default: 1}}}",
		Spec:    "size: null",
	},
	"bounds of numbers": {
		Old:     "{type: object, additionalProperties: {type: integer}}",
		Updated: "{type: object, properties: {a: {type: integer, maximum: 5}, b: {type: integer, minimum: 5}, c: {type: integer, maximum: 5, exclusiveMaximum: true}, d: {type: integer, multipleOf: 2}}}",
		Spec:    "{a: 6, b: 4, c: 5, d: 3}",
		Want: []string{
			"spec.a: Invalid value: spec.a in body should be less than or equal to 5",
			"spec.b: Invalid value: spec.b in body should be greater than or equal to 5",
			"spec.c: Invalid value: spec.c in body should be less than 5",
			"spec.d: Invalid value: spec.d in body should be a multiple of 2",
		},
	},
	"bounds of text": {
		Old:     "{type: object, additionalProperties: {type: string}}",
		Updated: "{type: object, properties: {a: {type: string, maxLength: 2}, b: {type: string, minLength: 4}, c: {type: string, pattern: '^[a-z]+$'}, d: {type: string, enum: [x, w]}, e: {type: string, format: date-time}}}",
		Spec:    "{a: abc, b: abc, c: a1, d: z, e: today}",
		Want: []string{
			"spec.a: Too long: may not be more than 2 bytes",
			"spec.b: Invalid value: spec.b in body should be at least 4 chars long",
			"spec.c: Invalid value: spec.c in body should match '^[a-z]+$'",
			`spec.d: Unsupported value: supported values: "x", "w"`,
			`spec.e: Invalid value: spec.e in body must be of type date-time`,
		},
	},
	"bounds of lists and maps": {
		Old:     "{type: object, properties: {a: {type: array, items: {type: string}}, b: {type: array, items: {type: string}}, c: {type: object, additionalProperties: {type: string}}, d: {type: object, additionalProperties: {type: string}}}}",
		Updated: "{type: object, properties: {a: {type: array, maxItems: 1, items: {type: string}}, b: {type: array, minItems: 2, items: {type: string}}, c: {type: object, maxProperties: 1, additionalProperties: {type: string}}, d: {type: object, minProperties: 2, additionalProperties: {type: string}}}}",
		Spec:    "{a: [x, z], b: [x], c: {k: x, l: z}, d: {k: x}}",
		Want: []string{
			"spec.a: Too many: must have at most 1 item",
			"spec.b: Invalid value: spec.b in body should have at least 2 items",
			"spec.c: Too many: must have at most 1 item",
			"spec.d: Invalid value: spec.d in body should have at least 2 properties",
		},
	},
	"combinations": {
		Old:     "{type: object, additionalProperties: {type: integer}}",
		Updated: "{type: object, properties: {a: {type: integer, anyOf: [{minimum: 5}, {maximum: 1}]}, b: {type: integer, allOf: [{minimum: 5}]}, c: {type: integer, not: {minimum: 1}}, d: {type: integer, oneOf: [{minimum: 1}, {maximum: 5}]}}}",
		Spec:    "{a: 3, b: 3, c: 3, d: 3}",
		Want: []string{
			`Invalid value: "spec.a" must validate at least one schema (anyOf)`,
			`Invalid value: "spec.b" must validate all the schemas (allOf). None validated`,
			`Invalid value: "spec.c" must not validate the schema (not)`,
			`Invalid value: "spec.d" must validate one and only one schema (oneOf). Found 2 valid alternatives`,
			"spec.a: Invalid value: spec.a in body should be greater than or equal to 5",
			"spec.b: Invalid value: spec.b in body should be greater than or equal to 5",
		},
	},
	"sets have each item once": {
		Old:     "{type: object, properties: {a: {type: array, items: {type: string}}}}",
		Updated: "{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}",
		Spec:    "a: [x, z, x]",
		Want:    []string{"spec.a[2]: Duplicate value"},
	},
	"maps have each key once": {
		Old:     "{type: object, properties: {a: {type: array, items: {type: object, properties: {k: {type: string}, v: {type: string}}}}}}",
		Updated: "{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}, v: {type: string}}}}}}",
		Spec:    "a: [{k: x, v: '1'}, {k: z}, {k: x, v: '2'}]",
		Want:    []string{"spec.a[2]: Duplicate value"},
	},
	"fields are removed": {
		Old:     "{type: object, properties: {a: {type: string}, b: {type: object, properties: {c: {type: string}, d: {type: string}}}, l: {type: array, items: {type: object, properties: {x: {type: string}, z: {type: string}}}}}}",
		Updated: "{type: object, properties: {b: {type: object, properties: {d: {type: string}}}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}}}",
		Spec:    "{a: '1', b: {c: '1', d: '1'}, l: [{x: '1'}, {x: '1', z: '1'}]}",
		Want: []string{
			"spec.a: field would be removed",
			"spec.b.c: field would be removed",
			"spec.l[1].z: field would be removed",
		},
	},
	"unknown fields may be kept": {
		Old:     "{type: object, properties: {a: {type: object, properties: {b: {type: string}, c: {type: object, properties: {d: {type: string}}}}}}}",
		Updated: "{type: object, properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {c: {type: object}}}}}",
		Spec:    "a: {b: x, c: {d: x}}",
		Want:    []string{"spec.a.c.d: field would be removed"},
	},
	"values of maps lose fields": {
		Old:     "{type: object, additionalProperties: {type: object, properties: {x: {type: string}, z: {type: string}}}}",
		Updated: "{type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}",
		Spec:    "{one: {x: '1', z: '1'}, two: {x: '1'}}",
		Want:    []string{"spec.one.z: field would be removed"},
	},
	"embedded objects have a kind": {
		Old:     "{type: object, properties: {template: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
		Updated: "{type: object, properties: {template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}",
		Spec:    "template: {metadata: {name: Not A Name}}",
		Want: []string{
			"spec.template.apiVersion: Required value",
			"spec.template.kind: Required value",
		},
	},
	"embedded objects are of a version": {
		Old:     "{type: object, properties: {template: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
		Updated: "{type: object, properties: {template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}",
		Spec:    "template: {apiVersion: /v1/, kind: Pod}",
		Want:    []string{"spec.template.apiVersion: Invalid value: unexpected GroupVersion string: /v1/"},
	},
	"metadata of embedded objects is an object": {
		Old:     "{type: object, properties: {template: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
		Updated: "{type: object, properties: {template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}",
		Spec:    "template: {apiVersion: v1, kind: Pod, metadata: {labels: 3}}",
		Want:    []string{"spec.template.metadata: Invalid value: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string"},
	},
	"metadata of embedded objects has its form": {
		Old:     "{type: object, properties: {template: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
		Updated: "{type: object, properties: {template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}",
		Spec:    "template: {apiVersion: v1, kind: Pod, metadata: {name: p, colour: red}}",
		Want:    []string{"spec.template.metadata.colour: field would be removed"},
	},
	"a rule is broken": {
		Old:     "{type: object, properties: {low: {type: integer}, high: {type: integer}}}",
		Updated: "{type: object, properties: {low: {type: integer}, high: {type: integer}}, x-kubernetes-validations: [{rule: 'self.low <= self.high', message: low is above high, fieldPath: .low}]}",
		Spec:    "{low: 3, high: 2}",
		Want:    []string{"spec.low: Invalid value: low is above high"},
	},
	"a rule without a message": {
		Old:     "{type: object, properties: {low: {type: integer}}}",
		Updated: "{type: object, properties: {low: {type: integer, x-kubernetes-validations: [{rule: 'self > 3'}]}}}",
		Spec:    "{low: 3}",
		Want:    []string{"spec.low: Invalid value: failed rule: self > 3"},
	},
	"a rule cannot be evaluated": {
		Old:     "{type: object, properties: {a: {type: object, additionalProperties: {type: string}}}}",
		Updated: "{type: object, properties: {a: {type: object, additionalProperties: {type: string}, x-kubernetes-validations: [{rule: \"self['k'] == 'v'\"}]}}}",
		Spec:    "a: {l: v}",
		Want:    []string{"spec.a: Invalid value: no such key: k evaluating rule: self['k'] == 'v'"},
	},
	"rules about a change do not apply": {
		WrongIfNew: true,
		Old:        "{type: object, properties: {a: {type: string}}}",
		Updated:    "{type: object, properties: {a: {type: string, x-kubernetes-validations: [{rule: \"oldSelf == 'x'\"}, {rule: \"oldSelf.hasValue() || self == 'x'\", optionalOldSelf: true}]}}}",
		Spec:       "a: z",
	},
	"rules are not evaluated on what has the wrong type": {
		Old:     Anything,
		Updated: "{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: 'self.a > 3'}]}",
		Spec:    "a: three",
		Want:    []string{`spec.a: Invalid value: spec.a in body must be of type integer: "string"`},
	},
	"what was wrong before is not the upgrade's": {
		WrongBefore: true,
		Old:         "{type: object, required: [c], properties: {a: {type: integer, maximum: 5}, b: {type: string, pattern: '^x$'}, d: {type: array, maxItems: 1, items: {type: string}}, e: {type: string, enum: [x]}, f: {type: integer}, g: {type: string, maxLength: 1}}}",
		Updated:     "{type: object, required: [c], properties: {a: {type: integer, maximum: 4}, b: {type: string, pattern: '^y$'}, d: {type: array, maxItems: 1, items: {type: string}}, e: {type: string, enum: [y]}, f: {type: boolean}, g: {type: string, maxLength: 0}}}",
		Spec:        "{a: 6, b: z, d: [x, w], e: z, f: text, g: long, unknown: field}",
	},
	"another check of the same field is the upgrade's": {
		WrongBefore: true,
		Old:         "{type: object, properties: {a: {type: integer, minimum: 3}, b: {type: integer, x-kubernetes-validations: [{rule: self > 1, message: is low}]}}}",
		Updated:     "{type: object, properties: {a: {type: integer, minimum: 3, multipleOf: 2}, b: {type: integer, x-kubernetes-validations: [{rule: self > 1, message: is low}, {rule: self != 0, message: is none}]}}}",
		Spec:        "{a: 1, b: 0}",
		Want: []string{
			"spec.a: Invalid value: spec.a in body should be a multiple of 2",
			"spec.b: Invalid value: is none",
		},
	},
	"rules are evaluated next to what was wrong before": {
		WrongBefore: true,
		Old:         "{type: object, properties: {a: {type: integer}, b: {type: integer}}}",
		Updated:     "{type: object, properties: {a: {type: integer}, b: {type: integer, x-kubernetes-validations: [{rule: self > 1, message: is low}]}}}",
		Spec:        "{a: text, b: 0}",
		Want:        []string{"spec.b: Invalid value: is low"},
	},
	"part of what was removed before": {
		WrongBefore: true,
		Old:         "{type: object, properties: {b: {type: string}}}",
		Updated:     "{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}",
		Spec:        "{a: {b: x, c: x}, b: x}",
		Want:        []string{"spec.b: field would be removed"},
	},
}
