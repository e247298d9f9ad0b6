package applier_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// parcel is a custom resource of what [parcels] defines.
func parcel(namespace, name string, finalizers ...string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("deletion.test/v1")
	object.SetKind("Parcel")
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetFinalizers(finalizers)
	return object
}

func parcels(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parcels.deletion.test}
spec:
  group: deletion.test
  scope: Namespaced
  names: {kind: Parcel, plural: parcels}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestDeletion deletes an extension with custom resources of which one has a
// finalizer that nobody removes.
func TestDeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "deletion")
	f.apply(t, "1.0.0", parcels(t), configMap("c", "v"))
	held := parcel(f.owner.Namespace, "held", "deletion.test/finalizer")
	for _, object := range []*unstructured.Unstructured{held, parcel(f.owner.Namespace, "free"), parcel("default", "elsewhere")} {
		eventually(t, "creating a custom resource", func() bool { return admin.Create(t.Context(), object) == nil })
	}
	f.requests.take()
	deletion, err := f.applier.BeginDeletion(t.Context(), f.owner)
	counts := deletion.CustomResources
	if err != nil || len(deletion.Staying) > 0 || len(counts) != 1 || counts[0].Definition != "parcels.deletion.test" || counts[0].Count != 3 || counts[0].Err != nil {
		t.Errorf("custom resources: %+v (%v)", counts, err)
	}
	if got := f.remaining(t); len(got) != 2 {
		t.Errorf("what is left before anything goes: %q", got)
	}

	for _, object := range []*unstructured.Unstructured{parcels(t), configMap("c", "")} {
		if object.GetKind() == "ConfigMap" {
			object.SetNamespace(f.owner.Namespace)
		}
		if err := admin.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`CustomResourceDefinition "parcels.deletion.test" because of ` +
		`Parcel "held" in namespace "` + f.owner.Namespace + `" with finalizers [deletion.test/finalizer]`}
	eventually(t, "what is held up is named", func() bool { return slices.Equal(f.remaining(t), want) })
	if diff := cmp.Diff(want, f.remaining(t)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	for _, request := range f.requests.take() {
		if !strings.Contains(request, " GET ") && !strings.Contains(request, " LIST ") {
			t.Errorf("%s: nothing may be written", request)
		}
	}

	if err := admin.Patch(t.Context(), held, client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is left", func() bool { return len(f.remaining(t)) == 0 })
	f.requests.take()
	if f.remaining(t); len(f.requests.take()) > 0 {
		t.Error("what is gone is asked for again")
	}
}

// TestDeletionWithoutRights has a ServiceAccount that lost its rights before its
// extension is deleted.
func TestDeletionWithoutRights(t *testing.T) {
	t.Parallel()
	f := newPowerlessFixture(t, "deletion-denied")
	binding := &rbacv1.ClusterRoleBinding{}
	binding.Name = f.owner.Namespace
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.owner.Namespace, Name: account}}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	create(t, binding)
	f.waitAllowed(t)
	f.apply(t, "1.0.0", configMap("c", "v"))
	if err := admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	f.waitMay(t, false, authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps", Name: "c"})
	if deletion, err := f.applier.BeginDeletion(t.Context(), f.owner); err != nil || len(deletion.CustomResources)+len(deletion.Staying) > 0 {
		t.Errorf("got %+v (%v)", deletion, err)
	}
	want := []string{`ConfigMap "c" in namespace "` + f.owner.Namespace + `", unless it is gone: the ServiceAccount may not get it`}
	if diff := cmp.Diff(want, f.remaining(t)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// TestDeletionOfWhatWasNeverTakenOver: an extension has the records of an earlier one
// of its name, and only a part of its content.
func TestDeletionOfWhatWasNeverTakenOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "deletion-not-owned")
	definition := parcels(t)
	definition.SetName("parcels.stays.test")
	if err := unstructured.SetNestedField(definition.Object, "stays.test", "spec", "group"); err != nil {
		t.Fatal(err)
	}
	f.apply(t, "1.0.0", definition, configMap("stays", "v"), configMap("goes", "v"))
	f.takeOwnerOff(t, "stays")
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"ownerReferences": null}}`))
	if err := admin.Patch(t.Context(), definition, free); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), definition); err != nil {
			t.Error(err)
		}
	})
	f.restart(t)
	deletion, err := f.applier.BeginDeletion(t.Context(), f.owner)
	if err != nil || len(deletion.CustomResources) > 0 {
		t.Errorf("got %+v (%v)", deletion, err)
	}
	var staying []string
	for _, object := range deletion.Staying {
		staying = append(staying, object.String())
	}
	want := []string{`ConfigMap "stays" in namespace "` + f.owner.Namespace + `"`, `CustomResourceDefinition "parcels.stays.test"`}
	if diff := cmp.Diff(want, staying); diff != "" {
		t.Errorf("what stays (-want +got):\n%s", diff)
	}
	if remaining := f.remaining(t); len(remaining) != 1 || !strings.Contains(remaining[0], "goes") {
		t.Errorf("what is left is %q, want what goes", remaining)
	}
}

func (f *fixture) remaining(t *testing.T) []string {
	t.Helper()
	found, err := f.applier.Remaining(t.Context(), f.owner)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	testkit.Await(t, patience, what, holds)
}
