package config_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/config/crd"
)

// TestColumns: kubectl get shows every prefix of a policy, and not the first one alone.
func TestColumns(t *testing.T) {
	t.Parallel()
	policy := &policyv1alpha1.ImagePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "acme"},
		Spec:       policyv1alpha1.ImagePolicySpec{Mode: policyv1alpha1.ModeWarn, Match: []policyv1alpha1.ImageMatch{{Prefix: "quay.io/acme"}, {Prefix: ""}}},
		Status:     policyv1alpha1.ImagePolicyStatus{Conditions: []metav1.Condition{{Type: policyv1alpha1.TypeReady, Status: metav1.ConditionFalse, Reason: policyv1alpha1.ReasonUnusable}}},
	}
	got := columns(t, crd.ImagePolicy, policy)
	want := map[string]any{
		"Name": "acme", "Mode": "Warn", "Ready": "False", "Reason": "UnusableAuthority",
		"Match": `[{"prefix":"quay.io/acme"},{"prefix":""}]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

// TestColumnsOfADegradedCatalog (F7): kubectl get shows that the newest content is broken, though older content is served.
func TestColumnsOfADegradedCatalog(t *testing.T) {
	t.Parallel()
	is := func(kind, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason}
	}
	catalog := &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Status: ocv1.ClusterCatalogStatus{Packages: 7, Conditions: []metav1.Condition{
		is(ocv1.TypeServing, ocv1.ReasonAvailable), is(ocv1.TypeProgressing, ocv1.ReasonRetrying), is(ocv1.TypeReady, ocv1.ReasonRetrying),
		is(ocv1.TypeDegraded, ocv1.ReasonContentInvalid),
	}}}
	definition, err := os.ReadFile("crd/bases/olm.operatorframework.io_clustercatalogs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := columns(t, definition, catalog)
	delete(got, "LastUnpacked")
	want := map[string]any{
		"Name": "acme", "Serving": "True", "Progressing": "True", "Ready": "True", "Problem": "ContentInvalid", "Packages": int64(7), "Reason": "Retrying",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

// columns returns what kubectl get shows of an object but its age, by the name of the column.
func columns(t *testing.T, of []byte, object any) map[string]any {
	t.Helper()
	definition := apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(of, &definition); err != nil {
		t.Fatal(err)
	}
	convertor, err := tableconvertor.New(definition.Spec.Versions[0].AdditionalPrinterColumns)
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	table, err := convertor.ConvertToTable(t.Context(), &unstructured.Unstructured{Object: content}, nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		shown[column.Name] = table.Rows[0].Cells[i]
	}
	delete(shown, "Age")
	return shown
}
