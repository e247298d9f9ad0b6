package e2e_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// offer moves the catalog of a test to a new image.
func offer(t *testing.T, name, tag string, operators ...testkit.Operator) {
	t.Helper()
	offerFiles(t, name, tag, testkit.Catalog(registryHost, operators...))
}

func offerFiles(t *testing.T, name, tag string, files fs.FS) {
	t.Helper()
	pushCatalog(t, name, tag, files)
	eventually(t, "moving catalog "+name, func(ctx context.Context) error {
		catalog := &ocv1.ClusterCatalog{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: name}, catalog); err != nil {
			return err
		}
		catalog.Spec.Source.Image.Ref = catalogRef(name, tag)
		return theSuite.Admin.Update(ctx, catalog)
	})
}

func TestMissingServiceAccountHeals(t *testing.T) {
	t.Parallel()
	const name = "no-account"
	publish(t, operators(name, "1.0.0")...)
	makeNamespace(t, name)
	grant(t, name, "cluster-admin")
	extendOnly(t, name)
	const message = `operation cannot proceed due to the following validation error(s): service account "installer" not found in namespace "no-account"`
	condition(t, name, ocv1.TypeInstalled, "Unknown Failed: "+message)
	condition(t, name, ocv1.TypeProgressing, "True Retrying: "+message)
	conditionContains(t, name, ocv1.TypeReady, `ServiceAccount "installer" does not exist in namespace "no-account"; create it`)

	makeAccount(t, name)
	installed(t, name, "1.0.0")
}

func TestMissingNamespaceHeals(t *testing.T) {
	t.Parallel()
	const name = "no-namespace"
	publish(t, operators(name, "1.0.0")...)
	grant(t, name, "cluster-admin")
	extendOnly(t, name)
	condition(t, name, ocv1.TypeProgressing, `True Retrying: operation cannot proceed due to the following validation error(s): `+
		`service account "installer" not found in namespace "no-namespace"`)
	conditionContains(t, name, ocv1.TypeReady, `namespace "no-namespace" does not exist, or is being deleted; create it, and ServiceAccount "installer" in it`)

	makeNamespace(t, name)
	conditionContains(t, name, ocv1.TypeReady, `ServiceAccount "installer" does not exist in namespace "no-namespace"`)
	makeAccount(t, name)
	installed(t, name, "1.0.0")
}

func TestServiceAccountWithoutRightsHeals(t *testing.T) {
	t.Parallel()
	const name = "no-rights"
	publish(t, operators(name, "1.0.0")...)
	makeNamespace(t, name)
	makeAccount(t, name)
	extendOnly(t, name)
	conditionContains(t, name, ocv1.TypeProgressing, "pre-authorization failed: service account requires the following permissions to manage cluster extension:\n")
	conditionContains(t, name, ocv1.TypeProgressing, "\n  Namespace:\"no-rights\" APIGroups:[] Resources:[services] ResourceNames:[no-rights] Verbs:[get,patch]\n")
	condition(t, name, ocv1.TypeInstalled, "False Failed: No bundle installed")
	conditionContains(t, name, ocv1.TypeReady, "rights are missing: ")
	conditionContains(t, name, ocv1.TypeReady, "`kubectl extension bundle rbac clusterextension/no-rights` prints all that ServiceAccount \"installer\" in namespace \"no-rights\" needs as YAML")
	nothingLeft(t, name)
	explained, err := theSuite.CommandOutput(t.Context(), "explain", "clusterextension/"+name)
	if want := `    Namespace:"no-rights" APIGroups:[] Resources:[services] Verbs:[create]`; err != nil || !strings.Contains(explained, want) {
		t.Errorf("explain says (error %v)\n%s\nwant in it\n%s", err, explained, want)
	}

	grant(t, name, "cluster-admin")
	installed(t, name, "1.0.0")
}

func TestPackageNotFoundHeals(t *testing.T) {
	t.Parallel()
	const name = "not-found"
	others := operators("somebody-else", "1.0.0")
	publishCatalog(t, name, testkit.Catalog(registryHost, others...))
	extend(t, name)
	condition(t, name, ocv1.TypeProgressing, `True Retrying: no bundles found for package "not-found"`)
	condition(t, name, ocv1.TypeInstalled, "False Failed: No bundle installed")
	condition(t, name, ocv1.TypeBundleDeprecated, "Unknown Absent: no bundle installed yet")

	wanted := operators(name, "1.0.0")
	pushBundle(t, wanted[0], wanted[0].Bundle())
	offer(t, name, "v2", wanted...)
	installed(t, name, "1.0.0")
}

func TestBadRangeHeals(t *testing.T) {
	t.Parallel()
	const name = "bad-range"
	publish(t, operators(name, "1.0.0")...)
	// The schema of the API lets this one in.
	extend(t, name, version("|"))
	conditionContains(t, name, ocv1.TypeProgressing, `False Blocked: desired version range "|" is invalid: `)

	update(t, name, version("1.x"))
	installed(t, name, "1.0.0")
}

func TestImageNotFoundHeals(t *testing.T) {
	t.Parallel()
	const name = "no-image"
	wanted := operators(name, "1.0.0")
	publishCatalog(t, name, testkit.Catalog(registryHost, wanted...))
	extend(t, name)
	conditionContains(t, name, ocv1.TypeProgressing, `True Retrying: error for resolved bundle "no-image.v1.0.0" with version "1.0.0": `)
	condition(t, name, ocv1.TypeInstalled, "False Failed: No bundle installed")

	pushBundle(t, wanted[0], wanted[0].Bundle())
	installed(t, name, "1.0.0")
}

func TestGarbageBundleHeals(t *testing.T) {
	t.Parallel()
	const name = "garbage"
	wanted := operators(name, "1.0.0")
	pushBundle(t, wanted[0], fstest.MapFS{
		"metadata/annotations.yaml": {Data: []byte("annotations: {}")},
		"manifests/readme.md":       {Data: []byte("this is no manifest")},
	})
	publishCatalog(t, name, testkit.Catalog(registryHost, wanted...))
	extend(t, name)
	conditionContains(t, name, ocv1.TypeProgressing, `False Blocked: error for resolved bundle "garbage.v1.0.0" with version "1.0.0": invalid bundle: `)
	conditionContains(t, name, ocv1.TypeProgressing, "manifests/readme.md")

	pushBundle(t, wanted[0], wanted[0].Bundle())
	update(t, name, func(extension *ocv1.ClusterExtension) {
		extension.Annotations = map[string]string{"tried-again": "now"} // or else it would take its time
	})
	installed(t, name, "1.0.0")
}

func TestGarbageCatalogHurtsNobodyAndHeals(t *testing.T) {
	t.Parallel()
	const name = "bystander"
	publish(t, operators(name, "1.0.0")...)
	pushCatalog(t, "rubbish", "v1", fstest.MapFS{"catalog.yaml": {Data: []byte("schema: [")}})
	err := theSuite.CreateCatalog(t.Context(), "rubbish", catalogRef("rubbish", "v1"), func(catalog *ocv1.ClusterCatalog) {
		catalog.Labels = map[string]string{"test": name}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "rubbish"}}) })
	extend(t, name)
	installed(t, name, "1.0.0")

	// Who wants what only the broken catalog may have waits, and goes on when it
	// is mended.
	wanted := operators("rubbish", "1.0.0")
	extend(t, "rubbish", fromCatalog(name))
	condition(t, "rubbish", ocv1.TypeProgressing,
		`True Retrying: error walking catalogs: error getting package "rubbish" from catalog "rubbish": catalog "rubbish" is not being served`)
	pushBundle(t, wanted[0], wanted[0].Bundle())
	offer(t, "rubbish", "v2", wanted...)
	installed(t, "rubbish", "1.0.0")
}
