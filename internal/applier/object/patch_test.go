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
		"selector that is replaced whole": {
			reason: "the library sends it although it is the same",
			kind:   budgetKind, wanted: "spec: {selector: {matchLabels: {a: b}}}", live: "spec: {maxUnavailable: 1, selector: {matchLabels: {a: b}}}",
		},
		"selector that differs": {
			kind: budgetKind, wanted: "spec: {selector: {matchLabels: {a: b}}}", live: "spec: {selector: {matchLabels: {a: c}}}",
			want: `{"spec":{"selector":{"matchLabels":{"a":"b"}}}}`,
		},
		"union with defaults": {
			reason: "the API server has filled in what belongs to the type",
			kind:   deploymentKind, wanted: "spec: {strategy: {type: RollingUpdate}}",
			live: "spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}}",
		},
		"union of another type": {
			kind: deploymentKind, wanted: "spec: {strategy: {type: Recreate}}",
			live: "spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%}}}",
			want: `{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`,
		},
		"quantity in other words": {
			kind:   deploymentKind,
			wanted: "spec: {template: {spec: {containers: [{name: c, resources: {limits: {cpu: 1000m, memory: 1024Mi}}}]}}}",
			live:   "spec: {template: {spec: {containers: [{name: c, image: i, resources: {limits: {cpu: '1', memory: 1Gi}}}]}}}",
		},
		"another quantity": {
			kind:   deploymentKind,
			wanted: "spec: {template: {spec: {containers: [{name: c, resources: {limits: {cpu: 1000m}}}]}}}",
			live:   "spec: {template: {spec: {containers: [{name: c, resources: {limits: {cpu: '2'}}}]}}}",
			want: `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],` +
				`"containers":[{"name":"c","resources":{"limits":{"cpu":"1000m"}}}]}}}}`,
		},
		"container added by somebody else": {
			reason: "the order of ours is kept",
			kind:   deploymentKind,
			wanted: "spec: {template: {spec: {containers: [{name: c, image: i}]}}}",
			live:   "spec: {template: {spec: {containers: [{name: c, image: i}, {name: d, image: j}]}}}",
		},
		"false where that is the default": {
			kind: deploymentKind, wanted: "spec: {paused: false, template: {spec: {hostNetwork: false}}}", live: "spec: {template: {spec: {}}}",
		},
		"false where it is true": {
			kind: deploymentKind, wanted: "spec: {paused: false}", live: "spec: {paused: true}", want: `{"spec":{"paused":false}}`,
		},
		"no replicas": {
			reason: "zero is said, and not the default",
			kind:   deploymentKind, wanted: "spec: {replicas: 0}", live: "spec: {replicas: 1}", want: `{"spec":{"replicas":0}}`,
		},
		"field that this program does not know": {
			kind: deploymentKind, wanted: "spec: {novelty: 2}", live: "spec: {novelty: 1}", want: `{"spec":{"novelty":2}}`,
		},
		"port that leads to itself": {
			kind:   serviceKind,
			wanted: "spec: {ports: [{port: 443, targetPort: 0}]}",
			live:   "spec: {ports: [{port: 443, protocol: TCP, targetPort: 443}]}",
		},
		"port that leads elsewhere": {
			kind:   serviceKind,
			wanted: "spec: {ports: [{port: 443, targetPort: 0}]}",
			live:   "spec: {ports: [{port: 443, protocol: TCP, targetPort: 8443}]}",
			want:   `{"spec":{"$setElementOrder/ports":[{"port":443}],"ports":[{"port":443,"targetPort":443}]}}`,
		},
		"texts of a Secret": {
			reason: "the API server encodes them",
			kind:   secretKind, wanted: "stringData: {a: x}\ndata: {b: eQ==}", live: "data: {a: eA==, b: eQ==}",
		},
		"changed text of a Secret":           {kind: secretKind, wanted: "stringData: {a: x}", live: "data: {a: eQ==}", want: `{"data":{"a":"eA=="}}`},
		"dropped text of a Secret":           {kind: secretKind, before: "stringData: {a: x, b: z}", wanted: "stringData: {a: x}", live: "data: {a: eA==, b: eg==}", want: `{"data":{"b":null}}`},
		"text over data of a Secret":         {kind: secretKind, wanted: "stringData: {a: x}\ndata: {a: eQ==}", live: "data: {a: eA==}"},
		"texts of a Secret that are none":    {kind: secretKind, wanted: "stringData: {a: 1}", live: "data: {a: eA==}", want: `{"stringData":{"a":1}}`},
		"nothing instead of an empty map":    {kind: configMapKind, wanted: "data: null", live: "immutable: false"},
		"nothing where somebody has data":    {kind: configMapKind, wanted: "data: null", live: "data: {a: x}", want: `{"data":null}`},
		"empty list instead of nothing":      {kind: roleKind, wanted: "rules: []", live: "rules: null"},
		"empty list where somebody has some": {kind: roleKind, wanted: "rules: []", live: "rules: [{verbs: [get]}]", want: `{"rules":[]}`},
		"defaults in a custom resource":      {kind: customKind, wanted: "spec: {list: [{a: 1}]}", live: "spec: {list: [{a: 1, b: 2}], c: 3}"},
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
	configMapKind  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	webhookKind    = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: x}\n"
	definitionKind = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n"
	budgetKind     = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x}\n"
	deploymentKind = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n"
	secretKind     = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"
	serviceKind    = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n"
	roleKind       = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\n"
	customKind     = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\n"
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
