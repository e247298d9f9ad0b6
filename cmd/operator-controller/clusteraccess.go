package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/platform"
)

// clusterAccess is how a command reaches a cluster, with the rights of the
// person who calls it.
type clusterAccess struct {
	kubeconfig, context, systemNamespace string
}

func (a *clusterAccess) bind(flags *pflag.FlagSet) {
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file; by default as kubectl finds it.")
	flags.StringVar(&a.context, "context", "", "Name of the kubeconfig context; by default the current one.")
	flags.StringVar(&a.systemNamespace, "system-namespace", defaultSystemNamespace, "Namespace of the controller.")
}

func (a *clusterAccess) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: a.context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	return config, nil
}

// clusterReader is a reconciler that can explain and plan, and nothing else.
type clusterReader struct {
	*controller.Reconciler

	config  *rest.Config
	through *http.Client

	// unknown is what could not be read of what is optional, a line each.
	unknown []string
}

// reader reads with the rights of whoever calls. The error says that there is no way
// to the cluster.
func (a *clusterAccess) reader(ctx context.Context) (*clusterReader, error) {
	config, err := a.config()
	if err != nil {
		return nil, err
	}
	through, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{HTTPClient: through, Scheme: scheme, Mapper: ownKinds()})
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	metrics, err := controller.NewMetrics(prometheus.NewRegistry()) // that nobody sees
	if err != nil {
		return nil, err
	}
	authorities, err := a.authorities(ctx, api)
	if err != nil {
		return nil, err
	}
	catalogs, err := catalogsThrough(config, through, authorities)
	if err != nil {
		return nil, err
	}
	offers, err := platform.New(platform.Config{REST: config, HTTPClient: through, Changed: func() {}, Regranted: func() {}})
	if err != nil {
		return nil, err
	}
	reader := &clusterReader{config: config, through: through, Reconciler: &controller.Reconciler{
		Client: api, Catalogs: catalogs, Platform: offers, Metrics: metrics, Now: time.Now,
	}}
	for _, err := range offers.Read(ctx) {
		reader.unknown = append(reader.unknown, err.Error())
	}
	return reader, ctx.Err()
}

// ownKinds are those that a command reads, so that nobody needs to be asked for them.
func ownKinds() meta.RESTMapper {
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(ocv1.GroupVersion.WithKind("ClusterExtension"), meta.RESTScopeRoot)
	kinds.Add(ocv1.GroupVersion.WithKind("ClusterCatalog"), meta.RESTScopeRoot)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	return kinds
}

// catalogsThrough reads catalogs as the controller does, but through the API server
// where a Service has them.
func catalogsThrough(config *rest.Config, through *http.Client, authorities []byte) (*catalogs, error) {
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	direct, err := catalogclient.NewHTTPClient("", func() []byte { return authorities })
	if err != nil {
		return nil, err
	}
	direct.Transport = &serviceTransport{api: host, through: through.Transport, direct: direct.Transport}
	reader, err := catalogclient.New(catalogclient.Config{HTTPClient: direct})
	if err != nil {
		return nil, fmt.Errorf("setting up the catalog client: %w", err)
	}
	return newCatalogs(reader), nil
}

// authorities are those of the controller's own certificate for catalogs, which
// only those need who reach the server directly: if the API server does not give
// them, there are none. The error says that it cannot be reached.
func (a *clusterAccess) authorities(ctx context.Context, api client.Client) ([]byte, error) {
	secret := &corev1.Secret{}
	err := api.Get(ctx, types.NamespacedName{Namespace: a.systemNamespace, Name: certificateSecret}, secret)
	if _, answered := errors.AsType[*apierrors.StatusError](err); err != nil && !answered {
		return nil, fmt.Errorf("reading the authorities of the catalog server: %w", err)
	}
	return secret.Data[corev1.ServiceAccountRootCAKey], nil
}
