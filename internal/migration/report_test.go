package migration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/classic"
)

// Of an operator that has moved, the extension says what is installed.
func TestReportOfMoved(t *testing.T) {
	t.Parallel()
	ext := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	ext.Spec.Source.Catalog = &ocv1.CatalogFilter{PackageName: "sample"}
	ext.Status.Install = &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Name: "sample.v1", Version: "1.0.0"}}
	operator := &classic.Operator{Name: types.NamespacedName{Namespace: "team", Name: "one"}, Extension: ext}
	report, err := Result{Operators: []Checked{{Operator: operator, Verdict: classic.Verdict{State: classic.AlreadyMigrated}}}}.Report()
	if err != nil {
		t.Fatal(err)
	}
	if got := report.Operators[0]; got.Package != "sample" || got.Bundle != "sample.v1" || got.Version != "1.0.0" || got.ExtensionName != "one" {
		t.Errorf("%+v", got)
	}
}
