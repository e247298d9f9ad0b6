package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestPrerequisites(t *testing.T) {
	t.Parallel()
	const (
		pod       = `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, spec: {serviceAccountName: a}}`
		bindsRole = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: ns},
		  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}}`
		bindsClusterRole = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: ns},
		  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}}`
		service = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns}}`
		custom  = `{apiVersion: a.test/v1, kind: Thing, metadata: {name: t, namespace: ns}}`
	)
	tests := map[string]struct {
		reason string
		brings string
		object string
		want   bool
	}{
		"nothing of the kind":       {brings: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}}`, object: service},
		"its namespace":             {reason: "nothing can be created in one that is missing", brings: `{apiVersion: v1, kind: Namespace, metadata: {name: ns}}`, object: service, want: true},
		"another namespace":         {brings: `{apiVersion: v1, kind: Namespace, metadata: {name: other}}`, object: service},
		"its kind":                  {reason: "the schema may be another", brings: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.a.test}, spec: {group: a.test, names: {kind: Thing}}}`, object: custom, want: true},
		"another kind":              {brings: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: others.a.test}, spec: {group: a.test, names: {kind: Other}}}`, object: custom},
		"its role":                  {reason: "who binds a role must have what it grants", brings: `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: ns}}`, object: bindsRole, want: true},
		"its cluster role":          {reason: "as above", brings: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}`, object: bindsClusterRole, want: true},
		"a role of that name":       {brings: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}`, object: bindsRole},
		"its account":               {reason: "pods of one that is missing are refused", brings: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: ns}}`, object: pod, want: true},
		"a quota":                   {reason: "it may allow more than the one before", brings: `{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: ns}}`, object: service, want: true},
		"a quota elsewhere":         {brings: `{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: other}}`, object: service},
		"limits":                    {reason: "as above", brings: `{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: ns}}`, object: service, want: true},
		"a policy":                  {reason: "it may be about anything", brings: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: p}}`, object: service, want: true},
		"a webhook":                 {reason: "it comes last", brings: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}}`, object: service},
		"the account of a workload": {reason: "its pods are made later", brings: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: ns}}`, object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := []Step{stepOf(t, tc.brings), stepOf(t, tc.object)}
			if got := prerequisitesOf(steps).concern(&steps[1]); got != tc.want {
				t.Errorf("concern() = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func stepOf(t *testing.T, text string) Step {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	key := object.Key{GroupKind: obj.GroupVersionKind().GroupKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
	return Step{Item: object.Item{Key: key, Object: obj}}
}
