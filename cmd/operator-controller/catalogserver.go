package main

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

// addCatalogServer makes the process pull, check and serve ClusterCatalogs, and returns
// what serves them.
func addCatalogServer(
	mgr ctrl.Manager, o *options, authFile string, certificate catalogTLS, events catalogserver.Events,
) (*catalogserver.Server, error) {
	puller, err := newPuller(o, "catalog-images", authFile, newPulledSpace())
	if err != nil {
		return nil, err
	}
	store, err := catalogserver.OpenStore(catalogserver.StoreConfig{
		Dir:   filepath.Join(o.cachePath, "catalogs"),
		Space: newCatalogSpace(),
		Work:  newStoringSpace(),
	})
	if err != nil {
		return nil, fmt.Errorf("opening the catalog store: %w", err)
	}
	reconciler, err := catalogserver.NewReconciler(catalogserver.ReconcilerConfig{
		Client:      mgr.GetClient(),
		Store:       store,
		Puller:      catalogserver.ImagePuller(puller),
		ExternalURL: o.catalogExternalURL,
		Events:      events,
		Now:         time.Now,
		Random:      rand.Float64,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the catalog server: %w", err)
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return nil, fmt.Errorf("setting up the catalog server: %w", err)
	}
	server, err := catalogserver.NewServer(catalogServerConfig(o, certificate.certificate, catalogserver.Handler(store)))
	if err != nil {
		return nil, fmt.Errorf("setting up the catalog server: %w", err)
	}
	if err := mgr.Add(server); err != nil {
		return nil, fmt.Errorf("setting up the catalog server: %w", err)
	}
	if err := addReadiness(mgr, "catalog-server", server.Check); err != nil {
		return nil, err
	}
	return server, addReadiness(mgr, "catalog-certificate", certificate.check)
}

// catalogServerConfig is how catalogs are served; without a certificate over plain HTTP.
func catalogServerConfig(
	o *options, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), handler http.Handler,
) catalogserver.ServerConfig {
	return catalogserver.ServerConfig{
		Address: o.catalogAddress, Handler: handler, GetCertificate: certificate, TLS: o.tls.Apply,
	}
}
