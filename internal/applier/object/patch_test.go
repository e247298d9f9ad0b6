package object

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
		"rules of an aggregated role": {
			reason: "the cluster fills them in",
			kind:   roleKind,
			before: "rules: []\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}",
			wanted: "rules: null\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}",
			live:   "rules: [{verbs: [get]}]\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}",
		},
		"role that is aggregated from now on": {
			reason: "the rules that the revision before has set are the cluster's to replace",
			kind:   roleKind,
			before: "rules: [{verbs: [get]}]",
			wanted: "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}",
			live:   "rules: [{verbs: [get]}]",
			want:   `{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}}`,
		},
		"role that is not aggregated any more": {
			kind:   roleKind,
			before: "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}",
			wanted: "rules: [{verbs: [get]}]",
			live:   "rules: [{verbs: [list]}]\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}",
			want:   `{"aggregationRule":null,"rules":[{"verbs":["get"]}]}`,
		},
		"defaults in a custom resource": {kind: customKind, wanted: "spec: {list: [{a: 1}]}", live: "spec: {list: [{a: 1, b: 2}], c: 3}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ThreeWay{Wanted: parse(t, tc.kind, tc.wanted), Live: parse(t, tc.kind, tc.live)}
			if tc.before != "" {
				s.Before = parse(t, tc.kind, tc.before)
			}
			got, err := s.Patch()
			if err != nil {
				t.Fatal(err)
			}
			if got.IsEmpty() != (tc.want == "") || (tc.want != "" && string(got.Data) != tc.want) {
				t.Errorf("patch = %s, want %s: %s", got.Data, tc.want, tc.reason)
			}
		})
	}
}

const (
	configMapKind = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	webhookKind   = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: x}\n"
	roleKind      = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\n"
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
