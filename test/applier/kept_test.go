package applier_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestDroppedObjectsAreKept: an annotation on a manifest, or on the object alone, keeps an object that a new
// revision drops. A later revision adopts it.
func TestDroppedObjectsAreKept(t *testing.T) {
	t.Parallel()
	for name, isAnnotatedLater := range map[string]bool{"manifest": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "kept-by-"+name)
			kept, other := configMap("kept", "v"), configMap("other", "v")
			if !isAnnotatedLater {
				kept.SetAnnotations(map[string]string{object.AnnotationPolicy: "keep"})
			}
			f.apply(t, "1.0.0", kept, other)
			live := f.live(t, "kept")
			uid := live.UID
			if isAnnotatedLater {
				before := client.MergeFrom(live.DeepCopy())
				live.Annotations[object.AnnotationPolicy] = " KEEP"
				if err := admin.Patch(t.Context(), live, before); err != nil {
					t.Fatal(err)
				}
			}
			changes := f.apply(t, "1.1.0", configMap("new", "v")).Changes
			for name, want := range map[string]object.Change{"kept": object.Released, "other": object.Deleted} {
				if got := changes[object.Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: f.owner.Namespace, Name: name}]; got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if f.live(t, "other") != nil {
				t.Error("the other object is still there")
			}
			live = f.live(t, "kept")
			if live == nil || live.UID != uid || live.Labels[object.LabelOwnerName] != "" || len(live.OwnerReferences) > 0 {
				t.Fatalf("the object is %+v, want it without labels and owners", live)
			}
			f.apply(t, "1.2.0", kept)
			if live = f.live(t, "kept"); live.UID != uid || live.Labels[object.LabelOwnerName] != f.owner.Name {
				t.Errorf("the object is %+v, want it with the label", live.ObjectMeta)
			}
		})
	}
}

// TestReleaseKept releases the kept objects of an extension that is deleted, once, and asks nothing where there
// are none.
func TestReleaseKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "release-kept")
	kept := configMap("kept", "v")
	kept.SetAnnotations(map[string]string{object.AnnotationPolicy: "keep"})
	f.apply(t, "1.0.0", kept, configMap("other", "v"))
	for range 2 {
		found, err := f.applier.ReleaseKept(t.Context(), f.owner)
		if err != nil || len(found) != 1 || found[0].Name != "kept" {
			t.Fatalf("released %v, %v", found, err)
		}
	}
	if labels := f.live(t, "kept").Labels; labels[object.LabelOwnerName] != "" {
		t.Errorf("labels: %v", labels)
	}
	deletion, err := f.applier.BeginDeletion(t.Context(), f.owner)
	if err != nil || deletion.Objects != 1 || len(deletion.Staying) > 0 {
		t.Errorf("deletion %+v, %v; want the other object alone", deletion, err)
	}

	plain := newFixture(t, "release-nothing")
	plain.apply(t, "1.0.0", configMap("other", "v"))
	plain.requests.take()
	if found, err := plain.applier.ReleaseKept(t.Context(), plain.owner); err != nil || len(found) > 0 || len(plain.requests.take()) > 0 {
		t.Errorf("released %v, %v", found, err)
	}
	if _, err := plain.applier.ClaimImported(t.Context(), plain.owner); err != nil || len(plain.requests.take()) > 0 {
		t.Errorf("claimed: %v", err)
	}
}
