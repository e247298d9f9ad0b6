package environment

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing/fstest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const (
	// catalogLabel names the folder of a catalog image that holds the catalog.
	catalogLabel  = "operators.operatorframework.io.index.configs.v1"
	catalogFolder = "configs"
)

// PushCatalog stores a catalog image that holds the given files, under
// repository:tag.
func (e *Environment) PushCatalog(ctx context.Context, target string, files fs.FS) error {
	image := fstest.MapFS{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		image[path.Join(catalogFolder, name)] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the catalog for %s: %w", target, err)
	}
	return e.push(ctx, target, image, map[string]string{catalogLabel: "/" + catalogFolder})
}

// PushBundle stores a bundle image under repository:tag.
func (e *Environment) PushBundle(ctx context.Context, target string, files fs.FS) error {
	return e.push(ctx, target, files, nil)
}

// push stores an image of one layer. With the race detector, to make that as small
// as possible would take longer than all else that a test does for an image.
func (e *Environment) push(ctx context.Context, target string, files fs.FS, labels map[string]string) error {
	archive, err := testkit.TarFS(files)
	if err != nil {
		return fmt.Errorf("pushing %s: %w", target, err)
	}
	var layer bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&layer, gzip.BestSpeed)
	if err != nil {
		return fmt.Errorf("pushing %s: %w", target, err)
	}
	_, err = compressed.Write(archive)
	if err := errors.Join(err, compressed.Close()); err != nil {
		return fmt.Errorf("pushing %s: %w", target, err)
	}
	_, err = e.Registry.PushLayers(ctx, target, labels, testkit.Layer{Blob: layer.Bytes()})
	return err
}

// pollMinutes is the interval of the catalogs of tests. It is longer than any test, so that only a
// test that changes it is polled. Without an interval, Ready of every extension would advise to set
// one.
const pollMinutes = 24 * 60

// CreateCatalog makes a ClusterCatalog of an image, after any changes that the
// caller wants.
func (e *Environment) CreateCatalog(ctx context.Context, name, image string, changes ...func(*ocv1.ClusterCatalog)) error {
	catalog := &ocv1.ClusterCatalog{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: ocv1.ClusterCatalogSpec{Source: ocv1.CatalogSource{
			Type: ocv1.SourceTypeImage, Image: &ocv1.ImageSource{Ref: image},
		}},
	}
	if !strings.Contains(image, "@") {
		catalog.Spec.Source.Image.PollIntervalMinutes = new(pollMinutes)
	}
	for _, change := range changes {
		change(catalog)
	}
	if err := e.Admin.Create(ctx, catalog); err != nil {
		return fmt.Errorf("creating ClusterCatalog %q: %w", name, err)
	}
	return nil
}

// Extension is a ClusterExtension of a package, in a namespace of the same name
// as the extension, after any changes that the caller wants.
func Extension(name, pkg, account string, changes ...func(*ocv1.ClusterExtension)) *ocv1.ClusterExtension {
	extension := &ocv1.ClusterExtension{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: ocv1.ClusterExtensionSpec{
			Namespace:      name,
			ServiceAccount: ocv1.ServiceAccountReference{Name: account},
			Source: ocv1.SourceConfig{
				SourceType: ocv1.SourceTypeCatalog,
				Catalog:    &ocv1.CatalogFilter{PackageName: pkg},
			},
		},
	}
	for _, change := range changes {
		change(extension)
	}
	return extension
}

// Update changes a ClusterExtension as often as it takes to get past the
// changes of others.
func (e *Environment) Update(ctx context.Context, name string, change func(*ocv1.ClusterExtension)) error {
	for {
		extension := &ocv1.ClusterExtension{}
		if err := e.Admin.Get(ctx, client.ObjectKey{Name: name}, extension); err != nil {
			return fmt.Errorf("reading ClusterExtension %q: %w", name, err)
		}
		change(extension)
		err := e.Admin.Update(ctx, extension)
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}
