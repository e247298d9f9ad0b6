package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

func TestCheckServed(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(ocv1.GroupVersion.WithKind("ClusterCatalog"), meta.RESTScopeRoot)
	if err := CheckServed(mapper); !meta.IsNoMatchError(err) {
		t.Errorf("without extensions: %v", err)
	}
	mapper.Add(ocv1.GroupVersion.WithKind("ClusterExtension"), meta.RESTScopeRoot)
	if err := CheckServed(mapper); err != nil {
		t.Error(err)
	}
}
