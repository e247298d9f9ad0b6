package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"slices"

	"go.podman.io/image/v5/docker/reference"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagecopy"
	"github.com/clusterextensions/operator-controller/internal/mirror"
)

// catalogFor is what needs the catalog.
const catalogFor = "catalog"

// found is what is to be copied.
type found struct {
	// catalog is its reference, repository that without tag and digest, and pinned by digest.
	catalog, repository, pinned string
	images                      []mirror.Image
	// others is how many packages the catalog has besides.
	others int
}

// read finds the images of packages, or of all packages if none is named.
func (o *command) read(ctx context.Context, packages []string, wish mirror.Wish) (*found, error) {
	named, err := reference.ParseNamed(o.catalog)
	if err != nil {
		return nil, err
	}
	canonical, err := image.Canonical(o.catalog)
	if err != nil {
		return nil, err
	}
	pulled, err := image.Once(ctx, o.images.Config(), image.Request{Ref: canonical, Select: image.CatalogContent})
	if err != nil {
		return nil, err
	}
	defer pulled.Close()
	client, err := catalogclient.New(catalogclient.Config{HTTPClient: http.DefaultClient})
	if err != nil {
		return nil, err
	}
	content, err := load(ctx, client, pulled.Files)
	if err != nil {
		return nil, fmt.Errorf("reading catalog %s: %w", canonical, err)
	}
	result := &found{repository: named.Name(), catalog: canonical, pinned: named.Name() + "@" + pulled.Digest}
	if len(packages) == 0 {
		packages = slices.Sorted(maps.Keys(content.packages))
	}
	result.others = len(content.packages) - len(packages)
	bundles := map[string][]string{}
	var problems []error
	for _, name := range packages {
		pkg, err := client.Package(catalogFor, name)
		if err == nil && pkg == nil {
			err = fmt.Errorf("the catalog has no package %q", name)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		wanted, err := wish.Bundles(*pkg)
		if err != nil {
			problems = append(problems, err)
		}
		for _, one := range wanted {
			bundles[one.Bundle] = append([]string{one.Image}, content.related[name][one.Bundle]...)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	result.images = mirror.Images(bundles)
	return result, nil
}

// content is what is needed of a catalog besides what a client holds.
type content struct {
	packages map[string]bool
	related  mirror.Related
}

// load has a client hold the packages of a catalog. Its files are read once: they can be
// large.
func load(ctx context.Context, client *catalogclient.Client, files fs.FS) (*content, error) {
	read := &content{packages: map[string]bool{}, related: mirror.Related{}}
	from, to := io.Pipe()
	go func() { to.CloseWithError(read.objects(ctx, files, to)) }()
	err := client.LoadContent(catalogFor, from)
	_ = from.Close() // ends the goroutine, if it goes on
	return read, err
}

// objects takes what is needed of the objects of a folder, and hands them on.
func (c *content) objects(ctx context.Context, files fs.FS, to io.Writer) error {
	for object, err := range (fbc.Folder{Root: files}).Objects(ctx) {
		if err != nil {
			return err
		}
		if object.Schema == fbc.SchemaPackage {
			c.packages[object.Owner()] = true
		}
		if err := c.related.Add(object.Object); err != nil {
			return err
		}
		if _, err := to.Write(append(object.JSON, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// refs are the references of all images that can be read as such, the catalog included.
func (f *found) refs() []string {
	refs := []string{f.catalog}
	for _, one := range f.images {
		if one.Err == nil {
			refs = append(refs, one.Ref)
		}
	}
	return refs
}

// jobs are those for all images, the last for the catalog.
func (f *found) jobs(place mirror.Place, config image.Config) []imagecopy.Job {
	jobs := make([]imagecopy.Job, 0, len(f.images)+1)
	for _, one := range f.images {
		job := imagecopy.Job{Name: one.Ref, Err: one.Err}
		if one.Err == nil {
			job = jobOf(one.Ref, one.Ref, place, config)
		}
		jobs = append(jobs, job)
	}
	return append(jobs, jobOf(f.catalog, f.pinned, place, config))
}

// jobOf is that for an image, which is read by digest where that is known.
func jobOf(ref, pinned string, place mirror.Place, config image.Config) imagecopy.Job {
	job := imagecopy.Job{Name: ref}
	if job.Repository, job.Tag, job.Err = place.Repository(ref); job.Err != nil {
		return job
	}
	endpoints, err := image.Endpoints(config.RegistriesConf, pinned)
	job.Err = err
	for _, one := range endpoints {
		job.Sources = append(job.Sources, imagecopy.Source{Ref: one.Ref, Insecure: one.Insecure})
	}
	return job
}

// forWhom says what needs each image.
func (f *found) forWhom() map[string]string {
	const most = 60
	users := map[string]string{f.catalog: catalogFor}
	for _, one := range f.images {
		users[one.Ref] = excerpt.Of(one.For, most)
	}
	return users
}
