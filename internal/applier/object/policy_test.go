package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestIsKept(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]bool{"keep": true, " Keep\n": true, "KEEP": true, "": false, "delete": false, "keep it": false} {
		if got := IsKept(withPolicy(policy)); got != want {
			t.Errorf("%q is kept: %t, want %t", policy, got, want)
		}
	}
}

func withPolicy(policy string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetName("a")
	object.SetAnnotations(map[string]string{AnnotationPolicy: policy})
	return object
}

// TestLifeOfAKeptObject: a kept object never has an owner reference, and only its extension adopts it.
func TestLifeOfAKeptObject(t *testing.T) {
	t.Parallel()
	owner := Owner{Name: "x", UID: "u", Namespace: "ns"}
	live := owner.Own(withPolicy("keep"))
	owner.Stamp(live)
	if len(live.GetOwnerReferences()) > 0 {
		t.Fatalf("owners: %v", live.GetOwnerReferences())
	}
	if !owner.Owns(live) || !owner.Has(live) {
		t.Error("the extension does not own what it has installed")
	}
	patch, err := owner.ReleasePatch(live)
	if err != nil {
		t.Fatal(err)
	}
	released, err := patch.AppliedTo(live)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{labelManagedBy: managedByHelm}
	if diff := cmp.Diff(want, released.GetLabels()); diff != "" {
		t.Errorf("labels of the released object (-want +got):\n%s", diff)
	}
	if again, err := owner.ReleasePatch(released); err != nil || !again.IsEmpty() {
		t.Errorf("it is released again: %s, %v", again.Data, err)
	}
	if owner.Has(released) || !owner.Owns(released) {
		t.Error("the extension still has it, or may not adopt it")
	}
	for name, other := range map[string]Owner{
		"another name":      {Name: "y", UID: "v", Namespace: "ns"},
		"another namespace": {Name: "x", UID: "v", Namespace: "other"},
	} {
		if other.Owns(released) || other.Owns(live) {
			t.Errorf("%s owns it", name)
		}
	}
	if holder := HolderOf(live); holder.Kind != OwnerKind || holder.Name != "x" {
		t.Errorf("holder = %+v", holder)
	}
}

// TestReleaseOfAnOwnedObject releases an object that was annotated after the extension became its owner.
func TestReleaseOfAnOwnedObject(t *testing.T) {
	t.Parallel()
	owner := Owner{Name: "x", UID: "u", Namespace: "ns"}
	live := owner.OwnHook(withPolicy("keep"))
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "o"}
	live.SetOwnerReferences(append(live.GetOwnerReferences(), other))
	patch, err := owner.ReleasePatch(live)
	if err != nil {
		t.Fatal(err)
	}
	released, err := patch.AppliedTo(live)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{other}, released.GetOwnerReferences()); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

// TestImportedObjects are owned by what Helm has written on them, for a manifest of Helm alone.
func TestImportedObjects(t *testing.T) {
	t.Parallel()
	owner := Owner{Name: "x", UID: "u", Namespace: "ns"}
	manifest := withPolicy("")
	live := manifest.DeepCopy()
	owner.Stamp(live)
	if owner.Owns(live) || !owner.OwnsAs(manifest, live) || owner.OwnsAs(owner.Own(manifest), live) {
		t.Error("what Helm has written counts for another manifest, or not for its own")
	}
	if (Owner{Name: "y", Namespace: "ns"}).OwnsAs(manifest, live) {
		t.Error("an extension of another name owns it")
	}
	patch, err := owner.ClaimPatch(live)
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := patch.AppliedTo(live)
	if err != nil {
		t.Fatal(err)
	}
	if !owner.Controls(claimed) || !owner.Owns(claimed) || owner.OwnsAs(manifest, withController(live, "theirs")) {
		t.Errorf("owners: %v", claimed.GetOwnerReferences())
	}
}

func withController(object *unstructured.Unstructured, uid string) *unstructured.Unstructured {
	controlled := object.DeepCopy()
	controlled.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: uid, UID: "o", Controller: new(true)}})
	return controlled
}
