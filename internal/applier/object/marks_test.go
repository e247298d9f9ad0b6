package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestOwnedTwice: what is recorded of a revision has the marks of its owner already when it is
// applied anew.
func TestOwnedTwice(t *testing.T) {
	t.Parallel()
	owner := Owner{Name: "x", UID: "u", Namespace: "ns", Package: "p"}
	once := owner.Own(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "labels": map[string]any{"app": "a"}},
	}})
	if diff := cmp.Diff(once.Object, owner.Own(once).Object); diff != "" {
		t.Errorf("objects (-owned once +twice):\n%s", diff)
	}
}

// TestMarksOf: who takes the marks off what an extension has left leaves nothing by which the next one of its name
// would own it.
func TestMarksOf(t *testing.T) {
	t.Parallel()
	owner := Owner{Name: "x", UID: "u", Namespace: "ns"}
	for name, test := range map[string]struct {
		labels map[string]any
		of     string
		want   map[string]string
	}{
		"its own":                                {of: "x", labels: map[string]any{"app": "a"}, want: map[string]string{"app": "a"}},
		"its own, which the bundle says of, too": {of: "x", labels: map[string]any{labelManagedBy: "theirs"}, want: map[string]string{labelManagedBy: "theirs"}},
		"another one's":                          {of: "y", want: map[string]string{LabelOwnerName: "x", LabelOwnerKind: OwnerKind, labelManagedBy: managedByHelm}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := owner.Own(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "labels": test.labels},
			}})
			owner.Stamp(left)
			left.SetOwnerReferences(nil)
			meta := &metav1.ObjectMeta{Labels: left.GetLabels(), Annotations: left.GetAnnotations()}
			labels, annotations := MarksOf(meta, test.of)
			for _, one := range labels {
				delete(meta.Labels, one)
			}
			for _, one := range annotations {
				delete(meta.Annotations, one)
			}
			if diff := cmp.Diff(test.want, meta.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			left.SetLabels(meta.Labels)
			left.SetAnnotations(meta.Annotations)
			if got := owner.Owns(left); got != (test.of != owner.Name) {
				t.Errorf("the next one owns it: %t", got)
			}
		})
	}
}

// TestInheritedIn is F28: what another extension may have recorded counts as inherited.
func TestInheritedIn(t *testing.T) {
	t.Parallel()
	named := func(extension string) *unstructured.Unstructured {
		return Owner{Name: extension}.Own(&unstructured.Unstructured{Object: map[string]any{}})
	}
	own, left, unlabelled := named("a"), named("b"), &unstructured.Unstructured{Object: map[string]any{}}
	recorded := []*unstructured.Unstructured{own, left, unlabelled}
	for adopts, want := range map[string][]*unstructured.Unstructured{"": {}, "b": {left, unlabelled}} {
		if diff := cmp.Diff(want, Owner{Name: "a", Adopts: adopts}.InheritedIn(recorded)); diff != "" {
			t.Errorf("adopting %q (-want +got):\n%s", adopts, diff)
		}
	}
}
