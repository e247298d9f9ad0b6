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

	"github.com/clusterextensions/operator-controller/internal/servingcert"
)

// catalogTLS is how the catalog server shows who it is.
type catalogTLS struct {
	// certificate is nil for plain HTTP.
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// authorities are those that our own client has to trust for it, as PEM; nil
	// when it needs none.
	authorities func() []byte
	// check fails until there is a certificate.
	check healthz.Checker
}

// addCatalogTLS follows the advertised URL: over https the certificate is the
// given one or, without any, one that we issue ourselves.
func addCatalogTLS(mgr ctrl.Manager, api kubernetes.Interface, o *options) (catalogTLS, error) {
	external, err := url.Parse(o.catalogExternalURL)
	if err != nil {
		return catalogTLS{}, fmt.Errorf("parsing the external URL: %w", err)
	}
	if external.Scheme == "http" {
		return catalogTLS{check: healthz.Ping}, nil
	}
	if o.tlsCert != "" {
		files, err := certwatcher.New(o.tlsCert, o.tlsKey)
		if err != nil {
			return catalogTLS{}, fmt.Errorf("reading the serving certificate: %w", err)
		}
		if err := mgr.Add(files); err != nil {
			return catalogTLS{}, fmt.Errorf("setting up the serving certificate: %w", err)
		}
		return catalogTLS{certificate: files.GetCertificate, check: healthz.Ping}, nil
	}
	keeper, err := servingcert.New(servingcert.Config{
		API:    api,
		Secret: types.NamespacedName{Namespace: o.systemNamespace, Name: servingcert.SecretName},
		Names:  servingcert.Names(external),
		Now:    time.Now,
	})
	if err != nil {
		return catalogTLS{}, fmt.Errorf("setting up the serving certificate: %w", err)
	}
	if err := keeper.SetupWithManager(mgr); err != nil {
		return catalogTLS{}, fmt.Errorf("setting up the serving certificate: %w", err)
	}
	return catalogTLS{certificate: keeper.GetCertificate, authorities: keeper.Authorities, check: keeper.Check}, nil
}
