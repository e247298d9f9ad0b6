package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundleimage"
	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/diskspace"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// cacheVolume is the size of the volume for the cache in config/manager, in bytes.
func cacheVolume(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("../../config/manager/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var deployment appsv1.Deployment
		if err := documents.Decode(&deployment); err != nil {
			if errors.Is(err, io.EOF) {
				t.Fatal("there is no volume for the cache")
			}
			t.Fatal(err)
		}
		for _, volume := range deployment.Spec.Template.Spec.Volumes {
			if volume.Name == "cache" {
				return volume.EmptyDir.SizeLimit.Value()
			}
		}
	}
}

// TestCacheFitsIntoItsVolume: to be over its size would evict the pod. An eighth is
// left for what file systems take themselves.
func TestCacheFitsIntoItsVolume(t *testing.T) {
	t.Parallel()
	const all = bundleSpace + pulledSpace + storingSpace + catalogSpace + catalogclient.MaxCopiesBytes
	if volume := cacheVolume(t); all > volume/8*7 {
		t.Errorf("what is kept may take %d MiB of %d", all/mebibyte, volume/mebibyte)
	}
}

// TestSpaceOfOneCatalog: a catalog of the largest size is pulled, stored and served
// while there are others, and keeps none of them from its share.
func TestSpaceOfOneCatalog(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		space  *diskspace.Space
		shares int
		share  int64
		need   int64
	}{
		"pulled":  {newPulledSpace(), pulledShares, newShare, image.MaxCatalogBytes},
		"storing": {newStoringSpace(), storingShares, newShare, catalogserver.MaxBytes},
		"served":  {newCatalogSpace(), catalogShares, catalogShare, catalogserver.MaxBytes},
	} {
		large := test.space.Hold()
		if err := large.Take(test.need); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for range test.shares - 1 {
			if err := test.space.Hold().Take(test.share); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	bundles := newBundleSpace()
	for range bundleimage.MaxPulls + 8 { // workers
		if err := bundles.Hold().Take(image.MaxBundleBytes); err != nil {
			t.Errorf("bundles: %v", err)
		}
	}
}
