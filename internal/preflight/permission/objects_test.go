package permission

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// who installs in all tests without a cluster.
var who = Subject{Extension: "ext", Namespace: "ns1", ServiceAccount: "installer"}

// objects reads YAML documents.
func objects(t *testing.T, documents ...string) []*unstructured.Unstructured {
	t.Helper()
	var read []*unstructured.Unstructured
	for text := range strings.SplitSeq(strings.Join(documents, "\n---\n"), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), object); err != nil {
			t.Fatal(err)
		}
		read = append(read, object)
	}
	return read
}

func needsOf(t *testing.T, content Content) Needs {
	t.Helper()
	needs, err := NeedsOf(Guessed, who, content)
	if err != nil {
		t.Fatal(err)
	}
	return needs
}

// rule is in group/resource[:name] and verbs.
func rule(namespace, resource string, verbs ...string) Rule {
	resource, name, named := strings.Cut(resource, ":")
	group, resource, found := strings.Cut(resource, "|")
	if !found {
		group, resource = "", group
	}
	rule := Rule{Namespace: namespace, PolicyRule: rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs,
	}}
	if named {
		rule.ResourceNames = []string{name}
	}
	return rule
}

// lines are rules as people read them.
func lines[T interface{ String() string }](items []T) []string {
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = item.String()
	}
	return lines
}

const (
	aConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}`

	aDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: oxen.farm.test}
spec:
  group: farm.test
  scope: Cluster
  names: {kind: Ox, plural: oxen}`

	aRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: ns2}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, list]}`

	aClusterRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get]}
- {nonResourceURLs: [/metrics], verbs: [get]}`

	anAPIService = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.garden.test}
spec: {group: garden.test, version: v1, service: {namespace: ns1, name: gardener-service}}`

	anAggregatedRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gathered}
aggregationRule:
  clusterRoleSelectors:
  - matchLabels: {gather: "yes"}`
)

// bindingTo is a ClusterRoleBinding, or a RoleBinding if there is a namespace.
func bindingTo(namespace, kind, name string, subjects ...string) string {
	binding := "ClusterRoleBinding"
	if namespace != "" {
		binding = "RoleBinding"
	}
	text := `
apiVersion: rbac.authorization.k8s.io/v1
kind: ` + binding + `
metadata: {name: bound, namespace: "` + namespace + `"}
roleRef: {kind: ` + kind + `, name: "` + name + `"}
subjects:`
	for _, subject := range subjects {
		text += "\n- {kind: ServiceAccount, name: " + subject + ", namespace: ns1}"
	}
	return text
}

// newHeld is for who holds exactly these rules.
func newHeld(rules []Rule) Held {
	held := Held{Namespaces: map[string][]rbacv1.PolicyRule{}}
	for _, rule := range rules {
		if rule.Namespace == "" {
			held.Everywhere = append(held.Everywhere, rule.PolicyRule)
			continue
		}
		held.Namespaces[rule.Namespace] = append(held.Namespaces[rule.Namespace], rule.PolicyRule)
	}
	return held
}
