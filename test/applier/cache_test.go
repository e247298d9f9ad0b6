package applier_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestUpgradeThatAssumesWrongly has somebody act just when the upgrade has decided
// which objects not to read.
func TestUpgradeThatAssumesWrongly(t *testing.T) {
	t.Parallel()
	next := service(t)
	next.SetLabels(map[string]string{"version": "2"})
	tests := map[string]struct {
		before, after *unstructured.Unstructured // of an object; without after it is dropped
		meanwhile     func(t *testing.T, live *unstructured.Unstructured)
		want          string // what the object has in the end; empty if it is gone
		wantErr       string // empty for none
	}{
		"plain data is changed": {
			before: configMap("x", "1"), after: configMap("x", "2"),
			meanwhile: patching(`{"data":{"theirs":"1"}}`),
			want:      `"data":{"key":"2","theirs":"1"}`,
		},
		"what is tried is changed": {
			before: service(t), after: next,
			meanwhile: patching(`{"metadata":{"labels":{"theirs":"1"}}}`),
			want:      `"theirs":"1","version":"2"`,
		},
		"it is removed": {
			before: service(t), after: next,
			meanwhile: removing,
			want:      `"version":"2"`,
		},
		"it is replaced": {
			before: service(t), after: next,
			meanwhile: replacing,
			want:      `"theirs":"1"`, wantErr: "cannot be managed",
		},
		"what is dropped is changed": {
			before:    configMap("x", "1"),
			meanwhile: patching(`{"data":{"theirs":"1"}}`),
		},
		"what is dropped is removed": {before: configMap("x", "1"), meanwhile: removing},
		"what is dropped is taken over": {
			before:    configMap("x", "1"),
			meanwhile: patching(`{"metadata":{"ownerReferences":null,"labels":null,"annotations":null}}`),
			want:      `"key":"1"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "assumed-"+strings.ReplaceAll(name, " ", "-"))
			f.apply(t, "1.0.0", configMap("other", "1"), tc.before)
			f.settle(t)
			live := tc.before.DeepCopy()
			live.SetNamespace(f.owner.Namespace)
			var once sync.Once
			f.requests.setStop(func(req *http.Request) error {
				if isQuestion(req.URL) {
					once.Do(func() { tc.meanwhile(t, live) })
				}
				return nil
			})
			wanted := []*unstructured.Unstructured{configMap("other", "1")}
			if tc.after != nil {
				wanted = append(wanted, tc.after)
			}
			_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", wanted...))
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("err = %v, want %q", err, tc.wantErr)
			}
			err = admin.Get(t.Context(), client.ObjectKeyFromObject(live), live)
			if tc.want == "" {
				if !apierrors.IsNotFound(err) {
					t.Errorf("err = %v, want the object to be gone", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text, err := live.MarshalJSON(); err != nil || !strings.Contains(string(text), tc.want) {
				t.Errorf("got %s, %v, want %s", text, err, tc.want)
			}
		})
	}
}

func patching(patch string) func(*testing.T, *unstructured.Unstructured) {
	return func(t *testing.T, live *unstructured.Unstructured) {
		t.Helper()
		if err := admin.Patch(t.Context(), live.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Error(err)
		}
	}
}

func removing(t *testing.T, live *unstructured.Unstructured) {
	t.Helper()
	if err := admin.Delete(t.Context(), live.DeepCopy(), client.PropagationPolicy("Background")); err != nil {
		t.Error(err)
	}
}

// replacing has somebody else make the object anew.
func replacing(t *testing.T, live *unstructured.Unstructured) {
	t.Helper()
	removing(t, live)
	theirs := live.DeepCopy()
	theirs.SetLabels(map[string]string{"theirs": "1"})
	if err := admin.Create(t.Context(), theirs); err != nil {
		t.Error(err)
	}
}
