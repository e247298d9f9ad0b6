package permission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGrowth(t *testing.T) {
	t.Parallel()
	bound := bindingTo("ns2", "Role", "reader", "op")
	tests := map[string]struct {
		before, wanted []string
		want           []string
	}{
		"all is new on the first installation": {
			wanted: []string{aRole, bound},
			want:   []string{`ServiceAccount "ns1/op": Namespace:"ns2" APIGroups:[""] Resources:[secrets] Verbs:[get,list]`},
		},
		"nothing changes": {before: []string{aRole, bound}, wanted: []string{aRole, bound}},
		"a role that nobody is bound to gives nothing": {wanted: []string{aRole}},
		"another name for a role gives nothing": {
			before: []string{aRole, bound},
			wanted: []string{strings.Replace(aRole, "reader", "other", 1), bindingTo("ns2", "Role", "other", "op")},
		},
		"rules that were included give nothing": {
			before: []string{strings.Replace(aRole, "[get, list]", `["*"]`, 1), bound}, wanted: []string{aRole, bound},
		},
		"one more verb": {
			before: []string{aRole, bound}, wanted: []string{strings.Replace(aRole, "[get, list]", "[get, list, delete]", 1), bound},
			want: []string{`ServiceAccount "ns1/op": Namespace:"ns2" APIGroups:[""] Resources:[secrets] Verbs:[delete]`},
		},
		"what held everywhere is no growth in a namespace": {
			before: []string{aClusterRole, bindingTo("", "ClusterRole", "reader", "op")},
			wanted: []string{strings.Replace(aRole, "get, list", "get", 1), bound},
		},
		"what held in a namespace is growth everywhere": {
			before: []string{strings.Replace(aRole, "get, list", "get", 1), bound},
			wanted: []string{strings.Replace(aClusterRole, "/metrics", "/healthz", 1), bindingTo("", "ClusterRole", "reader", "op")},
			want: []string{
				`ServiceAccount "ns1/op": Namespace:"" APIGroups:[""] Resources:[secrets] Verbs:[get]`,
				`ServiceAccount "ns1/op": Namespace:"" Verbs:[get] NonResourceURLs:[/healthz]`,
			},
		},
		"somebody else gets the role": {
			before: []string{aRole, bound}, wanted: []string{aRole, bindingTo("ns2", "Role", "reader", "op", "second")},
			want: []string{`ServiceAccount "ns1/second": Namespace:"ns2" APIGroups:[""] Resources:[secrets] Verbs:[get,list]`},
		},
		"a group gets the role": {
			wanted: []string{aRole, strings.Replace(bound, "kind: ServiceAccount, name: op, namespace: ns1", "kind: Group, name: everybody", 1)},
			want:   []string{`Group "everybody": Namespace:"ns2" APIGroups:[""] Resources:[secrets] Verbs:[get,list]`},
		},
		"a role of others": {
			wanted: []string{bindingTo("ns2", "ClusterRole", "view", "op")},
			want:   []string{`ServiceAccount "ns1/op": Namespace:"ns2" all that ClusterRole "view" grants`},
		},
		"a role of others that was bound everywhere": {
			before: []string{bindingTo("", "ClusterRole", "view", "op")}, wanted: []string{bindingTo("ns2", "ClusterRole", "view", "op")},
		},
		"a role that gathers rules": {
			wanted: []string{anAggregatedRole, bindingTo("", "ClusterRole", "gathered", "op")},
			want:   []string{`ServiceAccount "ns1/op": Namespace:"" all that ClusterRole "gathered" grants`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := Content{Wanted: objects(t, test.wanted...)}
			if len(test.before) > 0 {
				content.Before = objects(t, test.before...)
			}
			gains, err := Growth(Guessed, who, content)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]string{}, test.want...), lines(gains)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
