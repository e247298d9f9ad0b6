package main

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/clusterextensions/operator-controller/internal/servingcert"
)

// catalogTLS is how the catalog server shows who it is.
type catalogTLS struct {
	// certificate is nil for plain HTTP.
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// check fails until there is a certificate.
	check healthz.Checker

	// files are to be started, and own is to be kept by each session; nil where there
	// are none.
	files manager.Runnable
	own   *servingcert.Certificate
}

// newCatalogTLS follows the advertised URL: over https the certificate is the given one
// or, without any, one that we issue ourselves.
func newCatalogTLS(external *url.URL, o *options) (catalogTLS, error) {
	if external.Scheme == "http" {
		return catalogTLS{check: healthz.Ping}, nil
	}
	if o.tlsCert != "" {
		files, err := certwatcher.New(o.tlsCert, o.tlsKey)
		if err != nil {
			return catalogTLS{}, fmt.Errorf("reading the serving certificate: %w", err)
		}
		return catalogTLS{certificate: files.GetCertificate, check: healthz.Ping, files: files}, nil
	}
	own := &servingcert.Certificate{}
	return catalogTLS{certificate: own.GetCertificate, check: own.Check, own: own}, nil
}

// keep has a session keep the certificate, if it is our own.
func (t catalogTLS) keep(mgr ctrl.Manager, api kubernetes.Interface, external *url.URL, o *options) error {
	if t.own == nil {
		return nil
	}
	keeper, err := servingcert.New(servingcert.Config{
		API:         api,
		Secret:      types.NamespacedName{Namespace: o.systemNamespace, Name: servingcert.SecretName},
		Names:       servingcert.Names(external),
		Certificate: t.own,
		Now:         time.Now,
	})
	if err == nil {
		err = keeper.SetupWithManager(mgr)
	}
	if err != nil {
		return fmt.Errorf("setting up the serving certificate: %w", err)
	}
	return nil
}
