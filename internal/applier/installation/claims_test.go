package installation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
)

func TestClaimsOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		object string
		want   installation.Claims
		fails  bool
	}{
		"new":     {reason: "the operator has not said anything yet", object: "spec: {deployments: [p]}"},
		"no spec": {reason: "as much as that", object: "kind: OperatorCondition"},
		"of other types": {
			reason: "they are nothing to an upgrade",
			object: "spec: {conditions: [{type: Degraded, status: 'False'}], overrides: [{type: Degraded, status: 'True'}]}",
		},
		"both": {
			reason: "who wins is for others to say",
			object: "spec: {conditions: [{type: Upgradeable, status: 'False', reason: Busy, message: migration}], overrides: [{type: Upgradeable, status: 'True'}]}",
			want: installation.Claims{
				Operator: &installation.Claim{Status: "False", Reason: "Busy", Message: "migration"}, Override: &installation.Claim{Status: "True"},
			},
		},
		"a copy in the status": {
			reason: "O6: it can be old",
			object: "status: {conditions: [{type: Upgradeable, status: 'False', lastTransitionTime: never}]}\nspec: {conditions: [{type: Upgradeable, status: 'True'}]}",
			want:   installation.Claims{Operator: &installation.Claim{Status: "True"}},
		},
		"of version v1": {
			reason: "operators that are built with it write the status, and nothing makes a copy",
			object: "apiVersion: operators.coreos.com/v1\nspec: {overrides: [{type: Upgradeable, status: 'True'}]}\nstatus: {conditions: [{type: Upgradeable, status: 'False', reason: Busy}]}",
			want: installation.Claims{
				Operator: &installation.Claim{Status: "False", Reason: "Busy"}, Override: &installation.Claim{Status: "True"},
			},
		},
		"of version v1, with a spec of v2": {
			reason: "it has no conditions there",
			object: "apiVersion: operators.coreos.com/v1\nspec: {conditions: [{type: Upgradeable, status: 'False'}]}",
		},
		"twice": {
			reason: "the first counts, as in classic OLM",
			object: "spec: {conditions: [{type: Upgradeable, status: 'True'}, {type: Upgradeable, status: 'False'}]}",
			want:   installation.Claims{Operator: &installation.Claim{Status: "True"}},
		},
		"many words": {
			reason: "a message is one line of bounded length",
			object: "spec: {conditions: [{type: Upgradeable, status: 'False', message: \"one\\ntwo " + strings.Repeat("x", 2000) + "\"}]}",
			want: installation.Claims{Operator: &installation.Claim{
				Status: "False", Message: "one two " + strings.Repeat("x", 1024-len("one two ")-len("…")) + "…",
			}},
		},
		"not of its kind": {reason: "what it says is not known", object: "spec: {conditions: [{type: Upgradeable, status: {}}]}", fails: true},
		"no list":         {reason: "likewise", object: "spec: {overrides: none}", fails: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.object), &object.Object); err != nil {
				t.Fatal(err)
			}
			got, err := installation.ClaimsOf(object)
			if (err != nil) != tc.fails {
				t.Fatalf("error = %v (%s)", err, tc.reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
