package main

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"time"

	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/clusterextensions/operator-controller/internal/servingcert"
)

// metricsService is the Service of config/manager by which metrics are read.
const metricsService = "operator-controller-service"

// serverTLS is how a server shows who it is. The zero value is for one that there is not.
type serverTLS struct {
	// certificate is nil for plain HTTP.
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// check fails until there is a certificate.
	check healthz.Checker

	// files are to be started; nil where there are none.
	files manager.Runnable

	// own is the certificate that we issue ourselves, for a server with names. It is to be
	// kept by each session; nil where there is none.
	own    *servingcert.Certificate
	server servingcert.Server
	names  []string
}

// newCatalogTLS follows the advertised URL.
func newCatalogTLS(external *url.URL, o *options) (serverTLS, error) {
	if external.Scheme == "http" {
		return serverTLS{check: healthz.Ping}, nil
	}
	return newServerTLS(servingcert.Catalogs, servingcert.Names(external), o)
}

// newMetricsTLS is for the metrics server, if there is one.
func newMetricsTLS(o *options) (serverTLS, error) {
	if o.metricsAddress == nowhere {
		return serverTLS{}, nil
	}
	names, err := metricsNames(o)
	if err != nil {
		return serverTLS{}, err
	}
	return newServerTLS(servingcert.Metrics, names, o)
}

// newServerTLS gives the certificate of the flags or, without any, one that we issue
// ourselves.
func newServerTLS(server servingcert.Server, names []string, o *options) (serverTLS, error) {
	if o.tlsCert != "" {
		files, err := certwatcher.New(o.tlsCert, o.tlsKey)
		if err != nil {
			return serverTLS{}, fmt.Errorf("reading the serving certificate of --tls-cert and --tls-key: %w", err)
		}
		return serverTLS{certificate: files.GetCertificate, check: healthz.Ping, files: files}, nil
	}
	own := &servingcert.Certificate{}
	return serverTLS{certificate: own.GetCertificate, check: own.Check, own: own, server: server, names: names}, nil
}

// keep has a session keep the certificate, if it is our own.
func (t serverTLS) keep(mgr ctrl.Manager, api kubernetes.Interface, o *options) error {
	if t.own == nil {
		return nil
	}
	keeper, err := servingcert.New(servingcert.Config{
		API:         api,
		Server:      t.server,
		Namespace:   o.systemNamespace,
		Names:       t.names,
		Certificate: t.own,
		Now:         time.Now,
	})
	if err == nil {
		err = keeper.SetupWithManager(mgr)
	}
	if err != nil {
		return fmt.Errorf("setting up the certificate of the %s: %w", t.server.Name, err)
	}
	return nil
}

// metricsNames are those of the Services that lead to metrics: the one of its own, and
// that of catalogs where this process serves them.
func metricsNames(o *options) ([]string, error) {
	names := servingcert.Names(&url.URL{Host: metricsService + "." + o.systemNamespace + ".svc"})
	if !o.serveCatalogs {
		return names, nil
	}
	external, err := url.Parse(o.catalogExternalURL)
	if err != nil {
		return nil, fmt.Errorf("parsing the external URL: %w", err)
	}
	return append(names, servingcert.Names(external)...), nil
}
