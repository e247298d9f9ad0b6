package permission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestMinimal(t *testing.T) {
	t.Parallel()
	url := func(path string) Rule {
		return Rule{PolicyRule: rbacv1.PolicyRule{NonResourceURLs: []string{path}, Verbs: []string{"get"}}}
	}
	tests := map[string]struct {
		rules []Rule
		want  []string
	}{
		"none": {},
		"a right on all names includes one on a name": {
			rules: []Rule{rule("n", "|a:x", "get"), rule("n", "|a", "get")},
			want:  []string{`Namespace:"n" APIGroups:[] Resources:[a] Verbs:[get]`},
		},
		"a right everywhere includes one in a namespace, also by name": {
			rules: []Rule{rule("n", "|a:x", "get"), rule("m", "|a", "get"), rule("", "|a", "get")},
			want:  []string{`Namespace:"" APIGroups:[] Resources:[a] Verbs:[get]`},
		},
		"a right in a namespace does not include one elsewhere": {
			rules: []Rule{rule("n", "|*", "get"), rule("m", "|a", "get"), rule("", "|b", "get")},
			want: []string{
				`Namespace:"" APIGroups:[] Resources:[b] Verbs:[get]`,
				`Namespace:"m" APIGroups:[] Resources:[a] Verbs:[get]`,
				`Namespace:"n" APIGroups:[] Resources:[*] Verbs:[get]`,
			},
		},
		"wildcards include the rest": {
			rules: []Rule{rule("", "|a", "get", "*"), rule("", "g|*/status", "get"), rule("n", "g|a/status:x", "get"), rule("", "g|a", "get")},
			want: []string{
				`Namespace:"" APIGroups:[] Resources:[a] Verbs:[*]`,
				`Namespace:"" APIGroups:[g] Resources:[*/status] Verbs:[get]`,
				`Namespace:"" APIGroups:[g] Resources:[a] Verbs:[get]`,
			},
		},
		"wildcards include smaller ones": {
			rules: []Rule{rule("", "g|*", "get"), rule("n", "*|*", "get"), rule("", "*|*", "get")},
			want:  []string{`Namespace:"" APIGroups:[*] Resources:[*] Verbs:[get]`},
		},
		"of two that include each other one stays": {
			rules: []Rule{url("/a*"), url("/a**"), url("/a/b")},
			want:  []string{`Namespace:"" Verbs:[get] NonResourceURLs:[/a**]`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lines(merged(minimal(rightsOf(test.rules))))
			if diff := cmp.Diff(append([]string{}, test.want...), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
