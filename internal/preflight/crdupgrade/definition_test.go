package crdupgrade_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
)

const (
	anything = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
	withA    = "{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}"
	withB    = "{type: object, properties: {spec: {type: object, properties: {b: {type: string}}}}}"
	withAB   = "{type: object, properties: {spec: {type: object, properties: {a: {type: string}, b: {type: string}}}}}"
	webhook  = "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: ns, name: s, path: /p}}}}"
)

// thing is the spec of a definition with versions in YAML.
func thing(versions ...string) string {
	return "{scope: Namespaced, names: {kind: Thing}, versions: [" + strings.Join(versions, ", ") + "]}"
}

func served(name, schema string) string {
	return fmt.Sprintf("{name: %s, served: true, schema: {openAPIV3Schema: %s}}", name, schema)
}

func storage(name, schema string) string {
	return fmt.Sprintf("{name: %s, served: true, storage: true, schema: {openAPIV3Schema: %s}}", name, schema)
}

// with is thing with something more in the definition.
func with(spec, more string) string { return strings.TrimSuffix(spec, "}") + ", " + more + "}" }

func TestDefinitions(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		old    string
		stored []string
		newer  string
		want   []string
		reason string
	}{
		"scope": {
			old: thing(storage("v1", anything)), newer: strings.Replace(thing(storage("v1", anything)), "Namespaced", "Cluster", 1),
			want: []string{`Blocks scope: scope changed : "Namespaced" -> "Cluster"`},
		},
		"kind": {
			old: thing(storage("v1", anything)), newer: strings.Replace(thing(storage("v1", anything)), "Thing", "Other", 1),
			want: []string{`Blocks names: kind changed : "Thing" -> "Other"`},
		},
		"names": {
			old:    strings.Replace(thing(storage("v1", anything)), "kind: Thing", "kind: Thing, singular: thing, listKind: ThingList, shortNames: [a, b], categories: [all]", 1),
			newer:  strings.Replace(thing(storage("v1", anything)), "kind: Thing", "kind: Thing, singular: other, shortNames: [b, c]", 1),
			want:   []string{`Note names: categories removed : ["all"]`, `Note names: shortNames removed : ["a"]`, `Note names: singular changed : "thing" -> "other"`},
			reason: "the API server fills in what is left out",
		},
		"stored version removed": {
			old: thing(storage("v1", anything), served("v1beta1", anything)), stored: []string{"v1beta1", "v1"}, newer: thing(storage("v1", anything)),
			want: []string{"Blocks storedVersionRemoval: stored versions removed : [v1beta1]"},
		},
		"version removed that is served only": {
			old: thing(storage("v1", anything), served("v1beta1", anything)), stored: []string{"v1"}, newer: thing(storage("v1", anything)),
			want: []string{`Note servedVersionRemoval: version no longer served : "v1beta1"`},
		},
		"no status": {
			old: thing(storage("v1", anything)), newer: thing(storage("v2", anything)),
			want: []string{"Blocks storedVersionRemoval: stored versions removed : [v1]"}, reason: "who never saw a cluster stores in the storage version",
		},
		"stored version no longer served": {
			old: thing(storage("v1", anything)), stored: []string{"v1"}, newer: thing(storage("v2", anything), "{name: v1, schema: {openAPIV3Schema: "+anything+"}}"),
			want: []string{
				`Note servedVersionRemoval: version no longer served : "v1"`,
				`Note storageVersion: storage version changed : "v1" -> "v2"`,
			},
			reason: "stored objects can still be read, and be written in the new version",
		},
		"fields lost to another storage version": {
			old: thing(storage("v1", withA)), newer: thing(served("v1", withA), storage("v2", withB)),
			want: []string{
				"NeedsData v1 -> v2: ^.spec.a: existingFieldRemoval: removed field : v1 -> v2.^.spec.a",
				`Note storageVersion: storage version changed : "v1" -> "v2"`,
			},
		},
		"fields lost between versions that are served": {
			old: thing(storage("v1", withA)), newer: thing(storage("v1", withA), served("v2", withB)),
			want: []string{
				"Note v1 -> v2: ^.spec.a: existingFieldRemoval: removed field : v1 -> v2.^.spec.a",
				"Note v2 -> v1: ^.spec.b: existingFieldRemoval: removed field : v2 -> v1.^.spec.b",
			},
			reason: "what is written as v2 is stored as v1",
		},
		"the same incompatibility, and one more": {
			old: thing(served("v1", withA), storage("v2", withB)), newer: thing(served("v1", withAB), storage("v2", "{type: object, properties: {spec: {type: object}}}")),
			stored: []string{"v2"},
			want: []string{
				"NeedsData v2: ^.spec.b: existingFieldRemoval: removed field : v2.^.spec.b",
				"Note v1 -> v2: ^.spec.b: existingFieldRemoval: removed field : v1 -> v2.^.spec.b",
			},
		},
		"an incompatibility that was harmless and is not": {
			old: thing(storage("v1", withA), served("v2", withB)), newer: thing(served("v1", withA), storage("v2", withB)),
			want: []string{
				"NeedsData v1 -> v2: ^.spec.a: existingFieldRemoval: removed field : v1 -> v2.^.spec.a",
				`Note storageVersion: storage version changed : "v1" -> "v2"`,
			},
		},
		"conversion by webhook": {
			old: thing(storage("v1", withA)), newer: with(thing(served("v1", withAB), storage("v2", "{type: object, properties: {spec: {type: string}}}")), "conversion: "+webhook),
			want: []string{
				`Note conversion: conversion added : webhook of service "ns/s" at "/p"`,
				`Note storageVersion: storage version changed : "v1" -> "v2"`,
			},
			reason: "somebody sees to it",
		},
		"conversion by webhook, and a version that changes": {
			old: with(thing(served("v1", withA), storage("v2", withB)), "conversion: "+webhook), newer: with(thing(served("v1", withB), storage("v2", withB)), "conversion: "+webhook),
			want: []string{"NeedsData v1: ^.spec.a: existingFieldRemoval: removed field : v1.^.spec.a"},
		},
		"conversion changed": {
			old: with(thing(storage("v1", withA)), "conversion: "+webhook), newer: with(thing(storage("v1", withA)), "conversion: "+strings.Replace(webhook, "name: s", "name: t", 1)),
			want: []string{`Note conversion: conversion changed : webhook of service "ns/s" at "/p" -> webhook of service "ns/t" at "/p"`},
		},
		"conversion removed": {
			old: with(thing(served("v1", withA), storage("v2", withB)), "conversion: "+webhook), stored: []string{"v1", "v2"}, newer: thing(served("v1", withA), storage("v2", withB)),
			want: []string{
				"NeedsData v1 -> v2: ^.spec.a: existingFieldRemoval: removed field : v1 -> v2.^.spec.a",
				`Note conversion: conversion removed : webhook of service "ns/s" at "/p"`,
			},
			reason: "what was converted no longer is",
		},
		"subresources": {
			old:   thing("{name: v1, served: true, storage: true, subresources: {status: {}, scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}, selectableFields: [{jsonPath: .spec.a}], schema: {openAPIV3Schema: " + anything + "}}"),
			newer: thing(storage("v1", anything)),
			want: []string{
				"Note v1: selectableFields: selectable fields removed : [.spec.a]",
				"Note v1: subresources: scale subresource removed",
				"Note v1: subresources: status subresource removed",
			},
		},
		"subresources changed": {
			old:   thing("{name: v1, served: true, storage: true, subresources: {scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}, schema: {openAPIV3Schema: " + anything + "}}"),
			newer: thing("{name: v1, served: true, storage: true, subresources: {status: {}, scale: {specReplicasPath: .spec.m, statusReplicasPath: .status.n, labelSelectorPath: .status.s}}, schema: {openAPIV3Schema: " + anything + "}}"),
			want: []string{
				`Note v1: subresources: scale subresource changed : [".spec.n" ".status.n" ""] -> [".spec.m" ".status.n" ".status.s"]`,
				"Note v1: subresources: status subresource added: the status is no longer written with the object",
			},
		},
		"field of a status": {
			old:   thing("{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {a: {type: string}, b: {type: string}}}, statuses: {type: string}}}}}"),
			newer: thing("{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {b: {type: integer}}}}}}}"),
			want: []string{
				`NeedsData v1: ^.status.b: type: type changed : "string" -> "integer"`,
				"NeedsData v1: ^.statuses: existingFieldRemoval: removed field : v1.^.statuses",
				"Note v1: ^.status.a: existingFieldRemoval: removed field : v1.^.status.a",
			},
			reason: "controllers write it anew, but nobody can write an object with an invalid one",
		},
		"field of a status that is written with the object": {
			old:   thing(storage("v1", "{type: object, properties: {status: {type: object, properties: {a: {type: string}}}}}")),
			newer: thing(storage("v1", "{type: object, properties: {status: {type: object}}}")),
			want:  []string{"NeedsData v1: ^.status.a: existingFieldRemoval: removed field : v1.^.status.a"},
		},
		"fields that all objects have": {
			old:    thing(storage("v1", "{type: object, properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}}}")),
			newer:  thing(storage("v1", "{type: object}")),
			reason: "they are kept",
		},
		"fields that all objects have, restricted": {
			old: thing(storage("v1", "{type: object}")), newer: thing(storage("v1", "{type: object, properties: {kind: {type: string}, metadata: {type: object, properties: {name: {type: string, maxLength: 9}}}}}")),
			want: []string{`NeedsData v1: ^.metadata.name: type: type changed : "" -> "string"`},
		},
		"no schemas":   {old: thing("{name: v1, served: true, storage: true}"), newer: thing("{name: v1, served: true, storage: true}"), reason: "from the time of v1beta1"},
		"schema added": {old: thing("{name: v1, served: true, storage: true}"), newer: thing(storage("v1", anything)), want: []string{"NeedsData v1: ^: schema: schema added when there was none previously"}},
		"schema gone":  {old: thing(storage("v1", anything)), newer: thing("{name: v1, served: true, storage: true}"), want: []string{"Blocks v1: ^: schema: schema removed"}, reason: "the API server demands one"},
		"schema gone where another version has none": {
			old: thing(storage("v1", anything), "{name: v2, served: true}"), newer: thing("{name: v1, served: true, storage: true}", "{name: v2, served: true, schema: {}}"),
			want: []string{"Note v1: ^: schema: schema removed"}, reason: "it does not demand more than before",
		},
		"unknown fields": {
			old: with(thing(storage("v1", withA)), "preserveUnknownFields: true"), newer: thing(storage("v1", withA)),
			want: []string{"NeedsData preserveUnknownFields: preserveUnknownFields changed : true -> false"},
		},
		"printer columns": {
			old: thing(strings.Replace(storage("v1", anything), "{", "{additionalPrinterColumns: [{name: A, type: string, jsonPath: .a}], ", 1)), newer: thing(storage("v1", anything)),
			reason: "they are for people's eyes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			old, newer := definition(t, test.old), definition(t, test.newer)
			old.Status.StoredVersions = test.stored
			before := []any{old.DeepCopy(), newer.DeepCopy()}
			got := said(crdupgrade.Compare(old, newer))
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got)\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(before, []any{old, newer}); diff != "" {
				t.Errorf("the definitions changed (-want +got)\n%s", diff)
			}
		})
	}
}
