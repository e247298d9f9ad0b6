package webhookcert_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// TestIntroduceWebhooks: writes that a new webhook is asked about do not fail because nobody trusts it
// yet. One that is called at a URL is left alone.
func TestIntroduceWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wanted := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"validating", "mutating", "beds"} {
		wanted[name] = w.objects[name].DeepCopy()
	}
	w.settle(t)
	trusted := w.trusted(t)
	var objects []*unstructured.Unstructured
	for _, object := range w.objects {
		objects = append(objects, object)
	}
	for name, object := range wanted {
		made, err := webhookcert.Introduce(object, objects, w.now)
		if err != nil {
			t.Fatal(err)
		}
		w.objects[name] = made
	}
	if diff := cmp.Diff(trusted, w.trusted(t)); diff != "" {
		t.Errorf("what is trusted from the start is not what is trusted in the end: -want +got\n%s", diff)
	}
	if step := w.next(t); len(step.Patches) > 0 {
		t.Errorf("there is something left to write: %s", w.describe(t, step))
	}
}

// TestCertificateOfClassicOLM: its authority is where classic OLM keeps it, and stays trusted.
func TestCertificateOfClassicOLM(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle(t)
	data := map[string]any{}
	for key, value := range w.secret(t) {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	data["olmCAKey"] = data["ca.crt"]
	delete(data, "ca.crt")
	w.setSecret(data)
	if step := w.next(t); len(step.Patches) > 0 {
		t.Errorf("there is something to write: %s", w.describe(t, step))
	}
}
