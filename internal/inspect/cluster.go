// Package inspect looks at a cluster with the rights of whoever asks: an extension -> what
// the controller would choose for it, what it would do, and the rights that it takes to
// install that.
//
// It writes nothing but the spec of an extension, in [Cluster.Write], a manifest by which one
// is installed, in [Cluster.Apply], and the objects of the tests of a chart, in [ChartTests.Run].
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

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
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
	CatalogReader

	cfg        Config
	through    *http.Client
	reconciler *controller.Reconciler // only explains and plans

	// unknown is what could not be read of what is optional, a line each.
	unknown []string
}

// New reads what a cluster offers. The error says that there is no way to it.
func New(ctx context.Context, cfg Config) (*Cluster, error) {
	through, err := rest.HTTPClientFor(cfg.REST)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	catalogs, err := newCatalogReader(ctx, cfg, through)
	if err != nil {
		return nil, err
	}
	metrics, err := controller.NewMetrics(prometheus.NewRegistry()) // that nobody sees
	if err != nil {
		return nil, err
	}
	content, err := catalogclient.New(catalogclient.Config{HTTPClient: catalogs.http})
	if err != nil {
		return nil, fmt.Errorf("setting up the catalog client: %w", err)
	}
	cluster := &Cluster{CatalogReader: *catalogs, cfg: cfg, through: through, reconciler: &controller.Reconciler{
		Client: catalogs.api, Catalogs: preparedpackage.New(content), Metrics: metrics, Now: cfg.Now,
	}}
	return cluster.Again(ctx)
}

// Again is the same cluster as it is now, for a process that stays. It has the content of
// catalogs that was read before, and may be asked besides the one that it is made from. The
// error is that of ctx, or says that there is no way to the cluster.
func (c *Cluster) Again(ctx context.Context) (*Cluster, error) {
	offers, err := platform.New(platform.Config{REST: c.cfg.REST, HTTPClient: c.through, Changed: func() {}, Regranted: func() {}})
	if err != nil {
		return nil, err
	}
	before := c.reconciler
	now := &Cluster{CatalogReader: c.CatalogReader, cfg: c.cfg, through: c.through, reconciler: &controller.Reconciler{
		Client: before.Client, Catalogs: before.Catalogs, Metrics: before.Metrics, Now: before.Now,
		Platform: offers, ServedAPIs: offers.ServedAPIs, Neighbours: controller.NewNeighbours(before.Client, before.Catalogs),
	}}
	for _, err := range offers.Read(ctx) {
		now.unknown = append(now.unknown, err.Error())
	}
	return now, ctx.Err()
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
	kinds.Add(policyv1alpha1.GroupVersion.WithKind("ImagePolicy"), meta.RESTScopeRoot)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	return kinds
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
	follow := direct.CheckRedirect
	direct.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		// Whoever has a catalog would choose what is asked for with the credentials of the person.
		if _, isService := proxyPath(request.URL); isService {
			return fmt.Errorf("the server of the catalog redirects to a Service, %s", request.URL.Redacted())
		}
		return follow(request, via)
	}
	proxy := through.Transport
	if proxy == nil { // as for a cluster that is reached by plain HTTP, through kubectl proxy
		proxy = http.DefaultTransport
	}
	direct.Transport = &serviceTransport{api: host, through: proxy, direct: direct.Transport}
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
