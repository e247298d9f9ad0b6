package manifest

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

func TestNamesThatAreNotChosen(t *testing.T) {
	t.Parallel()
	for want, choice := range map[string]Choice{
		"p in p by p-installer":  {Package: "p"},
		"x in p by x-installer":  {Package: "p", Name: "x"},
		"x in ns by x-installer": {Package: "p", Name: "x", Namespace: "ns"},
		"x in ns by a":           {Package: "p", Name: "x", Namespace: "ns", ServiceAccount: "a"},
	} {
		whole := choice.Complete()
		if got := whole.Name + " in " + whole.Namespace + " by " + whole.ServiceAccount; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if problems := whole.Problems(); len(problems) > 0 {
			t.Errorf("%s: %v", want, problems)
		}
	}
}

// TestProblems has nothing right but the package, and text that is too long for a line.
func TestProblems(t *testing.T) {
	t.Parallel()
	choice := Choice{Package: "p", Name: "A_", Namespace: "a.b", ServiceAccount: strings.Repeat("a", 1000), Version: "newest", Catalog: "./catalog", Watch: []string{"a", "B"}}
	var fields []Field
	for _, problem := range choice.Problems() {
		fields = append(fields, problem.Field)
		if len(problem.Text) > 600 {
			t.Errorf("%d bytes: %s", len(problem.Text), problem.Text)
		}
	}
	if diff := cmp.Diff([]Field{FieldName, FieldNamespace, FieldServiceAccount, FieldVersion, FieldCatalog, FieldWatch}, fields); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNamespacesToWatchAreBounded(t *testing.T) {
	t.Parallel()
	choice := Choice{Package: "p", Watch: make([]string, 101)}.Complete()
	problems := choice.Problems()
	if len(problems) != 1 || problems[0] != (Problem{FieldWatch, "101 namespaces to watch, more than 100"}) {
		t.Errorf("got %v", problems)
	}
}

func TestConfigurationsThatNoFileHas(t *testing.T) {
	t.Parallel()
	if ext, err := (Choice{Config: map[string]any{"a": math.Inf(1)}}).Extension(); err == nil {
		t.Errorf("got %v", ext)
	}
}

// TestDocuments wants the ServiceAccount without rights where these are not known, and reasons
// of rules as comments.
func TestDocuments(t *testing.T) {
	t.Parallel()
	ext, err := Choice{Package: "p"}.Complete().Extension()
	if err != nil {
		t.Fatal(err)
	}
	ext.Annotations = map[string]string{lastApplied: "{}"}
	role := permission.Document{
		Object:  map[string]any{"kind": "ClusterRole", "rules": []rbacv1.PolicyRule{{Verbs: []string{"get"}}}},
		Reasons: map[int]string{0: "Because."},
	}
	const (
		before = "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: p\n---\n"
		after  = `---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata:
  name: p
spec:
  namespace: p
  serviceAccount:
    name: p-installer
  source:
    catalog:
      packageName: p
    sourceType: Catalog
`
	)
	for want, rights := range map[string][]permission.Document{
		"apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: p-installer\n  namespace: p\n": nil,
		"kind: ClusterRole\nrules:\n# Because.\n- verbs:\n  - get\n":                             {role},
	} {
		documents, err := Documents(ext, rights)
		if err != nil {
			t.Fatal(err)
		}
		text, err := File(documents)
		if diff := cmp.Diff(before+want+after, text); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
}
