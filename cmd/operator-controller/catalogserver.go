package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogpeer"
	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
	"github.com/clusterextensions/operator-controller/internal/verdict"
)

// ownCatalogs are the catalogs that this process serves, in all of its sessions.
type ownCatalogs struct {
	external *url.URL
	tls      serverTLS
	store    *catalogserver.Store
	server   *catalogserver.Server

	// reader reads from the server of this process what that has, and the rest as peers
	// does, from the other replicas.
	reader, peers *http.Client
}

func newOwnCatalogs(o *options, registry prometheus.Registerer) (*ownCatalogs, error) {
	external, err := url.Parse(o.catalogExternalURL)
	if err != nil {
		return nil, fmt.Errorf("parsing the external URL: %w", err)
	}
	c := &ownCatalogs{external: external}
	if c.tls, err = newCatalogTLS(external, o); err != nil {
		return nil, err
	}
	c.store, err = catalogserver.OpenStore(catalogserver.StoreConfig{
		Dir:   filepath.Join(o.cachePath, "catalogs"),
		Space: newCatalogSpace(),
		Work:  newStoringSpace(),
	})
	if err != nil {
		return nil, fmt.Errorf("opening the catalog store: %w", err)
	}
	config := catalogServerConfig(o, c.tls.certificate, catalogserver.Handler(c.store))
	if config.Metrics, err = catalogserver.NewMetrics(registry, c.store); err != nil {
		return nil, err
	}
	c.server, err = catalogserver.NewServer(config)
	if err != nil {
		return nil, fmt.Errorf("setting up the catalog server: %w", err)
	}
	if err := c.connect(o); err != nil {
		return nil, err
	}
	return c, nil
}

// connect makes the clients.
func (c *ownCatalogs) connect(o *options) error {
	var trusted []func() []byte
	if c.tls.own != nil {
		trusted = append(trusted, c.tls.own.Authorities)
	}
	peers, err := catalogclient.NewHTTPClient(o.catalogCAs, trusted...)
	if err != nil {
		return err
	}
	reader := *peers
	reader.Transport = c.server.Transport(c.external, peers.Transport)
	c.peers, c.reader = peers, &reader
	return nil
}

// follow has a session pull and check what is served. Stored is told of content that is
// new here.
func (p *process) follow(
	s *session, api kubernetes.Interface, pulls *imageSources, told catalogserver.Events, stored func(catalog string),
) error {
	c := p.catalogs
	if err := c.tls.keep(s.manager, api, p.options); err != nil {
		return err
	}
	space := newPulledSpace()
	puller, err := p.newPuller("catalog-images", pulls, space)
	if err != nil {
		return err
	}
	peers, err := catalogpeer.New(catalogpeer.Config{
		HTTPClient: c.peers,
		External:   c.external,
		Dir:        filepath.Join(p.options.cachePath, "catalogs-of-peers"),
		Space:      space,
		IsJudged:   func(ref string) bool { return !puller.AcceptsAnything() || puller.IsJudged(ref) },
	})
	if err != nil {
		return fmt.Errorf("setting up the catalog server: %w", err)
	}
	secrets, err := pullsecret.NewCatalogs(pullsecret.CatalogsConfig{API: api, Namespace: p.options.systemNamespace, File: pulls.authFile})
	if err != nil {
		return fmt.Errorf("setting up pull secrets of catalogs: %w", err)
	}
	var verdicts *verdict.Verdicts
	reconciler, err := catalogserver.NewReconciler(catalogserver.ReconcilerConfig{
		Client:  s.manager.GetClient(),
		Store:   c.store,
		Puller:  catalogserver.ImagePuller(puller),
		Secrets: secrets,
		Peers:   peers,
		Signatures: func(wake func(string)) catalogserver.Signatures {
			verdicts = verdict.New(puller, wake, time.Now)
			return verdicts
		},
		ExternalURL: p.options.catalogExternalURL,
		Events:      told,
		Stored:      stored,
		Now:         time.Now,
		Random:      rand.Float64,
	})
	if err == nil {
		err = errors.Join(secrets.SetupWithManager(s.manager, reconciler.Wake), reconciler.SetupWithManager(s.manager), s.manager.Add(verdicts.Looks))
	}
	if err != nil {
		return fmt.Errorf("setting up the catalog server: %w", err)
	}
	pulls.judges = append(pulls.judges, reconciler.Rejudge)
	return nil
}

// catalogServerConfig is how catalogs are served; without a certificate over plain HTTP.
func catalogServerConfig(
	o *options, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), handler http.Handler,
) catalogserver.ServerConfig {
	return catalogserver.ServerConfig{
		Address: o.catalogAddress, Handler: handler, GetCertificate: certificate, TLS: o.tls.Apply,
	}
}
