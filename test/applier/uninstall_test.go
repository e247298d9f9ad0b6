package applier_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// definitionIn is a definition of a group of its own, as tests of definitions need it.
func definitionIn(t *testing.T, group string) *unstructured.Unstructured {
	t.Helper()
	definition := parcels(t)
	definition.SetName("parcels." + group)
	if err := unstructured.SetNestedField(definition.Object, group, "spec", "group"); err != nil {
		t.Fatal(err)
	}
	return definition
}

func parcelIn(group, namespace, name string) *unstructured.Unstructured {
	object := parcel(namespace, name)
	object.SetAPIVersion(group + "/v1")
	return object
}

func (f *fixture) uses(t *testing.T) installation.Uses {
	t.Helper()
	uses, err := f.applier.Uses(t.Context(), f.owner)
	if err != nil {
		t.Fatal(err)
	}
	return uses
}

// TestUses has custom resources of which one belongs to the extension, and is woken when
// the others are gone. No request is made until then.
func TestUses(t *testing.T) {
	t.Parallel()
	const group = "uses.test"
	f := newFixture(t, "uses")
	f.apply(t, "1.0.0", definitionIn(t, group))
	f.settle(t)
	own := parcelIn(group, f.owner.Namespace, "an-own")
	own.SetOwnerReferences([]metav1.OwnerReference{*f.owner.Reference()})
	first, second := parcelIn(group, f.owner.Namespace, "first"), parcelIn(group, "default", "second")
	for _, object := range []*unstructured.Unstructured{own, first, second} {
		eventually(t, "creating a custom resource", func() bool { return admin.Create(t.Context(), object) == nil })
	}
	uses := f.uses(t)
	var named []string
	for _, object := range uses.Definitions[0].First {
		named = append(named, object.String())
	}
	want := []string{`Parcel "second" in namespace "default"`, `Parcel "first" in namespace "` + f.owner.Namespace + `"`, `Parcel "an-own" in namespace "` + f.owner.Namespace + `"`}
	if use := uses.Definitions[0]; len(uses.Definitions) != 1 || use.Definition != "parcels.uses.test" || use.Count != 3 || use.Own != 1 || use.Err != nil {
		t.Errorf("got %+v", uses)
	}
	if diff := cmp.Diff(want, named); diff != "" {
		t.Errorf("named (-want +got):\n%s", diff)
	}
	f.requests.take()
	for range 250 {
		if again := f.uses(t); again.RecheckAfter <= 0 || again.Definitions[0].Count != 3 {
			t.Fatalf("got %+v", again)
		}
	}
	if requests := f.requests.take(); len(requests) > 0 {
		t.Errorf("%q are made although nothing has changed", requests)
	}
	for _, object := range []*unstructured.Unstructured{first, second} {
		if err := admin.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if extension := f.waitForChange(t); extension != f.owner.Name {
		t.Errorf("%s is woken", extension)
	}
	eventually(t, "only its own is left", func() bool {
		uses := f.uses(t)
		return uses.Definitions[0].Count == 1 && uses.RecheckAfter == 0
	})
}

// TestUsesWithoutRights has nobody who may list custom resources.
func TestUsesWithoutRights(t *testing.T) {
	t.Parallel()
	const group = "uses-denied.test"
	f := newPowerlessFixture(t, "uses-denied")
	binding := &rbacv1.ClusterRoleBinding{}
	binding.Name = f.owner.Namespace
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.owner.Namespace, Name: account}}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	create(t, binding)
	f.waitAllowed(t)
	f.apply(t, "1.0.0", definitionIn(t, group))
	if err := admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	f.waitMay(t, false, authorizationv1.ResourceAttributes{Verb: "list", Group: group, Resource: "parcels"})
	uses := f.uses(t)
	if len(uses.Definitions) != 1 {
		t.Fatalf("got %+v", uses)
	}
	uncounted, ok := errors.AsType[*installation.UncountedError](uses.Definitions[0].Err)
	if !ok || uncounted.Resource != "parcels."+group {
		t.Errorf("got %v", uses.Definitions[0].Err)
	}
	if _, err := f.applier.KeepDefinitions(t.Context(), f.owner); err == nil {
		t.Error("a definition is kept without the right to")
	}
}

// TestKeepingAllOrNothing has a ServiceAccount that may write one definition of two: if that one
// were let go of, the repair of what is held would own it again, and so on.
func TestKeepingAllOrNothing(t *testing.T) {
	t.Parallel()
	f := newPowerlessFixture(t, "keeps-all")
	bind := func(name, role string) *rbacv1.ClusterRoleBinding {
		binding := &rbacv1.ClusterRoleBinding{}
		binding.Name = name
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.owner.Namespace, Name: account}}
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		create(t, binding)
		return binding
	}
	all := bind(f.owner.Namespace, "cluster-admin")
	f.waitAllowed(t)
	one, other := definitionIn(t, "keeps-one.test"), definitionIn(t, "keeps-other.test")
	f.apply(t, "1.0.0", one, other)
	role := &rbacv1.ClusterRole{}
	role.Name = f.owner.Namespace + "-some"
	groups, definitions := []string{"apiextensions.k8s.io"}, []string{"customresourcedefinitions"}
	role.Rules = []rbacv1.PolicyRule{
		{APIGroups: groups, Resources: definitions, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: groups, Resources: definitions, Verbs: []string{"patch"}, ResourceNames: []string{one.GetName()}},
	}
	create(t, role)
	bind(role.Name, role.Name)
	if err := admin.Delete(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	f.waitMay(t, false, authorizationv1.ResourceAttributes{Verb: "patch", Group: groups[0], Resource: definitions[0], Name: other.GetName()})
	f.waitMay(t, true, authorizationv1.ResourceAttributes{Verb: "patch", Group: groups[0], Resource: definitions[0], Name: one.GetName()})

	kept, err := f.applier.KeepDefinitions(t.Context(), f.owner)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("customresourcedefinitions.apiextensions.k8s.io %q is forbidden", other.GetName())) || len(kept) > 0 {
		t.Errorf("kept %q, error %v", kept, err)
	}
	live := &apiextensionsv1.CustomResourceDefinition{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: one.GetName()}, live); err != nil || !f.owner.IsOwnerOf(live) {
		t.Errorf("%s was let go of (%v)", one.GetName(), err)
	}
}

// TestKeepDefinitions has a definition that a webhook converts, first with two versions and
// then with one.
func TestKeepDefinitions(t *testing.T) {
	t.Parallel()
	const group = "keeps.test"
	f := newFixture(t, "keeps")
	converted, plain := definitionIn(t, group), definitionIn(t, "keeps-plain.test")
	if err := unstructured.SetNestedField(converted.Object, map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             map[string]any{"service": map[string]any{"namespace": f.owner.Namespace, "name": "none"}},
		},
	}, "spec", "conversion"); err != nil {
		t.Fatal(err)
	}
	f.apply(t, "1.0.0", converted, plain)
	live := &apiextensionsv1.CustomResourceDefinition{}
	read := func(name string) {
		t.Helper()
		if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, live); err != nil {
			t.Fatal(err)
		}
	}
	read(converted.GetName())
	store := func(versions ...string) {
		t.Helper()
		eventually(t, "the stored versions", func() bool {
			read(converted.GetName())
			live.Status.StoredVersions = versions
			return admin.Status().Update(t.Context(), live) == nil
		})
	}
	store("v0", "v1")
	_, err := f.applier.KeepDefinitions(t.Context(), f.owner)
	if needed, ok := errors.AsType[*installation.ConversionError](err); !ok || needed.Definition != converted.GetName() {
		t.Errorf("got %v", err)
	}
	if read(plain.GetName()); !f.owner.IsOwnerOf(live) {
		t.Error("something was written")
	}

	store("v1")
	kept, err := f.applier.KeepDefinitions(t.Context(), f.owner)
	if diff := cmp.Diff([]string{"parcels.keeps-plain.test", "parcels.keeps.test"}, kept); diff != "" || err != nil {
		t.Errorf("kept (%v, -want +got):\n%s", err, diff)
	}
	if read(converted.GetName()); live.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter || f.owner.IsOwnerOf(live) || live.Labels[object.LabelOwnerName] != f.owner.Name {
		t.Errorf("got %+v of %+v", live.Spec.Conversion, live.ObjectMeta)
	}
	f.requests.take()
	if kept, err := f.applier.KeepDefinitions(t.Context(), f.owner); err != nil || len(kept) > 0 {
		t.Errorf("kept once more: %q (%v)", kept, err)
	}
	t.Cleanup(func() {
		for _, definition := range []client.Object{converted, plain} {
			if err := admin.Delete(context.Background(), definition); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestHeldExtensionsAreLookedAfter repairs the content of an extension that is being deleted,
// as long as it is held and nobody else deletes its content.
func TestHeldExtensionsAreLookedAfter(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "held")
	f.apply(t, "1.0.0", configMap("c", "v"))
	f.settle(t)
	extension := &unstructured.Unstructured{}
	extension.SetGroupVersionKind(object.OwnerResource.GroupVersion().WithKind(object.OwnerKind))
	extension.SetName(f.owner.Name)
	finalizers := func(names string) {
		t.Helper()
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": [`+names+`]}}`))
		if err := admin.Patch(t.Context(), extension, patch); err != nil {
			t.Fatal(err)
		}
	}
	finalizers(`"held.test/ours"`)
	t.Cleanup(func() {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))
		if err := client.IgnoreNotFound(admin.Patch(context.Background(), extension, patch)); err != nil {
			t.Error(err)
		}
	})
	if err := admin.Delete(t.Context(), extension.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	damage := func() {
		t.Helper()
		if err := admin.Delete(t.Context(), f.live(t, "c")); err != nil {
			t.Fatal(err)
		}
		f.waitForChange(t)
	}
	damage()
	if _, err := f.applier.Repair(t.Context(), f.owner); !errors.Is(err, object.ErrOwnerGone) {
		t.Errorf("got %v, want that nothing is written for what is being deleted", err)
	}
	held := f.owner
	held.Held = true
	eventually(t, "a repair", func() bool {
		_, err := f.applier.Repair(t.Context(), held)
		return err == nil && f.live(t, "c") != nil
	})
}

// TestDeletionsInOrder deletes custom resources and what runs, and nothing else.
func TestDeletionsInOrder(t *testing.T) {
	t.Parallel()
	const group = "in-order.test"
	f := newFixture(t, "in-order")
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "registry.test/c"}}},
			},
		},
	}}
	f.apply(t, "1.0.0", definitionIn(t, group), deployment, configMap("c", "v"))
	free, held := parcelIn(group, f.owner.Namespace, "free"), parcelIn(group, "default", "held")
	held.SetFinalizers([]string{"in-order.test/f"})
	for _, object := range []*unstructured.Unstructured{free, held} {
		eventually(t, "creating a custom resource", func() bool { return admin.Create(t.Context(), object) == nil })
	}
	for range 2 {
		if err := f.applier.DeleteCustomResources(t.Context(), f.owner); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "only what is held is left", func() bool {
		use := f.uses(t).Definitions[0]
		f.applier.Forget(f.owner.Name) // and what it remembers of that
		return use.Count == 1 && use.First[0].String() == `Parcel "held" in namespace "default" with finalizers [in-order.test/f]`
	})
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))
	if err := admin.Patch(t.Context(), held, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of what runs", func() bool {
		left, err := f.applier.DeleteWorkloads(t.Context(), f.owner)
		if err != nil || len(left) > 0 && left[0] != `Deployment "d" in namespace "`+f.owner.Namespace+`"` {
			t.Fatalf("%q are left (%v)", left, err)
		}
		time.Sleep(50 * time.Millisecond)
		return len(left) == 0
	})
	if f.live(t, "c") == nil {
		t.Error("something else was deleted")
	}
}

// TestSharedDefinitionsStay has a definition that somebody else owns too: it does not go with the
// extension, so that its custom resources are not deleted before.
func TestSharedDefinitionsStay(t *testing.T) {
	t.Parallel()
	const group = "shared-definitions.test"
	f := newFixture(t, "shared-definitions")
	f.apply(t, "1.0.0", definitionIn(t, group), configMap("c", "v"))
	other := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": group},
	}}
	if err := admin.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), other) })
	definition := definitionIn(t, group)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the API server writes its status
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
			return err
		}
		definition.SetOwnerReferences(append(definition.GetOwnerReferences(), metav1.OwnerReference{
			APIVersion: other.GetAPIVersion(), Kind: other.GetKind(), Name: other.GetName(), UID: other.GetUID(),
		}))
		return admin.Update(t.Context(), definition)
	})
	if err != nil {
		t.Fatal(err)
	}
	one := parcelIn(group, "default", "one")
	eventually(t, "creating a custom resource", func() bool { return admin.Create(t.Context(), one) == nil })
	if err := f.applier.DeleteCustomResources(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil || one.GetDeletionTimestamp() != nil {
		t.Errorf("a custom resource of a definition that stays was deleted (%v)", err)
	}
	if uses := f.uses(t).Definitions; len(uses) != 1 || !uses[0].Shared || uses[0].Count != 1 {
		t.Errorf("got %+v", uses)
	}
}

// TestOrphanWithoutRecords has records that somebody has deleted: nothing is let go of then, which
// the definitions tell.
func TestOrphanWithoutRecords(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "unrecorded")
	f.apply(t, "1.0.0", definitionIn(t, "unrecorded.test"))
	for _, record := range f.allRecords(t) {
		if err := admin.Delete(t.Context(), &record); err != nil {
			t.Fatal(err)
		}
	}
	f.applier.Forget(f.owner.Name)
	if err := f.applier.Orphan(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	if uses := f.uses(t); len(uses.Definitions) != 1 {
		t.Errorf("got %+v", uses)
	}
}
