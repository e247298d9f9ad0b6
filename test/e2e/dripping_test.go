package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// drippingHost stands for a registry that sends one byte a second of the blobs in its
// repositories whose name begins with dripping.
const drippingHost = "dripping.test"

// More of them than the controller works on at a time.
const (
	drippingExtensions = 20
	drippingCatalogs   = 8
)

// TestDrippingRegistryHoldsUpNobodyElse has one author wait for more bundles, and more
// catalogs for their content, than the controller works on at a time, from a registry
// that never ends. All say what they wait for, and can be deleted at once; what is of
// another author and another registry is served, installed and upgraded.
func TestDrippingRegistryHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	const name, honest = "dripping", "not-dripping"
	theSuite.Registry.Use(func(next http.Handler) http.Handler {
		dripping := testkit.Drip("/v2/"+name, time.Second)(next)
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if strings.Contains(request.URL.Path, "/blobs/") {
				dripping.ServeHTTP(w, request)
				return
			}
			next.ServeHTTP(w, request)
		})
	})

	for i := range drippingCatalogs {
		catalog := fmt.Sprintf("%s-%d", name, i)
		if err := theSuite.PushCatalog(t.Context(), catalog+":v1", testkit.Catalog(drippingHost, operators(catalog, "1.0.0")...)); err != nil {
			t.Fatal(err)
		}
		if err := theSuite.CreateCatalog(t.Context(), catalog, drippingHost+"/"+catalog+":v1", func(catalog *ocv1.ClusterCatalog) {
			catalog.Labels = map[string]string{"test": name + "-catalogs"}
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: catalog}}) })
	}
	for i := range drippingCatalogs {
		isPulling(t, fmt.Sprintf("%s-%d", name, i))
	}

	wanted := operators(name, "1.0.0")
	pushBundle(t, wanted[0], wanted[0].Bundle())
	publishCatalog(t, name, testkit.Catalog(drippingHost, wanted...))
	serving(t, name)
	makeNamespace(t, name)
	makeAccount(t, name)
	for i := range drippingExtensions {
		extendOnly(t, fmt.Sprintf("%s-%d", name, i), fromCatalog(name), func(extension *ocv1.ClusterExtension) {
			extension.Spec.Namespace, extension.Spec.Source.Catalog.PackageName = name, name
		})
	}
	for i := range drippingExtensions {
		conditionContains(t, fmt.Sprintf("%s-%d", name, i), ocv1.TypeReconciling, "pulling image "+drippingHost+"/"+name)
	}

	eventually(t, "a bundle that drips", func(context.Context) error {
		if theSuite.Registry.Count("/v2/"+name+"/blobs/") == 0 {
			return errors.New("no blob was asked for")
		}
		return nil
	})

	publish(t, operators(honest, "1.0.0", "1.1.0")...)
	serving(t, honest)
	extend(t, honest, version("1.0.0"))
	installed(t, honest, "1.0.0")
	update(t, honest, version("1.1.0"))
	installed(t, honest, "1.1.0")

	for i := range drippingExtensions {
		remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i)}})
	}
}

// isPulling waits until a catalog says that its content is on its way.
func isPulling(t *testing.T, catalog string) {
	t.Helper()
	eventually(t, "catalog "+catalog, func(ctx context.Context) error {
		found := &ocv1.ClusterCatalog{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: catalog}, found); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(found.Status.Conditions, ocv1.TypeReady)
		if ready == nil || ready.Reason != ocv1.ReasonPulling || len(found.Finalizers) == 0 {
			return fmt.Errorf("finalizers are %v and conditions %+v", found.Finalizers, found.Status.Conditions)
		}
		return nil
	})
}
