package applier

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

func TestCertificatesAreNotAmongLastApplied(t *testing.T) {
	t.Parallel()
	secret := &unstructured.Unstructured{}
	secret.SetAnnotations(map[string]string{bundle.AnnotationCertificateNames: "a.test"})
	executor := plan.NewPlanner(nil, nil, object.Owner{}, nil).Executor()
	executor.Progress.Left.Live[object.Key{Name: "s"}] = secret
	if prints := (content{executor: executor}).LastApplied(); prints != nil {
		t.Errorf("fingerprints = %v, want none: a certificate is looked after by its content", prints)
	}
}
