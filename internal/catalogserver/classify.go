package catalogserver

import (
	"errors"
	"fmt"
	"time"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
)

// specError says that a spec that got past admission means nothing.
type specError struct{ detail string }

func (e *specError) Error() string { return e.detail }

// wantedOf translates the source of a catalog. The error is a *specError.
func wantedOf(catalog *ocv1.ClusterCatalog) (wanted, error) {
	source := catalog.Spec.Source
	if source.Type != ocv1.SourceTypeImage {
		return wanted{}, &specError{fmt.Sprintf("unknown source type %q", source.Type)}
	}
	if source.Image == nil {
		return wanted{}, &specError{fmt.Sprintf("error parsing ClusterCatalog %q, image source is nil", catalog.Name)}
	}
	want := wanted{ref: source.Image.Ref, catalog: pullsOf(catalog)}
	if minutes := source.Image.PollIntervalMinutes; minutes != nil && !want.pinned() {
		want.interval = time.Duration(*minutes) * time.Minute
	}
	return want, nil
}

// pullsOf is what counts of a catalog for its pull secrets.
func pullsOf(catalog *ocv1.ClusterCatalog) pullsecret.Catalog {
	found := pullsecret.Catalog{Name: catalog.Name, Created: catalog.CreationTimestamp.Time}
	if source := catalog.Spec.Source.Image; source != nil {
		for _, secret := range source.PullSecrets {
			found.Secrets = append(found.Secrets, secret.Name)
		}
	}
	return found
}

// blocked reports whether err lasts until the spec changes. An image by tag may
// be replaced by a better one at any time, an image by digest never.
func blocked(err error, want wanted) bool {
	var spec *specError
	var ref *image.ReferenceError
	switch {
	case errors.As(err, &spec), errors.As(err, &ref):
		return true
	}
	return want.pinned() && errors.Is(err, image.ErrContent)
}
