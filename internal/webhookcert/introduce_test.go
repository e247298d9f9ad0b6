package webhookcert_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// TestIntroduce: an API service that is created while there is a certificate trusts what
// it would be made to trust later, so that there is nothing left to write to it.
func TestIntroduce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*testing.T, *world)
		want   bool
	}{
		"a certificate": {want: true},
		"one that is about to be replaced": {
			change: func(t *testing.T, w *world) {
				t.Helper()
				w.now = start.Add(lifetime * 2 / 3)
				w.settle(t)
				unstructured.RemoveNestedField(w.objects["v1.garden.test"].Object, "spec", "caBundle")
			},
			want: true,
		},
		"no Secret": {change: func(_ *testing.T, w *world) { delete(w.objects, "gardener") }},
		"the Secret of others": {
			change: func(_ *testing.T, w *world) { w.objects["gardener"].SetName("other") },
		},
		"a certificate of others": {
			change: func(_ *testing.T, w *world) { w.objects["v1.garden.test"].SetAnnotations(nil) },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			service := w.objects["v1.garden.test"].DeepCopy()
			delete(w.objects, service.GetName())
			w.settle(t)
			w.objects[service.GetName()] = service
			if tt.change != nil {
				tt.change(t, w)
			}
			var objects []*unstructured.Unstructured
			for name, object := range w.objects {
				if name != service.GetName() {
					objects = append(objects, object)
				}
			}
			made, err := webhookcert.Introduce(w.objects[service.GetName()].DeepCopy(), objects, w.now)
			if err != nil {
				t.Fatal(err)
			}
			w.objects[service.GetName()] = made
			trusted := w.trusted(t)
			if got := trusted["API"] != ""; got != tt.want {
				t.Fatalf("it trusts %q, want something: %v", trusted["API"], tt.want)
			}
			if tt.want && trusted["API"] != trusted["conversion"] {
				t.Error("it trusts another certificate than the others do")
			}
			if tt.want {
				checkTrust(t, w, map[string]time.Time{string(w.secret(t)["tls.crt"]): w.now.Add(day)})
			}
		})
	}
}
