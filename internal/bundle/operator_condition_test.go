package bundle_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

// TestConditionNameIsWhatIsAdded: what is rendered with it differs from what the reference
// implementation renders in nothing else, and a bundle without a name has none to tell.
func TestConditionNameIsWhatIsAdded(t *testing.T) {
	t.Parallel()
	for name, added := range map[string][]any{
		"p.v1.0.0": {map[string]any{"name": "OPERATOR_CONDITION_NAME", "value": "p.v1.0.0"}},
		"":         nil,
	} {
		b := withContainers(2, 2)
		b.CSV.Name = name
		plain, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace}))
		if err != nil {
			t.Fatal(err)
		}
		named, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace, ConditionName: true}))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range named {
			containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			if err != nil || len(containers) != 2 {
				t.Fatalf("containers %v, err = %v", containers, err)
			}
			for _, item := range containers {
				container, _ := item.(map[string]any)
				env, _ := container["env"].([]any)
				if diff := cmp.Diff(added, env); diff != "" {
					t.Errorf("variables of a container of %q (-want +got):\n%s", name, diff)
				}
				delete(container, "env")
			}
			if err := unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers"); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(plain, named); diff != "" {
			t.Errorf("besides the variable (-without +with):\n%s", diff)
		}
	}
}

// TestConditionNameOfConfig: who configures another one means it.
func TestConditionNameOfConfig(t *testing.T) {
	t.Parallel()
	b := withContainers(1, 1)
	b.CSV.Name = "p.v1.0.0"
	config, err := bundle.ParseConfig(b, testNamespace, []byte(`deploymentConfig: {env: [{name: OPERATOR_CONDITION_NAME, value: mine}]}`))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace, Config: config, ConditionName: true}))
	if err != nil {
		t.Fatal(err)
	}
	containers, _, err := unstructured.NestedSlice(objects[0].Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	container, _ := containers[0].(map[string]any)
	if diff := cmp.Diff([]any{map[string]any{"name": "OPERATOR_CONDITION_NAME", "value": "mine"}}, container["env"]); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if declared := b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Env; declared != nil {
		t.Errorf("the bundle itself has %v now", declared)
	}
}

// TestImpossibleOperatorConditions are O9: where there can be no object of the name, none is
// made, and the operator has its variable all the same. Without an operator there is nobody to
// write it.
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
			objects, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace, Config: config, ConditionName: true}))
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
				if object.GetKind() != "Deployment" || tc.name == "" {
					continue
				}
				text, err := object.MarshalJSON()
				if err != nil || !strings.Contains(string(text), `"OPERATOR_CONDITION_NAME","value":"`+tc.name+`"`) {
					t.Errorf("the variable is not set (%v): %s", err, text)
				}
			}
		})
	}
}
