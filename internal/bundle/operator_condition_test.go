package bundle_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

// TestVariableComesWithTheObject is F70: containers have OPERATOR_CONDITION_NAME exactly if the
// OperatorCondition is rendered. Without it the objects equal those of upstream.
func TestVariableComesWithTheObject(t *testing.T) {
	t.Parallel()
	for inline, want := range map[string][]any{
		"":                          nil,
		"operatorConditions: false": nil,
		"operatorConditions: true":  {map[string]any{"name": "OPERATOR_CONDITION_NAME", "value": "p.v1.0.0"}},
		"deploymentConfig: {env: [{name: OPERATOR_CONDITION_NAME, value: mine}]}": {
			map[string]any{"name": "OPERATOR_CONDITION_NAME", "value": "mine"},
		},
		"{operatorConditions: true, deploymentConfig: {env: [{name: OPERATOR_CONDITION_NAME, value: mine}]}}": {
			map[string]any{"name": "OPERATOR_CONDITION_NAME", "value": "mine"},
		},
	} {
		t.Run(inline, func(t *testing.T) {
			t.Parallel()
			b := withContainers(2, 2)
			b.CSV.Name = "p.v1.0.0"
			config, err := bundle.ParseConfig(b, testNamespace, []byte(inline))
			if err != nil {
				t.Fatal(err)
			}
			objects, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace, Config: config}))
			if err != nil {
				t.Fatal(err)
			}
			conditions := 0
			for _, object := range objects {
				if object.GetKind() == "OperatorCondition" {
					conditions++
				}
				if object.GetKind() != "Deployment" {
					continue
				}
				containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
				if err != nil || len(containers) != 2 {
					t.Fatalf("containers %v, err = %v", containers, err)
				}
				for _, item := range containers {
					container, _ := item.(map[string]any)
					env, _ := container["env"].([]any)
					if diff := cmp.Diff(want, env); diff != "" {
						t.Errorf("variables (-want +got):\n%s", diff)
					}
				}
			}
			if isWanted := config.OperatorConditions; (conditions == 1) != isWanted {
				t.Errorf("%d OperatorConditions, want one: %t", conditions, isWanted)
			}
			if declared := b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Env; declared != nil {
				t.Errorf("the bundle itself has %v now", declared)
			}
		})
	}
}

// TestLacksOperatorCondition is F70: the setting is recommended for bundles that use the object.
func TestLacksOperatorCondition(t *testing.T) {
	t.Parallel()
	rules := func(group string, resources ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get"}}}
	}
	const group = "operators.coreos.com"
	permission := func(rules []rbacv1.PolicyRule) func(*bundle.Bundle) {
		return func(b *bundle.Bundle) {
			b.CSV.Spec.InstallStrategy.StrategySpec.Permissions = []operatorsv1alpha1.StrategyDeploymentPermissions{{Rules: rules}}
		}
	}
	container := func(change func(*corev1.Container)) func(*bundle.Bundle) {
		return func(b *bundle.Bundle) {
			change(&b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[1])
		}
	}
	for name, test := range map[string]struct {
		change func(*bundle.Bundle)
		inline string
		want   bool
	}{
		"nothing":            {change: func(*bundle.Bundle) {}},
		"permissions":        {change: permission(rules(group, "pods", "operatorconditions")), want: true},
		"the status":         {change: permission(rules(group, "operatorconditions/status")), want: true},
		"in all groups":      {change: permission(rules("*", "operatorconditions")), want: true},
		"in another group":   {change: permission(rules("q.test", "operatorconditions"))},
		"all resources":      {change: permission(rules("*", "*"))},
		"other resources":    {change: permission(rules(group, "subscriptions"))},
		"already configured": {change: permission(rules(group, "operatorconditions")), inline: "operatorConditions: true"},
		"the name alone": {
			change: permission(rules(group, "operatorconditions")), inline: "deploymentConfig: {env: [{name: OPERATOR_CONDITION_NAME, value: p}]}",
		},
		"another variable": {
			change: permission(rules(group, "operatorconditions")), inline: "deploymentConfig: {env: [{name: OTHER, value: p}]}", want: true,
		},
		"cluster permissions": {
			change: func(b *bundle.Bundle) {
				b.CSV.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []operatorsv1alpha1.StrategyDeploymentPermissions{{Rules: rules(group, "operatorconditions")}}
			},
			want: true,
		},
		"a shipped Role": {
			change: func(b *bundle.Bundle) {
				b.Others = append(b.Others, unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": map[string]any{"name": "p"},
					"rules": []any{map[string]any{"apiGroups": []any{group}, "resources": []any{"operatorconditions"}, "verbs": []any{"get"}}},
				}})
			},
			want: true,
		},
		"an argument":           {change: container(func(c *corev1.Container) { c.Args = []string{"--name=$(OPERATOR_CONDITION_NAME)"} }), want: true},
		"a variable refers":     {change: container(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "V", Value: "$(OPERATOR_CONDITION_NAME)"}} }), want: true},
		"a variable of its own": {change: container(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "OPERATOR_CONDITION_NAME", Value: "x"}} })},
		"no possible name": {
			change: func(b *bundle.Bundle) { permission(rules(group, "operatorconditions"))(b); b.CSV.Name = "P" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := withContainers(1, 2)
			b.CSV.Name = "p.v1.0.0"
			test.change(b)
			config, err := bundle.ParseConfig(b, testNamespace, []byte(test.inline))
			if err != nil {
				t.Fatal(err)
			}
			if got := b.LacksOperatorCondition(config); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// TestImpossibleOperatorConditions (O9): if no object can have the name of the bundle, the controller creates no
// object and sets no variable. A bundle without a Deployment gets no object either.
func TestImpossibleOperatorConditions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason      string
		name        string
		deployments int
		want        bool
	}{
		"possible":    {reason: "as nearly all are", name: "p.v1.0.0", deployments: 1, want: true},
		"longest":     {reason: "as long as a name may be", name: strings.Repeat("a", 253), deployments: 1, want: true},
		"too long":    {reason: "O9", name: strings.Repeat("a", 254), deployments: 1},
		"upper case":  {reason: "O9", name: "P.v1.0.0", deployments: 1},
		"no name":     {reason: "there is nothing to name it after", deployments: 1},
		"no operator": {reason: "nobody would write it", name: "p.v1.0.0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := withContainers(tc.deployments, 1)
			b.CSV.Name = tc.name
			config, err := bundle.ParseConfig(b, testNamespace, []byte("operatorConditions: true"))
			if err != nil {
				t.Fatal(err)
			}
			objects, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace, Config: config}))
			if err != nil {
				t.Fatal(err)
			}
			kinds := map[string]string{}
			for _, object := range objects {
				kinds[object.GetKind()] = object.GetName()
			}
			if got, is := kinds["OperatorCondition"]; is != tc.want || got != "" && got != tc.name {
				t.Errorf("OperatorCondition %q (%t), want one: %t (%s)", got, is, tc.want, tc.reason)
			}
			if _, role := kinds["Role"]; role != tc.want {
				t.Errorf("there is a Role: %t, want %t (%s)", role, tc.want, tc.reason)
			}
			if len(kinds["Role"]) > 253 {
				t.Errorf("the Role has %d characters", len(kinds["Role"]))
			}
			if got := b.OperatorCondition(config); got != kinds["OperatorCondition"] || b.OperatorCondition(bundle.Config{}) != "" {
				t.Errorf("OperatorCondition() = %q (%s)", got, tc.reason)
			}
			for _, object := range objects {
				if object.GetKind() != "Deployment" {
					continue
				}
				text, err := object.MarshalJSON()
				if is := strings.Contains(string(text), `"OPERATOR_CONDITION_NAME","value":"`+tc.name+`"`); err != nil || is != tc.want {
					t.Errorf("the variable is set: %t (%v): %s", is, err, text)
				}
			}
		})
	}
}
