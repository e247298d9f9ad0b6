package packagecard

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func TestPowersOf(t *testing.T) {
	t.Parallel()
	const (
		bound = `{kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {kind: ClusterRole, name: r}}`
		twice = `{kind: ClusterRoleBinding, metadata: {name: c}, roleRef: {kind: ClusterRole, name: r}}`
	)
	for name, test := range map[string]struct {
		objects []string
		want    Rights
	}{
		"none": {},
		"a role that nobody is bound to": {objects: []string{
			`{kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`,
		}},
		"everything": {
			[]string{bound, twice, `{kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`},
			Rights{Everywhere: 1, Sweeping: []string{
				"it may do everything, everywhere", "it may grant rights that it does not have", "it may act as somebody else",
				"it may act as any ServiceAccount", "it may get tokens of any ServiceAccount", "it may read the Secrets of all namespaces",
				"it may run commands in the pods of all namespaces", "it may change what admission does",
			}},
		},
		"Secrets of all namespaces": {
			[]string{bound, `{kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: [""], resources: [secrets, pods], verbs: [list]}, {apiGroups: [""], resources: [pods], verbs: [get]}]}`},
			Rights{Everywhere: 2, Sweeping: []string{"it may read the Secrets of all namespaces"}},
		},
		"one Secret, writing Secrets, and Secrets of another group": {
			[]string{bound, `{kind: ClusterRole, metadata: {name: r}, rules: [
				{apiGroups: [""], resources: [secrets], resourceNames: [s], verbs: [get]},
				{apiGroups: [""], resources: [secrets], verbs: [create]},
				{apiGroups: [g], resources: [secrets], verbs: [get]}]}`},
			Rights{Everywhere: 3},
		},
		"a role of somebody else": {
			[]string{`{kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {kind: ClusterRole, name: cluster-admin}}`},
			Rights{Sweeping: []string{`it is bound to ClusterRole "cluster-admin", which is none of its own`}},
		},
		"in namespaces": {
			[]string{
				`{kind: Role, metadata: {name: r, namespace: one}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`,
				`{kind: RoleBinding, metadata: {name: b, namespace: one}, roleRef: {kind: Role, name: r}}`,
				`{kind: Role, metadata: {name: r, namespace: two}, rules: [{}, {}]}`,
				`{kind: ClusterRole, metadata: {name: c}, rules: [{}, {}, {}]}`,
				`{kind: RoleBinding, metadata: {name: c, namespace: one}, roleRef: {kind: ClusterRole, name: c}}`,
			},
			Rights{InNamespaces: 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []*unstructured.Unstructured
			for _, text := range test.objects {
				objects = append(objects, object(t, text))
			}
			got, err := RightsOf(objects)
			if err != nil || got.Everywhere != test.want.Everywhere || got.InNamespaces != test.want.InNamespaces || !slices.Equal(got.Sweeping, test.want.Sweeping) {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
	if _, err := RightsOf([]*unstructured.Unstructured{object(t, `{kind: Role, metadata: {name: r}, rules: none}`)}); err == nil {
		t.Error("a role that is none is taken for one")
	}
}
