package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
)

func TestImageOf(t *testing.T) {
	t.Parallel()
	const image, digest = "registry.test/p:v1", "sha256:one"
	before := &installation.Revision{Bundle: identity("1.0.0"), Image: image, Digest: digest}
	tests := map[string]struct {
		reason    string
		target    Target
		installed *installation.Revision
		want      BundleImage
	}{
		"nothing installed": {
			reason: "there is nothing to stay true to",
			target: Target{Bundle: identity("1.0.0"), Image: image},
			want:   BundleImage{Ref: image},
		},
		"the same bundle again": {
			reason: "a new configuration does not make it another bundle",
			target: Target{Bundle: identity("1.0.0"), Image: image}, installed: before,
			want: BundleImage{Ref: image, Digest: digest},
		},
		"another bundle under the same tag": {
			reason: "the catalog says that it is another one",
			target: Target{Bundle: identity("1.1.0"), Image: image}, installed: before,
			want: BundleImage{Ref: image},
		},
		"the same bundle elsewhere": {
			reason: "the catalog says where it is now",
			target: Target{Bundle: identity("1.0.0"), Image: "mirror.test/p:v1"}, installed: before,
			want: BundleImage{Ref: "mirror.test/p:v1"},
		},
		"a record that does not say": {
			reason: "as the reference implementation leaves them",
			target: Target{Bundle: identity("1.0.0"), Image: image}, installed: &installation.Revision{Bundle: identity("1.0.0"), Image: image},
			want: BundleImage{Ref: image},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, imageOf(tc.target, tc.installed)); diff != "" {
				t.Errorf("image (-want +got): %s\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDigestIsRemembered pins what was installed by tag to what the tag stood
// for, over a change of the configuration.
func TestDigestIsRemembered(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.catalog["p"] = offering("1.0.0").Package
	for _, want := range []string{"fetch registry.test/p:v1.0.0", "fetch registry.test/p:v1.0.0 sha256:registry.test/p:v1.0.0"} {
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
		if did := w.take(); len(did) == 0 || did[0] != want {
			t.Errorf("done = %q, want %q first", did, want)
		}
		w.installation.Installed.Inputs = "sha256:other"
	}
}

func TestMovedImageIsTold(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.moved = &Moved{Image: "registry.test/p:v1.0.0", From: "sha256:old", To: "sha256:new"}
	w.mustReconcile(t)
	want := "Warning ImageMoved: image registry.test/p:v1.0.0 has moved from sha256:old to sha256:new: what is installed stays what it was"
	if !slices.Contains(w.events, want) {
		t.Errorf("told %q, want %q", w.events, want)
	}
}
