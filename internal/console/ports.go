package console

import (
	"context"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/packagecard"
	"github.com/clusterextensions/operator-controller/internal/preview"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Live has the extensions and catalogs of a cluster as they were last seen.
type Live interface {
	Extensions() Seen[ocv1.ClusterExtension]
	Catalogs() Seen[ocv1.ClusterCatalog]
	// News counts the changes, and gives what is closed with the next one.
	News() (count uint64, next <-chan struct{})
}

// Seen is a list, sorted by name. Nobody may change its items.
type Seen[T any] struct {
	Items []*T
	// Err says why it is not as it is now: it may not be read, or not be followed.
	Err error
}

// Asking answers questions about an extension. Errors say what could not be read.
type Asking interface {
	// Explain says what would be chosen for an extension, which need not be on the cluster.
	Explain(ctx context.Context, ext *ocv1.ClusterExtension) (Explanation, error)
	// Plan says what the next operation of an extension on the cluster would do.
	Plan(ctx context.Context, name string) (preview.Preview, error)
	// Rights are manifests of the least rights that it takes to install an extension.
	Rights(ctx context.Context, ext *ocv1.ClusterExtension) (string, error)
	// Situation is what there is of an extension on the cluster.
	Situation(ctx context.Context, ext *ocv1.ClusterExtension) Situation
}

// Explanation is why it is this bundle and no other.
type Explanation struct {
	// Lines are the answer, Choices a row for each bundle.
	Lines   []string
	Choices []Choice
	// Cluster is what requirements are held against; nil if it is not known.
	Cluster *requirement.Cluster
}

// Choice is one bundle, and why it was chosen or left out.
type Choice struct{ Version, Bundle, Catalog, Reason, Detail string }

// Situation is what there is of an extension on the cluster. Unknown says what could not be
// read, a line each.
type Situation struct {
	Events  []Event
	Objects []Object
	Unknown []string
}

// Event is an Event of the API.
type Event struct {
	Last                  time.Time
	Type, Reason, Message string
	Count                 int32
}

// Object is one of the objects of an extension.
type Object struct {
	Kind, Namespace, Name string
	// Health is one word, such as Available; Detail says why. Bad says that it is not as
	// it should be.
	Health, Detail string
	Bad            bool
}

// Offers has what catalogs have.
type Offers interface {
	// Shelf has the cards of a catalog that is served. It reads a catalog once for each
	// content that it has.
	Shelf(ctx context.Context, catalog *ocv1.ClusterCatalog) ([]packagecard.Card, error)
	// Known is a shelf that was read before; nil if it was not.
	Known(catalog *ocv1.ClusterCatalog) []packagecard.Card
	// Package is what resolution knows of a package.
	Package(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (*resolve.Package, error)
	// Details are all objects of a package, as the catalog has them.
	Details(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (io.ReadCloser, error)
}

// conditions are what both kinds have.
func condition(all []metav1.Condition, kind string) metav1.Condition {
	for _, one := range all {
		if one.Type == kind {
			return one
		}
	}
	return metav1.Condition{Type: kind}
}
