package chartlife_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/Masterminds/semver/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/migration/helmstore"
)

// place identifies an object of a chart on the cluster.
type place struct {
	mapping         *meta.RESTMapping
	namespace, name string
}

func (p place) String() string {
	return fmt.Sprintf("%s %s/%s", p.mapping.GroupVersionKind.Kind, p.namespace, p.name)
}

func (s *site) placeOf(t *testing.T, object *unstructured.Unstructured, release string) place {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := s.Admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Fatal(err)
	}
	found := place{mapping: mapping, name: object.GetName()}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if found.namespace = object.GetNamespace(); found.namespace == "" {
			found.namespace = release
		}
	}
	return found
}

func (s *site) read(ctx context.Context, at place) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(at.mapping.GroupVersionKind)
	return live, s.Admin.Get(ctx, client.ObjectKey{Namespace: at.namespace, Name: at.name}, live)
}

// canonical is the version of a chart as statuses have it.
func canonical(version string) string { return semver.MustParse(version).String() }

// cleanUp removes what Helm and the controller have left of a chart, CRDs included: the next test installs the
// chart from nothing.
func cleanUp(t *testing.T, chart realChart, name string) {
	t.Helper()
	ctx := context.Background()
	ext := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := client.IgnoreNotFound(theSite.Admin.Delete(ctx, ext)); err != nil {
		t.Error(err)
	}
	_ = helmUninstall(t, name) // there may be none
	for _, version := range chart.versions {
		for _, object := range version.chart.CRDObjects() {
			crd := &unstructured.Unstructured{}
			crd.SetAPIVersion("apiextensions.k8s.io/v1")
			crd.SetKind("CustomResourceDefinition")
			for _, name := range namesIn(object.File.Data) {
				crd.SetName(name)
				if err := theSite.Admin.Delete(ctx, crd.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
					t.Error(err)
				}
			}
		}
	}
}

// namesIn are the names of the objects of a manifest.
func namesIn(manifest []byte) []string {
	objects, err := helmstore.Objects(string(manifest))
	if err != nil {
		return nil
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return names
}
