package release

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestLastAppliedIsThatOfOneManifest(t *testing.T) {
	t.Parallel()
	prints := map[object.Key]object.Fingerprint{}
	for _, name := range []string{"a", "b"} {
		prints[object.Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: name}] = object.Fingerprint{UID: "u-1", ResourceVersion: "7"}
	}
	keys := slices.Collect(maps.Keys(prints))
	text, err := encodeLastApplied("manifest", prints)
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
		"as they were left": {manifest: "manifest", text: text, keys: keys, want: prints},
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
			installed := &Installed{release: &release.Release{Manifest: tc.manifest, Labels: map[string]string{labelLastApplied: tc.text}}}
			if diff := cmp.Diff(tc.want, installed.LastApplied(tc.keys)); diff != "" {
				t.Errorf("LastApplied() (-want +got): %s\n%s", tc.reason, diff)
			}
		})
	}
}
