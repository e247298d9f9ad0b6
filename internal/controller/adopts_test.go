package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestAdoptedContent: an extension names extensions that exist, or that do not exist.
func TestAdoptedContent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ names, want string }{
		"F28: an extension that is gone": {names: "gone", want: "gone"},
		"F28: an extension that exists":  {names: "other"},
		"F28: itself":                    {names: "x"},
		"F28: nothing":                   {},
		"F28: no name":                   {names: "not/a/name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := sampleExtension()
			metav1.SetMetaDataAnnotation(&ext.ObjectMeta, ocv1.AdoptsContentOfAnnotation, tc.names)
			other := sampleExtension()
			other.Name = "other"
			w := newWorld(t, ext, other)
			if got := w.reconciler.adoptedBy(t.Context(), ext); got != tc.want {
				t.Errorf("adopts the content of %q, want %q", got, tc.want)
			}
			matches := w.reconciler.concernedBy(t.Context(), other)
			if got := matches(ext); got != (tc.names == other.Name) {
				t.Errorf("the end of the other extension triggers a reconcile: %t", got)
			}
		})
	}
	if ocv1.AdoptsContentOfAnnotation != object.AnnotationAdopts {
		t.Error("the API and the applier have different annotations")
	}
}
