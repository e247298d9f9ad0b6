package controller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
)

const textUnpolled = `the controller does not check catalog "c" for newer versions: set its spec.source.image.pollIntervalMinutes`

// catalogOf returns the image source of a catalog.
func catalogOf(ref string, minutes *int) *ocv1.ImageSource {
	return &ocv1.ImageSource{Ref: ref, PollIntervalMinutes: minutes}
}

// TestReadyReportsAnUnpolledCatalog covers the question why an extension is not upgraded although
// its publisher has pushed a newer catalog.
func TestReadyReportsAnUnpolledCatalog(t *testing.T) {
	t.Parallel()
	const installed = `"p.v1.0.0" version "1.0.0" is installed, from catalog "c"`
	for name, tc := range map[string]struct {
		image   *ocv1.ImageSource
		offered []string
		version string
		suspend bool
		want    string
	}{
		"by tag":               {image: catalogOf("registry.test/c:latest", nil), offered: []string{"1.0.0"}, want: installed + "; " + textUnpolled},
		"by tag, polled":       {image: catalogOf("registry.test/c:latest", new(10)), offered: []string{"1.0.0"}, want: installed},
		"by digest":            {image: catalogOf("registry.test/c@sha256:"+strings.Repeat("a", 64), nil), offered: []string{"1.0.0"}, want: installed},
		"a newer one is known": {image: catalogOf("registry.test/c:latest", nil), offered: []string{"1.0.0", "2.0.0"}, version: "1.x", want: installed + "; newer but left out: "},
		"suspended":            {image: catalogOf("registry.test/c:latest", nil), offered: []string{"1.0.0"}, suspend: true, want: installed + "; suspended since "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			catalog := &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
			if err := w.client.Get(t.Context(), requestFor("c").NamespacedName, catalog); err != nil {
				t.Fatal(err)
			}
			catalog.Spec.Source.Image = tc.image
			if err := w.client.Update(t.Context(), catalog); err != nil {
				t.Fatal(err)
			}
			w.editSpec(t, func(ext *ocv1.ClusterExtension) {
				ext.Spec.Source.Catalog.Version, ext.Spec.Suspend = tc.version, tc.suspend
			})
			w.installation.Installed = &installation.Revision{Bundle: identity("1.0.0"), Image: "registry.test/p:v1.0.0"}
			w.catalog["p"] = offering(tc.offered...).Package
			w.mustReconcile(t)
			got := w.ready(t).Message
			if strings.HasSuffix(tc.want, " ") {
				if !strings.HasPrefix(got, tc.want) || strings.Contains(got, textUnpolled) {
					t.Errorf("Ready is %q, want it to begin with %q", got, tc.want)
				}
			} else if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
			explained, err := w.reconciler.Explain(t.Context(), w.extension(t).Name)
			if want := strings.Contains(tc.want, textUnpolled); err != nil || !tc.suspend && (explained.Polling == textUnpolled) != want {
				t.Errorf("explain reports %q (%v), want the hint: %t", explained.Polling, err, want)
			}
		})
	}
}
