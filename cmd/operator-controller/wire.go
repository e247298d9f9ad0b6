package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/clusterextensions/operator-controller/internal/applier"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// wakeupBuffer takes the wake-ups of a moment in which the queue is busy.
const wakeupBuffer = 1024

// wire builds every leaf and hands it to those who use it. It is the only place
// where they meet.
func wire(mgr ctrl.Manager, o *options) error {
	wakeups := make(controller.Wakeups, wakeupBuffer)

	applier, err := applier.New(applier.Config{
		REST:            mgr.GetConfig(),
		Mapper:          mgr.GetRESTMapper(),
		SystemNamespace: o.systemNamespace,
		Changed:         wakeups.Wake,
		Now:             time.Now,
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
	puller, err := newPuller(o, "bundles", authFile)
	if err != nil {
		return err
	}
	bundles := newBundles(puller)
	catalogs, err := addCatalogs(mgr, api, o, authFile)
	if err != nil {
		return err
	}

	if err := controller.SetupCatalogs(mgr, &controller.CatalogReconciler{
		Client: mgr.GetClient(), Catalogs: catalogs, Wakeups: wakeups,
	}); err != nil {
		return err
	}
	return controller.Setup(mgr, &controller.Reconciler{
		Client:       mgr.GetClient(),
		Releases:     releases{applier: applier},
		Bundles:      bundles,
		Catalogs:     catalogs,
		Certificates: func() bundle.CertificateProvider { return certificates(mgr.GetRESTMapper()) },
		Forget: func(ctx context.Context, extension string) {
			applier.Forget(extension)
			bundles.forget(ctx, extension)
		},
		Now: time.Now,
	}, wakeups, o.workers)
}

// addCatalogs makes the process read catalogs and, unless something else does,
// serve them.
func addCatalogs(mgr ctrl.Manager, api kubernetes.Interface, o *options, authFile string) (*catalogs, error) {
	if !o.serveCatalogs {
		return addCatalogClient(mgr, o)
	}
	certificate, err := addCatalogTLS(mgr, api, o)
	if err != nil {
		return nil, err
	}
	if err := addCatalogServer(mgr, o, authFile, certificate); err != nil {
		return nil, err
	}
	if certificate.authorities == nil {
		return addCatalogClient(mgr, o)
	}
	return addCatalogClient(mgr, o, certificate.authorities)
}

func newPuller(o *options, dir, authFile string) (*image.Puller, error) {
	puller, err := image.New(image.Config{
		Dir:           filepath.Join(o.cachePath, dir),
		CertsDir:      o.pullCAs,
		AuthFile:      authFile,
		PolicyFile:    o.signaturePolicy,
		RequirePolicy: o.requirePolicy,
	})
	if err != nil {
		return nil, err
	}
	if puller.AcceptsAnything() {
		ctrl.Log.Info("there is no signature policy: images are accepted from anyone", "images", dir)
	}
	return puller, nil
}

// addCatalogClient makes the process read catalogs. Each of trusted returns
// authorities to trust beside the configured ones.
func addCatalogClient(mgr ctrl.Manager, o *options, trusted ...func() []byte) (*catalogs, error) {
	http, err := catalogclient.NewHTTPClient(o.catalogCAs, trusted...)
	if err != nil {
		return nil, err
	}
	client, err := catalogclient.New(catalogclient.Config{
		HTTPClient: http,
		Dir:        filepath.Join(o.cachePath, "catalog-indexes"),
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the catalog client: %w", err)
	}
	catalogs := newCatalogs(client)
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return catalogs.forgetGone(ctx, mgr.GetClient())
	})); err != nil {
		return nil, fmt.Errorf("setting up the catalog client: %w", err)
	}
	return catalogs, nil
}

// certificates picks who issues certificates for webhooks by what the cluster
// serves.
func certificates(mapper meta.RESTMapper) bundle.CertificateProvider {
	certificate := schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}
	if _, err := mapper.RESTMapping(certificate, "v1"); err == nil {
		return bundle.CertManager
	}
	serviceCA := schema.GroupKind{Group: "operator.openshift.io", Kind: "ServiceCA"}
	if _, err := mapper.RESTMapping(serviceCA, "v1"); err == nil {
		return bundle.ServiceCA
	}
	return bundle.NoCertificates
}
