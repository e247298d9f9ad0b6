package bundlepush_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/clusterextensions/operator-controller/internal/bundlepush"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

// TestPushArchive: the bytes of an archive and of its provenance file are layers of the image, in
// the order in which Helm has them, and the controller reads the image.
func TestPushArchive(t *testing.T) {
	t.Parallel()
	registry, images := imagetest.Start(t)
	archive := webArchive(t)
	contents := map[string]bundlepush.Content{
		"an archive":                        {Files: web(), Archive: archive},
		"an archive with a provenance file": {Files: web(), Archive: archive, Provenance: []byte("signed")},
		"another provenance file":           {Files: web(), Archive: archive, Provenance: []byte("signed again")},
	}
	for title, content := range contents {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			ref, err := bundlepush.Target{Repository: registry.Host() + "/team/web", Tag: "1.2.0"}.Push(t.Context(), content)
			if err != nil {
				t.Fatal(err)
			}
			got := imagetest.Layers(t, ref)
			if !bytes.Equal(got[testkit.ChartContent], archive) || string(got[testkit.ChartProvenance]) != string(content.Provenance) {
				t.Errorf("layers %q", got)
			}
			found, err := image.Once(t.Context(), images, image.Request{Ref: ref, Select: image.BundleContent})
			if err != nil {
				t.Fatal(err)
			}
			found.Close()
		})
	}
}

// webArchive is an archive that nothing here would pack like this: it has an entry for its folder.
func webArchive(t *testing.T) []byte {
	t.Helper()
	entries := []testkit.TarEntry{testkit.Dir("web")}
	for path, file := range web() {
		entries = append(entries, testkit.File("web/"+strings.TrimPrefix(path, "chart/"), string(file.Data)))
	}
	archive, err := testkit.Tar(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Gzip(archive)
}

// TestPackChart: the archive of files is what Push makes of these files.
func TestPackChart(t *testing.T) {
	t.Parallel()
	registry, _ := imagetest.Start(t)
	target := bundlepush.Target{Repository: registry.Host() + "/team/web"}
	archive, err := bundlepush.PackChart(web())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := target.Push(t.Context(), bundlepush.Content{Files: web(), Archive: archive})
	if err != nil {
		t.Fatal(err)
	}
	if ref, err := target.Push(t.Context(), bundlepush.Content{Files: web()}); err != nil || ref != packed {
		t.Errorf("got %s and %s: %v", packed, ref, err)
	}
}

// TestTags: an image gets the tag of the target, and is pushed under no tag that cannot be.
func TestTags(t *testing.T) {
	t.Parallel()
	registry, _ := imagetest.Start(t)
	target := bundlepush.Target{Repository: registry.Host() + "/team/web", Tag: "v1.2.0"}
	if err := target.Check(); err != nil {
		t.Fatal(err)
	}
	ref, err := target.Push(t.Context(), bundlepush.Content{Files: web()})
	if err != nil {
		t.Fatal(err)
	}
	tagged, err := name.ParseReference(target.Repository + ":v1.2.0")
	if err != nil {
		t.Fatal(err)
	}
	if found, err := remote.Head(tagged); err != nil || !strings.HasSuffix(ref, "@"+found.Digest.String()) {
		t.Errorf("the tag names %v (%v), want %s", found, err, ref)
	}
	for _, tag := range []string{"1.2.0+build", "a/b", " ", "sha256:0", strings.Repeat("x", 129)} {
		if err := (bundlepush.Target{Repository: target.Repository, Tag: tag}).Check(); err == nil {
			t.Errorf("the tag %q is accepted", tag)
		}
	}
}
