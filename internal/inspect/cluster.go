// Package inspect looks at a cluster with the rights of whoever asks: an extension -> what
// the controller would choose for it, what it would do, and the rights that it takes to
// install that.
//
// It writes nothing but the spec of an extension, in [Cluster.Write], and a manifest by which one
// is installed, in [Cluster.Apply].
//
// What is optional and may not be read fails nothing, and is said to be not known.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/platform"
	"github.com/clusterextensions/operator-controller/internal/preparedpackage"
	"github.com/clusterextensions/operator-controller/internal/servingcert"
)

// Config is how a cluster is reached. Every field is required.
type Config struct {
	REST *rest.Config
	// SystemNamespace is that of the controller.
	SystemNamespace string
	Now             func() time.Time
}

// Cluster is a cluster as it can be seen with the rights of whoever asks.
type Cluster struct {
	cfg        Config
	through    *http.Client
	reconciler *controller.Reconciler // only explains and plans
	content    content                // of catalogs

	// unknown is what could not be read of what is optional, a line each.
	unknown []string
}

// New reads what a cluster offers. The error says that there is no way to it.
func New(ctx context.Context, cfg Config) (*Cluster, error) {
	through, err := rest.HTTPClientFor(cfg.REST)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	api, err := client.New(cfg.REST, client.Options{HTTPClient: through, Scheme: scheme, Mapper: ownKinds()})
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	metrics, err := controller.NewMetrics(prometheus.NewRegistry()) // that nobody sees
	if err != nil {
		return nil, err
	}
	authorities, err := authorities(ctx, api, cfg.SystemNamespace)
	if err != nil {
		return nil, err
	}
	catalogs, err := catalogsThrough(cfg.REST, through, authorities)
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{cfg: cfg, through: through, content: content{http: catalogs.http}, reconciler: &controller.Reconciler{
		Client: api, Catalogs: catalogs.prepared, Metrics: metrics, Now: cfg.Now,
	}}
	err = cluster.Reread(ctx)
	return cluster, err
}

// Reread reads once more what a cluster offers, for a process that stays. Content of catalogs
// is kept as long as it is of the same digest. The error is that of ctx, or says that there
// is no way to the cluster.
func (c *Cluster) Reread(ctx context.Context) error {
	offers, err := platform.New(platform.Config{REST: c.cfg.REST, HTTPClient: c.through, Changed: func() {}, Regranted: func() {}})
	if err != nil {
		return err
	}
	c.unknown = nil
	for _, err := range offers.Read(ctx) {
		c.unknown = append(c.unknown, err.Error())
	}
	c.reconciler.Platform = offers
	c.reconciler.Neighbours = controller.NewNeighbours(c.reconciler.Client, c.reconciler.Catalogs)
	return ctx.Err()
}

// Explain makes the choice for the named extension once more. The error says what of the
// cluster cannot be read that nothing can be said without.
func (c *Cluster) Explain(ctx context.Context, name string) (controller.Explanation, error) {
	found, err := c.reconciler.Explain(ctx, name)
	found.Unknown = append(found.Unknown, c.unknown...)
	return found, err
}

// ExplainExtension is [Cluster.Explain] for an extension that need not be on the cluster.
func (c *Cluster) ExplainExtension(ctx context.Context, ext *ocv1.ClusterExtension) (controller.Explanation, error) {
	found, err := c.reconciler.ExplainExtension(ctx, ext)
	found.Unknown = append(found.Unknown, c.unknown...)
	return found, err
}

// ownKinds are those that are read, so that nobody needs to be asked for them.
func ownKinds() meta.RESTMapper {
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(ocv1.GroupVersion.WithKind("ClusterExtension"), meta.RESTScopeRoot)
	kinds.Add(ocv1.GroupVersion.WithKind("ClusterCatalog"), meta.RESTScopeRoot)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	return kinds
}

// catalogs are those of a cluster, as they are read from outside of it.
type catalogs struct {
	http     *http.Client
	prepared *preparedpackage.Cache
}

// catalogsThrough reads catalogs as the controller does, but through the API server
// where a Service has them.
func catalogsThrough(config *rest.Config, through *http.Client, authorities []byte) (catalogs, error) {
	direct, err := clientThrough(config, through, authorities)
	if err != nil {
		return catalogs{}, err
	}
	reader, err := catalogclient.New(catalogclient.Config{HTTPClient: direct})
	if err != nil {
		return catalogs{}, fmt.Errorf("setting up the catalog client: %w", err)
	}
	return catalogs{http: direct, prepared: preparedpackage.New(reader)}, nil
}

// clientThrough reaches servers of catalogs: through the API server where a Service has
// them.
func clientThrough(config *rest.Config, through *http.Client, authorities []byte) (*http.Client, error) {
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	direct, err := catalogclient.NewHTTPClient("", func() []byte { return authorities })
	if err != nil {
		return nil, err
	}
	direct.Transport = &serviceTransport{api: host, through: through.Transport, direct: direct.Transport}
	return direct, nil
}

// authorities are those of the controller's own certificate for catalogs, which
// only those need who reach the server directly: if the API server does not give
// them, there are none. The error says that it cannot be reached.
func authorities(ctx context.Context, api client.Client, systemNamespace string) ([]byte, error) {
	secret := &corev1.Secret{}
	err := api.Get(ctx, types.NamespacedName{Namespace: systemNamespace, Name: servingcert.Catalogs.Secret}, secret)
	if _, answered := errors.AsType[*apierrors.StatusError](err); err != nil && !answered {
		return nil, fmt.Errorf("reaching the cluster: %w", err)
	}
	return secret.Data[corev1.ServiceAccountRootCAKey], nil
}
