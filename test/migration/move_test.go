package migration_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/migration"
	testclassic "github.com/clusterextensions/operator-controller/test/classic"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// stays is the operator that cannot be moved, see TestCheckOfAll.
const stays = "ecr-secret-operator"

// TestMoveOfAll checks every operator of the cluster, and moves those that can be in one go. No
// program of classic OLM is there to be stopped.
func TestMoveOfAll(t *testing.T) {
	t.Parallel()
	env := start(t)
	serveCatalog(t, env)
	permitConditions(t, env)
	found, _ := check(t, env, "--all")
	before := objectsOf(t, env)
	output, err := env.CommandOutput(t.Context(), "migrate", "run", "--all", "--yes", "--mode", "live", "--backup", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "1 operator of 7 cannot be moved") {
		t.Errorf("%v\n%s", err, output)
	}
	after := objectsOf(t, env)
	var left []string
	for name := range after {
		if name.Group == operatorsv1.GroupVersion.Group && testclassic.IsDropped(name, after[name]) && !isOfStaying(name) {
			left = append(left, name.String())
		}
	}
	if len(left) > 0 {
		t.Errorf("left of classic OLM: %s", left)
	}
	maps.DeleteFunc(before, func(name testclassic.Name, _ metav1.ObjectMeta) bool { return !isOfMoved(name) })
	if err := after.Moved(before); err != nil {
		t.Error(err)
	}
	delete(found, stays)
	areInstalled(t, env, found)

	again, _ := check(t, env, "--all")
	for name, one := range again {
		if want := map[bool]classic.State{true: classic.Ineligible, false: classic.AlreadyMigrated}[name == stays]; one.State != want {
			t.Errorf("afterwards %s is %s: %v", name, one.State, one.Findings)
		}
	}
}

func isOfStaying(name testclassic.Name) bool {
	return name.Namespace == "migration-e2e-ecr-secret" || strings.Contains(name.Name, stays) || strings.Contains(name.Name, ".ecr.mobb.redhat.com")
}

// isOfMoved leaves out what is of classic OLM itself, of the controller, and of the operator that stays.
func isOfMoved(name testclassic.Name) bool {
	return name.Namespace != testclassic.Namespace && name.Namespace != environment.SystemNamespace && !isOfStaying(name)
}

func objectsOf(t *testing.T, env *environment.Environment) testclassic.Objects {
	t.Helper()
	objects, err := testclassic.ReadObjects(t.Context(), env.Cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// areInstalled wants an extension for each operator that was checked, with the version that was
// installed, from now on without one.
func areInstalled(t *testing.T, env *environment.Environment, found map[string]migration.OperatorReport) {
	t.Helper()
	exts := &ocv1.ClusterExtensionList{}
	if err := env.Admin.List(t.Context(), exts); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range exts.Items {
		ext := &exts.Items[i]
		names = append(names, ext.Name)
		conditions := ext.Status.Conditions
		if !meta.IsStatusConditionTrue(conditions, ocv1.TypeInstalled) || !meta.IsStatusConditionTrue(conditions, ocv1.TypeReady) {
			t.Errorf("%s: %v", ext.Name, conditions)
		}
		if ext.Spec.Suspend || ext.Spec.Source.Catalog.Version != "" {
			t.Errorf("%s is suspended %t, at version %q", ext.Name, ext.Spec.Suspend, ext.Spec.Source.Catalog.Version)
		}
		if want := installed[ext.Spec.Source.Catalog.PackageName]; ext.Status.Install.Bundle.Version != want {
			t.Errorf("%s has version %s, want %s", ext.Name, ext.Status.Install.Bundle.Version, want)
		}
	}
	if want := slices.Sorted(maps.Keys(found)); !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("ClusterExtensions %v, want %v", names, want)
	}
}
