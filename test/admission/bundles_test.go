package admission_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// bypassers is the group of those who may name bundles by their images.
const bypassers = "catalog-bypassers"

// naming is an extension that names a bundle by its image.
func naming(name string) *ocv1.ClusterExtension {
	made := extension(name, installer)
	made.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeBundle, Bundle: &ocv1.BundleSource{Ref: "registry.test/p:v1"}}
	return made
}

// testNamedBundles has an editor, who may change all but which image an extension names, and
// somebody who may bypass catalogs.
func testNamedBundles(t *testing.T) {
	const (
		toBundle   = `{"spec": {"source": {"sourceType": "Bundle", "catalog": null, "bundle": {"ref": "registry.test/p:v1"}}}}`
		otherImage = `{"spec": {"source": {"bundle": {"ref": "registry.test/p:v2"}}}}`
		toCatalog  = `{"spec": {"source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}, "bundle": null}}}`
	)
	editor, bypasser := as(t, "naming-editor", authors), as(t, "naming-bypasser", authors, bypassers)
	for _, who := range []string{"naming-editor", "naming-bypasser"} {
		mayImpersonate(t, user(who), installer)
	}
	refused := func(t *testing.T, err error, name string) {
		t.Helper()
		want := `user "naming-editor" cannot bypass-catalogs resource "clusterextensions" in API group "olm.operatorframework.io" with the name "` + name + `"`
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), bundlesPolicy) {
			t.Errorf("got %v, want a refusal", err)
		}
	}
	t.Run("create", func(t *testing.T) {
		t.Parallel()
		name := nameFrom(t)
		refused(t, editor.Create(t.Context(), naming(name)), name)
		made := naming(name)
		checkAllowed(t, bypasser.Create(t.Context(), made))
		t.Cleanup(func() { remove(t, made) })
		refused(t, change(t, editor, name, otherImage), name)
		checkAllowed(t, change(t, editor, name, pause))
		checkAllowed(t, change(t, editor, name, configuration))
		checkAllowed(t, change(t, bypasser, name, otherImage))
		checkAllowed(t, change(t, editor, name, toCatalog)) // what catalogs have is for every editor
		refused(t, change(t, editor, name, toBundle), name)
	})
	t.Run("in the place of a catalog", func(t *testing.T) {
		t.Parallel()
		made := existing(t, nameFrom(t))
		refused(t, change(t, editor, made.Name, toBundle), made.Name)
		checkAllowed(t, change(t, bypasser, made.Name, toBundle))
	})
}
