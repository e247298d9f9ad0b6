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
		"F15: pull secret of another writer": {
			reason: "platforms add credentials to each ServiceAccount",
			kind:   accountKind, wanted: "imagePullSecrets: [{name: a}]", live: "imagePullSecrets: [{name: x}, {name: a}]",
		},
		"F15: first pull secret beside one of another writer": {
			kind: accountKind, before: "secrets: []", wanted: "imagePullSecrets: [{name: a}]", live: "imagePullSecrets: [{name: x}]",
			want: `{"imagePullSecrets":[{"name":"x"},{"name":"a"}]}`,
		},
		"F15: dropped pull secret": {
			kind: accountKind, before: "imagePullSecrets: [{name: a}, {name: b}]", wanted: "imagePullSecrets: [{name: b}]",
			live: "imagePullSecrets: [{name: a}, {name: x}, {name: b}]",
			want: `{"imagePullSecrets":[{"name":"x"},{"name":"b"}]}`,
		},
		"F15: all pull secrets dropped": {
			kind: accountKind, before: "imagePullSecrets: [{name: a}]", wanted: "secrets: []", live: "imagePullSecrets: [{name: a}, {name: x}]",
			want: `{"imagePullSecrets":[{"name":"x"}]}`,
		},
		"F15: all pull secrets dropped, no other writer": {
			kind: accountKind, before: "imagePullSecrets: [{name: a}]", wanted: "secrets: []", live: "imagePullSecrets: [{name: a}]",
			want: `{"imagePullSecrets":null}`,
		},
		"F15: pull secrets that no revision sets": {kind: accountKind, wanted: "secrets: []", live: "imagePullSecrets: [{name: x}]"},
		"F12: the other half of a PodDisruptionBudget, by a user": {
			kind:   budgetKind,
			before: "spec: {minAvailable: 1}", wanted: "spec: {minAvailable: 1}", live: "spec: {maxUnavailable: 1}",
			want: `{"spec":{"maxUnavailable":null,"minAvailable":1}}`,
		},
		"F12: a strategy without the default of another one": {
			kind:   setKind,
			before: "spec: {replicas: 1}", wanted: "spec: {replicas: 1, updateStrategy: {type: OnDelete}}",
			live: "spec: {replicas: 1, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}",
			want: `{"spec":{"updateStrategy":{"rollingUpdate":null,"type":"OnDelete"}}}`,
		},
		"F12: conversion that an operator has switched on": {
			kind:   definitionKind,
			before: "spec: {conversion: {strategy: None}}", wanted: "spec: {conversion: {strategy: None}}",
			live: "spec: {conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}}",
			want: `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`,
		},
		"F12: a variable with a source, by a user": {
			kind:   deploymentKind,
			before: "spec: {template: {spec: {containers: [{name: c, env: [{name: A, value: x}]}]}}}",
			wanted: "spec: {template: {spec: {containers: [{name: c, env: [{name: A, value: x}]}]}}}",
			live:   "spec: {template: {spec: {containers: [{name: c, env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}}",
			want:   `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"$setElementOrder/env":[{"name":"A"}],"env":[{"name":"A","value":"x","valueFrom":null}],"name":"c"}]}}}}`,
		},
		"F12: a probe of another kind, by a user": {
			kind:   deploymentKind,
			before: "spec: {template: {spec: {containers: [{name: c, livenessProbe: {httpGet: {port: 1}}}]}}}",
			wanted: "spec: {template: {spec: {containers: [{name: c, livenessProbe: {httpGet: {port: 1}}}]}}}",
			live:   "spec: {template: {spec: {containers: [{name: c, livenessProbe: {tcpSocket: {port: 1}}}]}}}",
			want:   `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"livenessProbe":{"httpGet":{"port":1},"tcpSocket":null},"name":"c"}]}}}}`,
		},
		"F12: a key of a ConfigMap as binary data, by a user": {
			kind:   configMapKind,
			before: "data: {a: x}", wanted: "data: {a: x}", live: "binaryData: {a: eA==, b: eA==}",
			want: `{"binaryData":{"a":null},"data":{"a":"x"}}`,
		},
		"F13: dropped ServiceAccount of a pod": {
			reason: "the API server stores it under two names, and sets one from the other",
			kind:   deploymentKind,
			before: "spec: {template: {spec: {serviceAccountName: a}}}",
			wanted: "spec: {template: {spec: {}}}",
			live:   "spec: {template: {spec: {serviceAccountName: a, serviceAccount: a}}}",
			want:   `{"spec":{"template":{"spec":{"serviceAccount":null,"serviceAccountName":null}}}}`,
		},
		"F13: ServiceAccount under its old name": {
			kind: deploymentKind, wanted: "spec: {template: {spec: {serviceAccount: a}}}",
			live: "spec: {template: {spec: {serviceAccountName: a, serviceAccount: a}}}",
		},
		"F13: changed ServiceAccount under its old name": {
			kind:   deploymentKind,
			before: "spec: {template: {spec: {serviceAccount: a}}}", wanted: "spec: {template: {spec: {serviceAccount: b}}}",
			live: "spec: {template: {spec: {serviceAccountName: a, serviceAccount: a}}}",
			want: `{"spec":{"template":{"spec":{"serviceAccount":"b","serviceAccountName":"b"}}}}`,
		},
		"F13: ServiceAccount that another writer has set": {
			kind: deploymentKind, wanted: "spec: {template: {spec: {}}}", live: "spec: {template: {spec: {serviceAccountName: a, serviceAccount: a}}}",
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
				`"containers":[{"name":"c","resources":{"limits":{"cpu":"1"}}}]}}}}`,
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
			reason: "zero is none, so that the manifest does not say where to",
			kind:   serviceKind,
			wanted: "spec: {ports: [{port: 443, targetPort: 0}]}",
			live:   "spec: {ports: [{port: 443, protocol: TCP, targetPort: 8443}]}",
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
		"nothing where somebody has data":    {kind: configMapKind, wanted: "data: null", live: "data: {a: x}"},
		"empty list instead of nothing":      {kind: roleKind, wanted: "rules: []", live: "rules: null"},
		"empty list where somebody has some": {kind: roleKind, wanted: "rules: []", live: "rules: [{verbs: [get]}]", want: `{"rules":[]}`},
		"empty values beside a default": {
			reason: "the API server has filled in the scope, and leaves out what is empty",
			kind:   webhookKind,
			wanted: "webhooks: [{name: v, clientConfig: {caBundle: ''}}, {name: w, rules: [{operations: [CREATE]}]}]",
			live:   "webhooks: [{name: v, clientConfig: {}}, {name: w, rules: [{operations: [CREATE], scope: '*'}]}]",
		},
		"empty value beside a default in one list": {
			kind:   bindingKind,
			wanted: "subjects: [{kind: ServiceAccount, name: x, apiGroup: ''}, {kind: User, name: u}]",
			live:   "subjects: [{kind: ServiceAccount, name: x}, {kind: User, name: u, apiGroup: rbac.authorization.k8s.io}]",
		},
		"quantity beside a default": {
			kind:   statefulSetKind,
			wanted: "spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: {resources: {requests: {storage: 1024Mi}}}}]}",
			live:   "spec: {volumeClaimTemplates: [{metadata: {name: d, creationTimestamp: null}, spec: {volumeMode: Filesystem, resources: {requests: {storage: 1Gi}}}}]}",
		},
		"defaults beside an item of somebody else": {
			kind:   deploymentKind,
			wanted: "spec: {template: {spec: {volumes: [{name: a}, {name: b, projected: {sources: [{serviceAccountToken: {path: p}}]}}]}}}",
			live: "spec: {template: {spec: {volumes: [{name: a, emptyDir: {}}, {name: theirs, emptyDir: {}}, " +
				"{name: b, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: p, expirationSeconds: 3600}}]}}]}}}",
		},
		"item of somebody else with the key of ours": {
			reason: "the last one counts",
			kind:   deploymentKind,
			wanted: "spec: {template: {spec: {containers: [{name: c, env: [{name: E, value: a}]}]}}}",
			live:   "spec: {template: {spec: {containers: [{name: c, env: [{name: E, value: a}, {name: E, value: b}]}]}}}",
			want:   `{"spec":{"template":{"spec":{"containers":[{"env":[{"$patch":"replace"},{"name":"E","value":"a"}],"name":"c"}]}}}}`,
		},
		"one of two items with one key": {
			reason: "a strategic patch would change the other one",
			kind:   deploymentKind,
			wanted: "spec: {template: {spec: {containers: [{name: c, env: [{name: E, value: a}, {name: E, value: b}]}]}}}",
			live:   "spec: {template: {spec: {containers: [{name: c, env: [{name: E, value: a}, {name: E, value: c}]}]}}}",
			want:   `{"spec":{"template":{"spec":{"containers":[{"env":[{"$patch":"replace"},{"name":"E","value":"a"},{"name":"E","value":"b"}],"name":"c"}]}}}}`,
		},
		"the second of two items with one key": {
			kind:   serviceKind,
			wanted: "spec: {ports: [{port: 53, protocol: TCP}, {port: 53, protocol: UDP}]}",
			live:   "spec: {ports: [{port: 53, protocol: TCP}]}",
			want:   `{"spec":{"ports":[{"$patch":"replace"},{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}]}}`,
		},
		"F14: a port for TCP and UDP beside an injected sidecar": {
			reason: "only that list is replaced, and entries of others are kept",
			kind:   deploymentKind,
			before: "spec: {template: {spec: {containers: [{name: c, image: a, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}]}}}",
			wanted: "spec: {template: {spec: {containers: [{name: c, image: b, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: SCTP}]}]}}}",
			live: "spec: {template: {spec: {containers: [{name: c, image: a, env: [{name: MESH}], ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}, " +
				"{containerPort: 9, protocol: TCP}]}, {name: proxy}]}}}",
			want: `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"image":"b","name":"c","ports":[{"$patch":"replace"},` +
				`{"containerPort":53,"protocol":"TCP"},{"containerPort":53,"protocol":"SCTP"},{"containerPort":9,"protocol":"TCP"}]}]}}}}`,
		},
		"F14: an image beside ports for TCP and UDP": {
			kind:   deploymentKind,
			wanted: "spec: {template: {spec: {containers: [{name: c, image: b, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}]}}}",
			live:   "spec: {template: {spec: {containers: [{name: c, image: a, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}, {name: proxy}]}}}",
			want:   `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"image":"b","name":"c"}]}}}}`,
		},
		"F13: the default of policyTypes follows egress": {
			reason: "egress would be denied, which the new version allows",
			kind:   policyKind, before: "spec: {egress: [{}]}", wanted: "spec: {}", live: "spec: {egress: [{}], policyTypes: [Ingress, Egress]}",
			want: `{"spec":{"egress":null,"policyTypes":["Ingress"]}}`,
		},
		"F13: policyTypes that another writer has set": {
			kind: policyKind, before: "spec: {egress: [{}]}", wanted: "spec: {}", live: "spec: {egress: [{}], policyTypes: [Egress]}",
			want: `{"spec":{"egress":null}}`,
		},
		"F13: the default of imagePullPolicy follows the image": {
			kind: deploymentKind, before: "spec: {template: {spec: {containers: [{name: c, image: 'r:5000/c'}]}}}",
			wanted: "spec: {template: {spec: {containers: [{name: c, image: 'r:5000/c@sha256:1'}]}}}",
			live:   "spec: {template: {spec: {containers: [{name: c, image: 'r:5000/c', imagePullPolicy: Always}]}}}",
			want: `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"image":"r:5000/c@sha256:1",` +
				`"imagePullPolicy":"IfNotPresent","name":"c"}]}}}}`,
		},
		"F13: ports of the node go with hostNetwork": {
			kind: deploymentKind, before: "spec: {template: {spec: {hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80}]}]}}}",
			wanted: "spec: {template: {spec: {containers: [{name: c, ports: [{containerPort: 80}]}]}}}",
			live:   "spec: {template: {spec: {hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]}}}",
			want: `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"$setElementOrder/ports":[{"containerPort":80}],` +
				`"name":"c","ports":[{"containerPort":80,"hostPort":null}]}],"hostNetwork":null}}}}`,
		},
		"F16: entries of others in a map that is dropped": {
			kind: deploymentKind, before: "spec: {template: {spec: {nodeSelector: {a: b}}}}", wanted: "spec: {template: {spec: {}}}",
			live: "spec: {template: {spec: {nodeSelector: {a: b, theirs: c}}}}", want: `{"spec":{"template":{"spec":{"nodeSelector":{"a":null}}}}}`,
		},
		"F16: entries of others in a list that is dropped": {
			kind: deploymentKind, before: "spec: {template: {spec: {volumes: [{name: a}]}}}", wanted: "spec: {template: {spec: {}}}",
			live: "spec: {template: {spec: {volumes: [{name: a}, {name: theirs}]}}}", want: `{"spec":{"template":{"spec":{"volumes":[{"$patch":"delete","name":"a"}]}}}}`,
		},
		"live item without a key": {
			reason: "a strategic patch cannot be made",
			kind:   accountKind, wanted: "secrets: [{name: a}]", live: "secrets: [{}]", want: `{"secrets":[{"$patch":"replace"},{"name":"a"}]}`,
		},
		"map that this program does not know": {
			reason: "a strategic patch cannot be made",
			kind:   deploymentKind, before: "spec: {novelty: {a: 1}}", wanted: "spec: {novelty: {a: 2}}", live: "spec: {novelty: {a: 1}}",
			want: `{"spec":{"novelty":{"a":2}}}`,
		},
		"false in a definition": {
			kind: definitionKind,
			wanted: "spec: {preserveUnknownFields: false, names: {shortNames: []}, versions: [{name: v1, deprecated: false, " +
				"additionalPrinterColumns: [{name: Age, priority: 0}], schema: {openAPIV3Schema: {properties: {a: {nullable: false, items: {description: ''}}}}}}]}",
			live: "spec: {names: {}, versions: [{name: v1, additionalPrinterColumns: [{name: Age}], schema: {openAPIV3Schema: {properties: {a: {items: {}}}}}}]}",
		},
		"default of a schema that is empty": {
			reason: "it is content, of no type",
			kind:   definitionKind,
			wanted: "spec: {versions: [{name: v1, schema: {openAPIV3Schema: {default: {}}}}]}",
			live:   "spec: {versions: [{name: v1, schema: {openAPIV3Schema: {type: object}}}]}",
			want:   `{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"default":{}}}}]}}`,
		},
		"false in an APIService": {kind: apiServiceKind, wanted: "spec: {insecureSkipTLSVerify: false}", live: "spec: {groupPriorityMinimum: 1}"},
		"empty list that is none": {
			reason: "the API server has its default in the place of it",
			kind:   policyKind, wanted: "spec: {policyTypes: [], egress: [{}]}", live: "spec: {policyTypes: [Ingress, Egress], egress: [{}]}",
		},
		"entry without a value":       {kind: configMapKind, wanted: "data: {a: null}", live: "data: {a: ''}"},
		"entry without a value, gone": {kind: configMapKind, wanted: "data: {a: null}", live: "data: {b: x}", want: `{"data":{"a":""}}`},
		"empty entry that is gone":    {kind: configMapKind, wanted: "data: {a: ''}", live: "data: {b: x}", want: `{"data":{"a":""}}`},
		"dropped null": {
			reason: "it has said nothing, so that what is there is not of the revision before",
			kind:   deploymentKind, before: "spec: {template: {spec: {nodeSelector: null}}}",
			wanted: "spec: {template: {spec: {}}}", live: "spec: {template: {spec: {nodeSelector: {a: b}}}}",
		},
		"the same in other words than before": {
			kind:   bindingKind,
			before: "subjects: [{kind: User, name: u}]", wanted: "subjects: [{kind: User, name: u, namespace: ''}]",
			live: "subjects: [{kind: User, name: u, apiGroup: rbac.authorization.k8s.io}]",
		},
		"default that was not said before": {
			kind:   bindingKind,
			before: "subjects: [{kind: User, name: u}]", wanted: "subjects: [{kind: User, name: u, apiGroup: rbac.authorization.k8s.io}]",
			live: "subjects: [{kind: User, name: u, apiGroup: rbac.authorization.k8s.io}]",
		},
		"nothing in a default of a custom resource": {
			kind: customKind, wanted: "spec: {block: {text: null}}", live: "spec: {block: {open: true}}",
		},
		"nothing in a list of a custom resource": {
			kind: customKind, wanted: "spec: {list: [{a: 1, b: null}]}", live: "spec: {list: [{a: 1, b: 2}]}",
		},
		"nothing that somebody has set in a custom resource": {kind: customKind, wanted: "spec: {a: null}", live: "spec: {a: 1}"},
		"something before that is nothing now": {
			kind: customKind, before: "spec: {a: 1}", wanted: "spec: {a: null}", live: "spec: {a: 1}", want: `{"spec":{"a":null}}`,
		},
		"empty list of finalizers of a custom resource": {kind: customMetadata, wanted: "metadata: {finalizers: []}", live: "metadata: {name: x}"},
		"defaults in a custom resource":                 {kind: customKind, wanted: "spec: {list: [{a: 1}]}", live: "spec: {list: [{a: 1, b: 2}], c: 3}"},
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
	bindingKind    = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: x}\n"
	setKind        = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x}\n"
	accountKind    = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x}\n"
	policyKind     = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x}\n"
	apiServiceKind = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: x}\n"
	customKind     = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\n"
	customMetadata = "apiVersion: example.com/v1\nkind: Thing\n"

	statefulSetKind = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x}\n"
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
