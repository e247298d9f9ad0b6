package preparedpackage_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/preparedpackage"
)

const sampleContent = `{"schema":"olm.package","name":"p"}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1.0.0"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1.0.0","image":"r/p:v1","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
`

func sampleCatalogs(t *testing.T) *preparedpackage.Cache {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(sampleContent))
	}))
	t.Cleanup(server.Close)
	content, err := catalogclient.New(catalogclient.Config{HTTPClient: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	catalogs := preparedpackage.New(content)
	changed, err := catalogs.Refresh(t.Context(), controller.CatalogSource{Catalog: "c", Digest: "r@sha256:1", BaseURL: server.URL})
	if err != nil || len(changed) != 1 {
		t.Fatalf("changed = %v, %v", changed, err)
	}
	return catalogs
}

func TestPackagesArePreparedOnce(t *testing.T) {
	t.Parallel()
	catalogs := sampleCatalogs(t)
	first, err := catalogs.Package("c", "p")
	if err != nil || first == nil {
		t.Fatalf("package = %v, %v", first, err)
	}
	second, err := catalogs.Package("c", "p")
	if err != nil || second != first {
		t.Errorf("the package was prepared again (%v)", err)
	}
	if missing, err := catalogs.Package("c", "q"); missing != nil || err != nil {
		t.Errorf("a package that is not there = %v, %v", missing, err)
	}
}

func TestContentOfGoneCatalogsIsForgotten(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := ocv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	catalogs := sampleCatalogs(t)
	here := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(&ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}}).Build()
	if err := catalogs.ForgetGone(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	if _, err := catalogs.Package("c", "p"); err != nil {
		t.Errorf("the content of a catalog that is there was forgotten: %v", err)
	}
	nowhere := fake.NewClientBuilder().WithScheme(scheme).Build()
	if err := catalogs.ForgetGone(t.Context(), nowhere); err != nil {
		t.Fatal(err)
	}
	if _, err := catalogs.Package("c", "p"); err == nil {
		t.Error("the content of a catalog that is gone was kept")
	}
}
