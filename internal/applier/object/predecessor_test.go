package object

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestPredecessorLeft has the marks of classic OLM as they are on real objects: section 2.2 of what
// is known of migrations.
func TestPredecessorLeft(t *testing.T) {
	t.Parallel()
	operator := Predecessor{Namespace: "ops", Package: "garden", ServiceVersion: "garden.v1.0.0"}
	const component = "operators.coreos.com/garden.ops"
	owned := map[string]string{"olm.managed": "true", "olm.owner": "garden.v1.0.0", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": "ops"}
	tests := map[string]struct {
		operator  *Predecessor
		namespace string
		labels    map[string]string
		owners    []metav1.OwnerReference
		had, left bool
	}{
		"a Deployment": {namespace: "ops", labels: with(owned, map[string]string{component: ""}), had: true, left: true},
		"one that is still owned": {
			namespace: "ops", labels: with(owned, map[string]string{component: ""}), had: true,
			owners: []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "garden.v1.0.0", UID: "1"}},
		},
		"one that somebody controls": {
			namespace: "ops", labels: owned,
			owners: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "1", Controller: new(true)}},
		},
		"a webhook configuration":             {labels: owned, had: true, left: true},
		"a ClusterRole of the bundle":         {labels: map[string]string{"olm.managed": "true", "olm.owner": "garden.v1.0.0"}, had: true, left: true},
		"a definition":                        {labels: map[string]string{"olm.managed": "true", component: ""}, had: true, left: true},
		"a definition of two operators":       {labels: map[string]string{"olm.managed": "true", component: "", "operators.coreos.com/barn.ops": ""}},
		"a definition of another operator":    {labels: map[string]string{"olm.managed": "true", "operators.coreos.com/barn.ops": ""}},
		"a definition without a component":    {labels: map[string]string{"olm.managed": "true"}},
		"the Secret of a certificate":         {namespace: "ops", labels: map[string]string{"olm.managed": "true"}, had: true, left: true},
		"one of another namespace":            {namespace: "other", labels: map[string]string{"olm.managed": "true"}},
		"of another ClusterServiceVersion":    {namespace: "ops", labels: with(owned, map[string]string{"olm.owner": "garden.v2.0.0", component: ""})},
		"of one in another namespace":         {labels: with(owned, map[string]string{"olm.owner.namespace": "other"})},
		"of nobody":                           {namespace: "ops"},
		"nothing is to be taken over":         {operator: &Predecessor{}, namespace: "ops", labels: owned},
		"nothing, before a bundle was chosen": {operator: &Predecessor{Namespace: "ops", Package: "garden"}, namespace: "ops", labels: owned},
		"a component whose label has been cut": {
			operator: &Predecessor{Namespace: "n", Package: strings.Repeat("a", 62) + "-bc", ServiceVersion: "p.v1"},
			labels:   map[string]string{"operators.coreos.com/" + strings.Repeat("a", 62): ""}, had: true, left: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &unstructured.Unstructured{Object: map[string]any{}}
			live.SetNamespace(tt.namespace)
			live.SetLabels(tt.labels)
			live.SetOwnerReferences(tt.owners)
			of := operator
			if tt.operator != nil {
				of = *tt.operator
			}
			if had, left := of.Had(live), of.Left(live); had != tt.had || left != tt.left {
				t.Errorf("had %t, left %t; want %t, %t", had, left, tt.had, tt.left)
			}
		})
	}
}

// TestPredecessorApplied: what others have set is not in it.
func TestPredecessorApplied(t *testing.T) {
	t.Parallel()
	live := fromYAML(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: garden
  namespace: ops
  uid: 1a
  labels: {olm.owner: garden.v1.0.0, team: green}
  annotations: {deployment.kubernetes.io/revision: "3"}
  ownerReferences: [{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, name: garden.v1.0.0, uid: 2b}]
  managedFields:
  - manager: olm
    operation: Update
    fieldsV1: {"f:metadata":{"f:labels":{".":{},"f:olm.owner":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"2b\"}":{}}},"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"manager\"}":{".":{},"f:name":{},"f:image":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}}}}}}}}
  - manager: olm.install
    operation: Apply
    fieldsV1: {"f:spec":{"f:template":{"f:spec":{"f:nodeSelector":{},"f:containers":{"k:{\"name\":\"manager\"}":{"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}}}}}}}}
  - manager: kubectl
    operation: Update
    fieldsV1: {"f:metadata":{"f:labels":{"f:team":{}}},"f:spec":{"f:replicas":{}}}
  - manager: olm
    subresource: status
    operation: Update
    fieldsV1: {"f:status":{}}
spec:
  replicas: 5
  template:
    spec:
      nodeSelector: {disk: fast}
      containers:
      - name: manager
        image: garden:1
        env: [{name: A, value: a}, {name: B, value: b}]
        ports: [{containerPort: 8080, protocol: TCP}, {containerPort: 9090, protocol: TCP}]
      - name: sidecar
        image: other
status: {replicas: 5}
`)
	want := fromYAML(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: garden
  namespace: ops
  labels: {olm.owner: garden.v1.0.0}
  ownerReferences: [{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, name: garden.v1.0.0, uid: 2b}]
spec:
  template:
    spec:
      nodeSelector: {disk: fast}
      containers:
      - name: manager
        image: garden:1
        env: [{name: A, value: a}]
        ports: [{containerPort: 8080, protocol: TCP}]
`)
	before := live.DeepCopy()
	if diff := cmp.Diff(want.Object, Predecessor{}.Applied(live).Object); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff(before.Object, live.Object); diff != "" {
		t.Errorf("the live object was changed: -was +is\n%s", diff)
	}
}

// TestPredecessorAppliedLeaves what is in use: certificates, and the trust in them.
func TestPredecessorAppliedLeaves(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ live, want string }{
		"the data of a Secret": {
			live: `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ops, managedFields: [{manager: olm, operation: Update, fieldsV1: {"f:data":{".":{},"f:tls.crt":{}},"f:type":{}}}]}, type: kubernetes.io/tls, data: {tls.crt: YQ==}}`,
			want: `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ops}, type: kubernetes.io/tls}`,
		},
		"the authority of an API": {
			live: `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a.test, managedFields: [{manager: olm, operation: Update, fieldsV1: {"f:spec":{"f:caBundle":{},"f:version":{}}}}]}, spec: {caBundle: YQ==, version: v1}}`,
			want: `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a.test}, spec: {version: v1}}`,
		},
		"the authority of a conversion": {
			live: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: d, managedFields: [{manager: catalog, operation: Update, fieldsV1: {"f:spec":{"f:conversion":{}}}}]}, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: YQ==, service: {name: s}}}}}}`,
			want: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: d}, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: s}}}}}}`,
		},
		"all that others have set": {
			live: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ops, managedFields: [{manager: kubectl, operation: Update, fieldsV1: {"f:data":{}}}]}, data: {a: b}}`,
			want: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ops}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(fromYAML(t, tt.want).Object, Predecessor{}.Applied(fromYAML(t, tt.live)).Object); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestPredecessorAppliedTakesLinearly: whoever may write an object makes lists of it as long as they like, in the name of
// classic OLM if they want, and the controller looks at them.
func TestPredecessorAppliedTakesLinearly(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	measure := func(count int) float64 {
		finalizers, references := make([]any, count), make([]any, count)
		set := map[string]any{}
		for i := range count {
			finalizers[i] = fmt.Sprintf("f/%d", i)
			references[i] = map[string]any{"uid": fmt.Sprintf("u%d", i)}
			set[fmt.Sprintf("v:%q", finalizers[i])], set[fmt.Sprintf(`k:{"uid":"u%d"}`, i)] = map[string]any{}, map[string]any{}
		}
		fields, err := json.Marshal(map[string]any{"f:metadata": map[string]any{"f:finalizers": set, "f:ownerReferences": set}})
		if err != nil {
			t.Fatal(err)
		}
		live := fromYAML(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ops}}`)
		metadata, _ := live.Object["metadata"].(map[string]any)
		metadata["finalizers"], metadata["ownerReferences"] = finalizers, references
		written := &metav1.FieldsV1{}
		written.SetRawBytes(fields)
		live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "olm", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: written}})
		return testing.AllocsPerRun(1, func() {
			if got := (Predecessor{}).Applied(live); len(got.GetFinalizers()) != count || len(got.Object["metadata"].(map[string]any)["ownerReferences"].([]any)) != count {
				t.Errorf("of %d there are %d finalizers", count, len(got.GetFinalizers()))
			}
		})
	}
	if few, more := measure(100), measure(800); more > 16*few {
		t.Errorf("8 times the items take %.0f allocations rather than %.0f", more, few)
	}
}
