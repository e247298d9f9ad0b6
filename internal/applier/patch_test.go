package applier

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestPatchOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		kind   string // apiVersion/kind in front of the rest
		before string
		wanted string
		live   string
		want   string // empty: nothing to send
	}{
		"equal": {kind: configMapKind, wanted: "data: {a: x}", live: "data: {a: x}"},
		"field of somebody else": {
			reason: "what no revision has set is not ours",
			kind:   configMapKind, wanted: "data: {a: x}", live: "data: {a: x, b: y}",
		},
		"changed": {kind: configMapKind, wanted: "data: {a: x}", live: "data: {a: y}", want: `{"data":{"a":"x"}}`},
		"dropped field": {
			reason: "the revision before has set it",
			kind:   configMapKind, before: "data: {a: x, b: y}", wanted: "data: {a: x}", live: "data: {a: x, b: y, c: z}",
			want: `{"data":{"b":null}}`,
		},
		"defaults in a list that is replaced whole": {
			reason: "the API server has filled in the scope",
			kind:   webhookKind,
			wanted: "webhooks: [{name: w, rules: [{operations: [CREATE]}]}]",
			live:   "webhooks: [{name: w, timeoutSeconds: 10, rules: [{operations: [CREATE], scope: '*'}]}]",
		},
		"change in a list that is replaced whole": {
			kind:   webhookKind,
			wanted: "webhooks: [{name: w, rules: [{operations: [CREATE]}]}]",
			live:   "webhooks: [{name: w, rules: [{operations: [UPDATE], scope: '*'}]}]",
			want:   `{"$setElementOrder/webhooks":[{"name":"w"}],"webhooks":[{"name":"w","rules":[{"operations":["CREATE"]}]}]}`,
		},
		"dropped field in a list": {
			reason: "it is not a default: the revision before has set it",
			kind:   webhookKind,
			before: "webhooks: [{name: w, rules: [{operations: [CREATE], scope: Namespaced}]}]",
			wanted: "webhooks: [{name: w, rules: [{operations: [CREATE]}]}]",
			live:   "webhooks: [{name: w, rules: [{operations: [CREATE], scope: Namespaced}]}]",
			want:   `{"$setElementOrder/webhooks":[{"name":"w"}],"webhooks":[{"name":"w","rules":[{"operations":["CREATE"]}]}]}`,
		},
		"item added by somebody else": {
			reason: "lists of other kinds are replaced whole",
			kind:   customKind, wanted: "spec: {list: [a]}", live: "spec: {list: [a, b]}",
			want: `{"spec":{"list":["a"]}}`,
		},
		"defaults in a custom resource": {kind: customKind, wanted: "spec: {list: [{a: 1}]}", live: "spec: {list: [{a: 1, b: 2}], c: 3}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &step{item: item{object: parse(t, tc.kind, tc.wanted)}, live: parse(t, tc.kind, tc.live)}
			if tc.before != "" {
				s.before = parse(t, tc.kind, tc.before)
			}
			got, err := patchOf(s)
			if err != nil {
				t.Fatal(err)
			}
			if got.isEmpty() != (tc.want == "") || (tc.want != "" && string(got.data) != tc.want) {
				t.Errorf("patch = %s, want %s: %s", got.data, tc.want, tc.reason)
			}
		})
	}
}

const (
	configMapKind = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	webhookKind   = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: x}\n"
	customKind    = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\n"
)

func parse(t *testing.T, kind, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(kind + text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return object
}
