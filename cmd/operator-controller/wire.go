package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/clusterextensions/operator-controller/internal/applier"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundleimage"
	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/diskspace"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/preparedpackage"
	"github.com/clusterextensions/operator-controller/internal/turn"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// wire builds every leaf and hands it to those who use it. It is the only place
// where they meet.
func wire(mgr ctrl.Manager, o *options) error {
	sources := controller.NewSources()
	platform, err := newPlatform(mgr, sources)
	if err != nil {
		return err
	}
	mapper := platform.Mapper()
	applier, err := applier.New(applier.Config{
		REST: mgr.GetConfig(), Mapper: mapper, SystemNamespace: o.systemNamespace,
		Changed: sources.Wakeups.Wake, Now: time.Now,
	})
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	authFile, err := addPullSecrets(mgr, api, o)
	if err != nil {
		return err
	}
	bundles, err := newBundles(mgr, o, authFile, sources.Wakeups.Wake)
	if err != nil {
		return err
	}
	events, err := addEvents(mgr, api)
	if err != nil {
		return err
	}
	catalogs, err := addCatalogs(mgr, api, o, authFile, events)
	if err != nil {
		return err
	}
	metrics, err := controller.NewMetrics(runtimemetrics.Registry)
	if err != nil {
		return err
	}
	neighbours := controller.NewNeighbours(mgr.GetClient(), catalogs)
	err = controller.SetupCatalogs(mgr, &controller.CatalogReconciler{
		Client: mgr.GetClient(), Catalogs: catalogs, Neighbours: neighbours, Wakeups: sources.Wakeups,
	})
	if err != nil {
		return err
	}
	content := releases{applier, bundles.Kept}
	return controller.Setup(mgr, &controller.Reconciler{
		Client:       mgr.GetClient(),
		Releases:     content,
		Deletions:    content,
		Bundles:      bundles,
		Catalogs:     catalogs,
		Neighbours:   neighbours,
		Platform:     platform,
		Events:       events,
		Metrics:      metrics,
		Turns:        turn.New(largePasses(o.workers), sources.Wakeups.Wake),
		Certificates: func() (bundle.CertificateProvider, error) { return webhookcert.ProviderOn(mapper) },
		Forget:       content.forget,
		MinReady:     time.Duration(o.minReadySeconds) * time.Second, Now: time.Now,
	}, sources, o.workers)
}

// largePasses is how many extensions with much content are worked on at a time: the
// others go on beside them.
func largePasses(workers int) int { return max(1, workers/4) }

// newBundles makes what pulls bundles; wake tells an extension that its own has come.
func newBundles(mgr ctrl.Manager, o *options, authFile string, wake func(string)) (*bundleimage.Images, error) {
	puller, err := newPuller(o, "bundles", authFile, newBundleSpace())
	if err != nil {
		return nil, err
	}
	accounts, err := newAccounts(mgr.GetConfig(), mgr.GetClient(), authFile)
	if err != nil {
		return nil, err
	}
	images := bundleimage.New(bundleimage.Config{
		Puller: puller, Accounts: accounts, Extensions: bundleimage.StayingExtensions(mgr.GetClient()), Wake: wake, Now: time.Now,
	})
	if err := mgr.Add(images.Fetches); err != nil {
		return nil, fmt.Errorf("setting up the pulls of bundles: %w", err)
	}
	return images, nil
}

// addCatalogs makes the process read catalogs and, unless something else does,
// serve them.
func addCatalogs(
	mgr ctrl.Manager, api kubernetes.Interface, o *options, authFile string, events catalogserver.Events,
) (*preparedpackage.Cache, error) {
	if !o.serveCatalogs {
		through, err := catalogclient.NewHTTPClient(o.catalogCAs)
		if err != nil {
			return nil, err
		}
		return addCatalogClient(mgr, o, through)
	}
	certificate, err := addCatalogTLS(mgr, api, o)
	if err != nil {
		return nil, err
	}
	server, err := addCatalogServer(mgr, o, authFile, certificate, events)
	if err != nil {
		return nil, err
	}
	through, err := ownCatalogs(o, certificate, server)
	if err != nil {
		return nil, err
	}
	return addCatalogClient(mgr, o, through)
}

// ownCatalogs returns a client that reads from the server of this process what that
// has, and the rest from the other replicas.
func ownCatalogs(o *options, certificate catalogTLS, server *catalogserver.Server) (*http.Client, error) {
	external, err := url.Parse(o.catalogExternalURL)
	if err != nil {
		return nil, fmt.Errorf("parsing the external URL: %w", err)
	}
	var trusted []func() []byte
	if certificate.authorities != nil {
		trusted = append(trusted, certificate.authorities)
	}
	through, err := catalogclient.NewHTTPClient(o.catalogCAs, trusted...)
	if err != nil {
		return nil, err
	}
	through.Transport = server.Transport(external, through.Transport)
	return through, nil
}

func newPuller(o *options, dir, authFile string, space *diskspace.Space) (*image.Puller, error) {
	puller, err := image.New(image.Config{
		Dir:           filepath.Join(o.cachePath, dir),
		CertsDir:      o.pullCAs,
		AuthFile:      authFile,
		PolicyFile:    o.signaturePolicy,
		RequirePolicy: o.requirePolicy,
		Space:         space,
	})
	if err != nil {
		return nil, err
	}
	if puller.AcceptsAnything() {
		ctrl.Log.Info("there is no signature policy: images are accepted from anyone", "images", dir)
	}
	return puller, nil
}

// addCatalogClient makes the process read catalogs through an HTTP client.
func addCatalogClient(mgr ctrl.Manager, o *options, through *http.Client) (*preparedpackage.Cache, error) {
	client, err := catalogclient.New(catalogclient.Config{
		HTTPClient: through,
		Dir:        filepath.Join(o.cachePath, "catalog-indexes"),
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the catalog client: %w", err)
	}
	catalogs := preparedpackage.New(client)
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return catalogs.ForgetGone(ctx, mgr.GetClient())
	})); err != nil {
		return nil, fmt.Errorf("setting up the catalog client: %w", err)
	}
	return catalogs, nil
}
