package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/config/crd"
)

// TestColumns: kubectl get shows every prefix of a policy, and not the first one alone.
func TestColumns(t *testing.T) {
	t.Parallel()
	definition := apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(crd.ImagePolicy, &definition); err != nil {
		t.Fatal(err)
	}
	convertor, err := tableconvertor.New(definition.Spec.Versions[0].AdditionalPrinterColumns)
	if err != nil {
		t.Fatal(err)
	}
	policy := &policyv1alpha1.ImagePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "acme"},
		Spec:       policyv1alpha1.ImagePolicySpec{Mode: policyv1alpha1.ModeWarn, Match: []policyv1alpha1.ImageMatch{{Prefix: "quay.io/acme"}, {Prefix: ""}}},
		Status:     policyv1alpha1.ImagePolicyStatus{Conditions: []metav1.Condition{{Type: policyv1alpha1.TypeReady, Status: metav1.ConditionFalse, Reason: policyv1alpha1.ReasonUnusable}}},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(policy)
	if err != nil {
		t.Fatal(err)
	}
	table, err := convertor.ConvertToTable(t.Context(), &unstructured.Unstructured{Object: content}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		got[column.Name] = table.Rows[0].Cells[i]
	}
	delete(got, "Age")
	want := map[string]any{
		"Name": "acme", "Mode": "Warn", "Ready": "False", "Reason": "UnusableAuthority",
		"Match": `[{"prefix":"quay.io/acme"},{"prefix":""}]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}
