package console

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
	"github.com/clusterextensions/operator-controller/internal/overview"
	"github.com/clusterextensions/operator-controller/internal/packagecard"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/preview"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Live has the extensions and catalogs of a cluster as they were last seen.
type Live interface {
	Extensions() Seen[ocv1.ClusterExtension]
	Catalogs() Seen[ocv1.ClusterCatalog]
	// Absence returns why no controller is running; empty if one is, or if that is unknown.
	Absence() string
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
	// Explain says what would be chosen for an extension.
	Explain(ctx context.Context, ext *ocv1.ClusterExtension) (Explanation, error)
	// Plan says what the next operation of an extension on the cluster would do.
	Plan(ctx context.Context, name string) (preview.Preview, error)
	// Situation is what there is of an extension on the cluster.
	Situation(ctx context.Context, ext *ocv1.ClusterExtension) Situation

	Foreseeing
}

// Foreseeing answers questions about an extension that need not be on the cluster.
type Foreseeing interface {
	// Choose says what would be chosen for it from one catalog, of which it reads the package
	// alone.
	Choose(ctx context.Context, catalog *ocv1.ClusterCatalog, ext *ocv1.ClusterExtension) (Explanation, error)
	// Configuration is what the bundle can be configured by that would be chosen from one
	// catalog, with what is wrong with the configuration of the extension. The bundle is pulled.
	Configuration(ctx context.Context, catalog *ocv1.ClusterCatalog, ext *ocv1.ClusterExtension) (Configuration, error)
	// Rights are a ServiceAccount with the least rights that it takes to install it. The bundle
	// is pulled.
	Rights(ctx context.Context, ext *ocv1.ClusterExtension) ([]permission.Document, error)
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

// Configuration is what a bundle can be configured by.
type Configuration struct {
	Bundle string
	// Schema is a JSON schema of draft 7 of an object.
	Schema map[string]any
	// Problems are what is wrong with a configuration, a line each.
	Problems []string
}

// Situation is what there is of an extension on the cluster. Unknown says what could not be
// read, a line each.
type Situation struct {
	Events []Event
	// Objects are those of the tree, by namespace. More is how many there are besides.
	Objects []overview.Object
	More    int
	// Rights are manifests of the rights that its ServiceAccount needs for what is installed.
	Rights  string
	Unknown []string
}

// Event is an Event of the API.
type Event struct {
	Last                  time.Time
	Type, Reason, Message string
	Count                 int32
}

// Offers has what catalogs have.
type Offers interface {
	// Summary has a line for each package of a catalog that is served.
	Summary(ctx context.Context, catalog *ocv1.ClusterCatalog) ([]catalogsummary.Package, error)
	// Newest are the highest versions of the channels of a package, if it was read before;
	// packages that are installed are, after a while.
	Newest(catalog *ocv1.ClusterCatalog, name string) map[string]string
	// Package is all that there is to tell of one package; nil if the catalog has none of the
	// name. Nothing else is read of the catalog.
	Package(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (*Offer, error)
	// Icon is that of a package; nil if there is none that can be shown.
	Icon(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (*packagecard.Icon, error)
}

// Offer is a package of a catalog: for people, and as resolution knows it.
type Offer struct {
	Details  packagecard.Details
	Resolved resolve.Package
}

// condition is the one of a type; without a status if there is none.
func condition(all []metav1.Condition, kind string) metav1.Condition {
	for _, one := range all {
		if one.Type == kind {
			return one
		}
	}
	return metav1.Condition{Type: kind}
}
