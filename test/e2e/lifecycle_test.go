package e2e_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// TestSampleOperator takes the sample operator through its life with the least
// rights that its installer needs.
func TestSampleOperator(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		files, err := operator.Bundle(version)
		if err != nil {
			t.Fatal(err)
		}
		if err := theSuite.PushBundle(t.Context(), operator.Package+":v"+version, files); err != nil {
			t.Fatal(err)
		}
	}
	publishCatalog(t, operator.Package, operator.Catalog)
	if _, err := theSuite.KubectlOutput(t.Context(), string(operator.Installer), "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := theSuite.KubectlOutput(context.Background(), string(operator.Installer), "delete", "--wait=false", "-f", "-"); err != nil {
			t.Error(err)
		}
	})
	extension := environment.Extension(operator.Package, operator.Package, operator.ServiceAccount,
		fromCatalog(operator.Package), version("1.0.0"))
	serving(t, operator.Package)
	comesTrue(t, operator.Package, []string{"-f", manifestOf(t, extension)}, func() {
		if err := theSuite.Admin.Create(t.Context(), extension); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, extension) })
	}, "1.0.0")
	condition(t, operator.Package, ocv1.TypeInstalled, "True Succeeded: Installed bundle registry.test/sample-operator:v1.0.0 successfully")
	condition(t, operator.Package, ocv1.TypeProgressing, "True Succeeded: Desired state reached")
	condition(t, operator.Package, ocv1.TypeDeprecated, "False NotDeprecated: not deprecated")
	deploymentAvailable(t, operator.Namespace, "sample-operator")
	exists(t, &corev1.ConfigMap{}, operator.Namespace, "sample-operator-legacy")

	comesTrue(t, operator.Package, []string{operator.Package, "--version", "1.1.0"}, func() {
		update(t, operator.Package, version("1.1.0"))
	}, "1.1.0")
	gone(t, &corev1.ConfigMap{}, operator.Namespace, "sample-operator-legacy")
	deploymentAvailable(t, operator.Namespace, "sample-operator")

	remove(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: operator.Namespace, Name: "sample-operator"}})
	deploymentAvailable(t, operator.Namespace, "sample-operator")

	candidate := func(e *ocv1.ClusterExtension) {
		e.Spec.Source.Catalog.Version, e.Spec.Source.Catalog.Channels = "", []string{"candidate"}
	}
	edited := environment.Extension(operator.Package, operator.Package, operator.ServiceAccount, fromCatalog(operator.Package), candidate)
	comesTrue(t, operator.Package, []string{"-f", manifestOf(t, edited)}, func() { update(t, operator.Package, candidate) }, "2.0.0")

	remove(t, extension)
	nothingLeft(t, operator.Package)
}

// nothingLeft waits until no object of any kind and no record of an extension
// is on the cluster.
func nothingLeft(t *testing.T, extension string) {
	t.Helper()
	eventually(t, "what is left of "+extension, func(ctx context.Context) error {
		left, err := theSuite.Owned(ctx, environment.OwnerLabel+"="+extension)
		if err != nil {
			return err
		}
		records := &corev1.SecretList{}
		if err := theSuite.Admin.List(ctx, records, client.InNamespace(environment.SystemNamespace), client.MatchingLabels{"name": extension}); err != nil {
			return err
		}
		if len(left) > 0 || len(records.Items) > 0 {
			return fmt.Errorf("%v and %d records", left, len(records.Items))
		}
		return nil
	})
}

func TestUpgradeFollowsTheCatalog(t *testing.T) {
	t.Parallel()
	const name = "follow"
	all := operators(name, "1.0.0", "1.1.0")
	publish(t, all[0])
	pushBundle(t, all[1], all[1].Bundle())
	extend(t, name)
	installed(t, name, "1.0.0")

	offer(t, name, "v2", all...)
	installed(t, name, "1.1.0")
	found := &corev1.ConfigMap{}
	exists(t, found, name, "settings")
	if found.Data["version"] != "1.1.0" {
		t.Errorf("settings = %v, want those of 1.1.0", found.Data)
	}
}

func TestInstalledContentIsKeptWithoutACatalog(t *testing.T) {
	t.Parallel()
	const name = "orphan"
	publish(t, operators(name, "1.0.0")...)
	extend(t, name, version(">=1.0.0 <2.0.0"))
	installed(t, name, "1.0.0")

	remove(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: name}})
	condition(t, name, ocv1.TypeDeprecated, "Unknown DeprecationStatusUnknown: deprecation status unknown: catalog data unavailable")
	condition(t, name, ocv1.TypeProgressing, "True Succeeded: Desired state reached")
	remove(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}})
	exists(t, &corev1.Service{}, name, name)
}

func TestInstalledContentIsKeptWhileAnUpgradeIsImpossible(t *testing.T) {
	t.Parallel()
	const name = "stuck"
	publish(t, operators(name, "1.0.0")...)
	extend(t, name)
	installed(t, name, "1.0.0")

	update(t, name, version("3.x"))
	condition(t, name, ocv1.TypeProgressing,
		`True Retrying: error upgrading from currently installed version "1.0.0": no bundles found for package "stuck" matching version "3.x"`)
	condition(t, name, ocv1.TypeInstalled, "True Succeeded: Installed bundle registry.test/stuck:v1.0.0 successfully")
	remove(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}})
	exists(t, &corev1.Service{}, name, name)
}

func TestUninstallWithoutTheServiceAccount(t *testing.T) {
	t.Parallel()
	const name = "abandoned"
	publish(t, operators(name, "1.0.0")...)
	extend(t, name)
	installed(t, name, "1.0.0")

	remove(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: installer}})
	condition(t, name, ocv1.TypeProgressing, `True Retrying: operation cannot proceed due to the following validation error(s): `+
		`service account "installer" not found in namespace "abandoned"`)
	condition(t, name, ocv1.TypeInstalled, "True Succeeded: Installed bundle registry.test/abandoned:v1.0.0 successfully")
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	nothingLeft(t, name)
}

func TestForeignObjectsBlockAndAreNamed(t *testing.T) {
	t.Parallel()
	const name = "occupied"
	publish(t, operators(name, "1.0.0")...)
	makeNamespace(t, name)
	foreign := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"},
		Data:       map[string]string{"key": "theirs"}, // who wrote nothing is no field manager
	}
	if err := theSuite.Admin.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	makeAccount(t, name)
	grant(t, name, "cluster-admin")
	extendOnly(t, name)
	condition(t, name, ocv1.TypeProgressing, `True Retrying: error for resolved bundle "occupied.v1.0.0" with version "1.0.0": `+
		`ConfigMap "settings" already exists in namespace 'occupied' and cannot be managed by operator-controller`)
	condition(t, name, ocv1.TypeInstalled, "False Failed: No bundle installed")
	conditionContains(t, name, ocv1.TypeReady, `ConfigMap "settings" in namespace "occupied" exists already and belongs to nobody that it names (written by `)
	conditionContains(t, name, ocv1.TypeReady, `hand it over: label it olm.operatorframework.io/owner-name=occupied and `+
		`annotate it meta.helm.sh/release-name=occupied meta.helm.sh/release-namespace=occupied; or delete the object with its data`)

	remove(t, foreign)
	installed(t, name, "1.0.0")
}

// TestForeignObjectsCanBeHandedOver does what Ready says.
func TestForeignObjectsCanBeHandedOver(t *testing.T) {
	t.Parallel()
	const name = "handed-over"
	publish(t, operators(name, "1.0.0")...)
	makeNamespace(t, name)
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: name, Name: "settings",
		Labels:      map[string]string{"olm.operatorframework.io/owner-name": name},
		Annotations: map[string]string{"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": name},
	}}
	if err := theSuite.Admin.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	makeAccount(t, name)
	grant(t, name, "cluster-admin")
	extendOnly(t, name)
	installed(t, name, "1.0.0")
}

func TestTwoExtensionsOfOnePackage(t *testing.T) {
	t.Parallel()
	const name, second = "only-once", "only-once-more"
	publish(t, operators(name, "1.0.0")...)
	extend(t, name)
	installed(t, name, "1.0.0")

	extendOnly(t, second, fromCatalog(name), func(twin *ocv1.ClusterExtension) {
		twin.Spec.Namespace, twin.Spec.Source.Catalog.PackageName = name, name
	})
	condition(t, second, ocv1.TypeReady, `False Retrying: "only-once.v1.0.0" cannot be installed: package "only-once" is installed by ClusterExtension "only-once"; `+
		`a cluster can have it once; `+object.KeepOne(second, name))
	conditionContains(t, second, ocv1.TypeProgressing, "cannot be managed by operator-controller; ")
}
