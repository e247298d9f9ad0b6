package applier

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

func TestCertificatesAreNotAmongLastApplied(t *testing.T) {
	t.Parallel()
	secret := &unstructured.Unstructured{}
	secret.SetAnnotations(map[string]string{bundle.AnnotationCertificateNames: "a.test"})
	plain := &unstructured.Unstructured{}
	plain.SetUID("plain")
	executed := &plan.Plan{}
	executor := plan.NewPlanner(nil, nil, object.Owner{}, nil).Executor()
	for name, obj := range map[string]*unstructured.Unstructured{"s": secret, "c": plain} {
		item := object.Item{Key: object.Key{Name: name}, Object: obj}
		executed.Steps = append(executed.Steps, plan.Step{Item: item})
		executor.Progress.Left.Live[item.Key] = obj
	}
	prints := content{plan: executed, executor: executor}.LastApplied()
	want := map[object.Key]object.Fingerprint{{Name: "c"}: {UID: "plain"}}
	if diff := cmp.Diff(want, prints); diff != "" {
		t.Errorf("a certificate is looked after by its content (-want +got):\n%s", diff)
	}
}
