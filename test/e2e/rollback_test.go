package e2e_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// rollback runs kubectl extension rollback, and gives what it prints and why it ends early.
func rollback(t *testing.T, name string, args ...string) (output string, err error) {
	t.Helper()
	return theSuite.LocalOutput(t.Context(), append([]string{"rollback", name, "--kubeconfig", theSuite.Cluster.Kubeconfig()}, args...)...)
}

// isRefused waits for a rollback that is refused, says why, and has written nothing.
func isRefused(t *testing.T, name string, wants ...string) {
	t.Helper()
	before := generationOf(t, name)
	output, err := rollback(t, name, "--yes")
	if err == nil {
		t.Fatalf("it is rolled back:\n%s", output)
	}
	contains(t, err.Error(), append(wants, "it is not rolled back: ")...)
	if after := generationOf(t, name); after != before {
		t.Errorf("the spec has generation %d, and had %d", after, before)
	}
}

func generationOf(t *testing.T, name string) int64 {
	t.Helper()
	extension := &ocv1.ClusterExtension{}
	if err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Name: name}, extension); err != nil {
		t.Fatal(err)
	}
	return extension.Generation
}

// TestRollback goes back by the spec, after a dry run and a question that nobody answers. What
// plan says of the way back comes true.
func TestRollback(t *testing.T) {
	t.Parallel()
	const name = "rolled-back"
	all := operators(name, "1.0.0", "1.1.0")
	all[0].ConfigMaps = append(all[0].ConfigMaps, "dropped")
	publish(t, all...)
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	if _, err := rollback(t, name, "--yes"); err == nil || !strings.Contains(err.Error(), `there is no revision before "rolled-back.v1.0.0"`) {
		t.Errorf("got error %v", err)
	}
	update(t, name, version(""))
	installed(t, name, "1.1.0")
	const patch = `{"spec":{"source":{"catalog":{"upgradeConstraintPolicy":"SelfCertified","version":"1.0.0"}}}}` + "\n"
	before := generationOf(t, name)
	if output, err := rollback(t, name, "--dry-run"); err != nil || output != patch {
		t.Errorf("got %q, %v, want %q", output, err, patch)
	}
	if _, err := rollback(t, name); err == nil || !strings.Contains(err.Error(), "nothing is written") {
		t.Errorf("got error %v", err)
	}
	if after := generationOf(t, name); after != before {
		t.Errorf("the spec has generation %d, and had %d", after, before)
	}
	back := func(e *ocv1.ClusterExtension) {
		e.Spec.Source.Catalog.Version, e.Spec.Source.Catalog.UpgradeConstraintPolicy = "1.0.0", ocv1.UpgradeConstraintPolicySelfCertified
	}
	file := manifestOf(t, environment.Extension(name, name, installer, fromCatalog(name), back))
	comesTrue(t, name, []string{"-f", file}, func() {
		if output, err := rollback(t, name, "--yes"); err != nil || output != patch {
			t.Errorf("got %q, %v, want %q", output, err, patch)
		}
	}, "1.0.0")
	exists(t, &corev1.ConfigMap{}, name, "dropped")
}

// TestR2StoredVersions has the new version store objects in a version that the one before
// does not know.
func TestR2StoredVersions(t *testing.T) {
	t.Parallel()
	const name, versions = "r2", "  - name: v1\n    served: true\n    storage: true\n"
	const added = `  - name: v2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
  - name: v1
    served: true
    storage: false
`
	publishEdited(t, name, map[string]string{versions: added})
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	update(t, name, version("1.1.0"))
	installed(t, name, "1.1.0")
	// Not even one who has switched the check off gets back by this way.
	update(t, name, func(e *ocv1.ClusterExtension) {
		e.Spec.Install = &ocv1.ClusterExtensionInstallConfig{Preflight: &ocv1.PreflightConfig{
			CRDUpgradeSafety: &ocv1.CRDUpgradeSafetyPreflightConfig{Enforcement: ocv1.CRDUpgradeSafetyEnforcementNone},
		}}
	})
	isRefused(t, name, `CRD "things.r2.test": `, "storedVersionRemoval: ", "v2")
	installed(t, name, "1.1.0")
}

// TestR3StoredObjects has objects with a field that the version before does not know. Neither
// the command nor the controller goes back.
func TestR3StoredObjects(t *testing.T) {
	t.Parallel()
	const name, field = "r3", "              size: {type: integer}\n"
	publishEdited(t, name, map[string]string{field: field + "              color: {type: string}\n"})
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	update(t, name, version("1.1.0"))
	installed(t, name, "1.1.0")
	object := thing(name, name, 7)
	eventually(t, "storing an object", func(ctx context.Context) error {
		if err := unstructured.SetNestedField(object.Object, "red", "spec", "color"); err != nil {
			return err
		}
		return theSuite.Admin.Create(ctx, object)
	})
	isRefused(t, name, "existingFieldRemoval: ", "r3/stored: spec.color: field would be removed")
	update(t, name, func(e *ocv1.ClusterExtension) {
		e.Spec.Source.Catalog.Version, e.Spec.Source.Catalog.UpgradeConstraintPolicy = "1.0.0", ocv1.UpgradeConstraintPolicySelfCertified
	})
	conditionContains(t, name, ocv1.TypeProgressing, "r3/stored: spec.color: field would be removed")
	condition(t, name, ocv1.TypeInstalled, "True Succeeded: Installed bundle "+registryHost+"/r3:v1.1.0 successfully")
}
