package applier

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

func TestTracesAreThoseOfOneManifest(t *testing.T) {
	t.Parallel()
	live := map[object.Key]*unstructured.Unstructured{}
	for _, name := range []string{"a", "b"} {
		obj := &unstructured.Unstructured{}
		obj.SetUID("u-" + "1")
		obj.SetResourceVersion("7")
		live[object.Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: name}] = obj
	}
	keys := slices.Collect(maps.Keys(live))
	text, err := tracesOf("manifest", outcome{live: live})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason   string
		manifest string
		text     string
		keys     []object.Key
		want     map[object.Key]object.Fingerprint
	}{
		"as they were left": {manifest: "manifest", text: text, keys: keys, want: fingerprints(live)},
		"carried over":      {reason: "Helm keeps labels that the next writer does not name", manifest: "other", text: text, keys: keys},
		"none":              {reason: "the reference implementation knows no such label", manifest: "manifest", keys: keys},
		"another format": {
			reason: "fingerprints may have been something else", manifest: "manifest", keys: keys,
			text: strings.Replace(text, `"format":1`, `"format":2`, 1),
		},
		"one less": {reason: "kinds may have become others", manifest: "manifest", text: text, keys: keys[:1]},
		"other objects": {
			reason: "kinds may have become others", manifest: "manifest", text: text,
			keys: []object.Key{keys[0], {GroupKind: schema.GroupKind{Kind: "Secret"}, Namespace: "ns", Name: "b"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rel := &release.Release{Manifest: tc.manifest, Labels: map[string]string{labelTraces: tc.text}}
			if diff := cmp.Diff(tc.want, tracesIn(rel, tc.keys)); diff != "" {
				t.Errorf("tracesIn() (-want +got): %s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCertificatesLeaveNoTraces(t *testing.T) {
	t.Parallel()
	secret := &unstructured.Unstructured{}
	secret.SetAnnotations(map[string]string{bundle.AnnotationCertificateNames: "a.test"})
	text, err := tracesOf("manifest", outcome{live: map[object.Key]*unstructured.Unstructured{{Name: "s"}: secret}})
	if err != nil || text != "" {
		t.Errorf("traces = %q, %v, want none: a certificate is looked after by its content", text, err)
	}
}

func TestRollCall(t *testing.T) {
	t.Parallel()
	a, b := object.Key{Name: "a"}, object.Key{Name: "b"}
	tests := map[string]struct {
		answer   func(*rollCall)
		over     bool
		complete bool
	}{
		"nobody yet":       {answer: func(*rollCall) {}},
		"some":             {answer: func(r *rollCall) { r.answer(a); r.answer(a); r.answer(object.Key{Name: "c"}) }},
		"all":              {answer: func(r *rollCall) { r.answer(a); r.answer(b); r.answer(b) }, over: true, complete: true},
		"one is not seen":  {answer: func(r *rollCall) { r.answer(a); r.fail(); r.fail(); r.answer(b) }, over: true},
		"failed after all": {answer: func(r *rollCall) { r.answer(a); r.answer(b); r.fail() }, over: true, complete: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRollCall(map[object.Key]object.Fingerprint{a: {UID: "1"}, b: {UID: "1"}})
			tc.answer(r)
			over := false
			select {
			case <-r.over:
				over = true
			default:
			}
			if over != tc.over || r.isComplete() != tc.complete {
				t.Errorf("over: %t, complete: %t, want %t and %t", over, r.isComplete(), tc.over, tc.complete)
			}
		})
	}
	if empty := newRollCall(nil); !empty.isComplete() {
		t.Error("a revision without objects is waited for")
	}
}
