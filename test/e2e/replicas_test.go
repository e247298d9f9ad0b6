package e2e_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// TestReplicaServesAndTakesOver starts a second controller, which serves over
// TLS with a certificate of its own, and then lets it lead.
//
//nolint:paralleltest // it stops the controller of all tests
func TestReplicaServesAndTakesOver(t *testing.T) {
	const name = "replicated"
	publish(t, operators(name, "1.0.0", "1.1.0")...)
	serving(t, name)
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")

	address := freeAddress(t)
	follower, err := theSuite.StartController(t.Context(), theSuite.controllerLog, "--v=1",
		"--cache-path="+t.TempDir(),
		"--catalog-server-bind-address="+address,
		"--catalog-server-external-url=https://"+address,
		"--service-account="+strings.Replace(strings.TrimPrefix(environment.ControllerUser, "system:serviceaccount:"), ":", "/", 1),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(follower.Stop(), theSuite.startController(context.WithoutCancel(t.Context()))); err != nil {
			t.Error(err)
		}
	})
	url := "https://" + address + "/catalogs/" + name + "/api/v1/all"
	eventually(t, "the follower serves the catalog", func(ctx context.Context) error { return fetchTrusted(ctx, url) })
	catalog := &ocv1.ClusterCatalog{}
	exists(t, catalog, "", name)
	if strings.HasPrefix(catalog.Status.URLs.Base, "https:") {
		t.Error("the follower writes status")
	}

	read := len(startingReads(t))
	if err := theSuite.controller.Stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the follower leads", func(ctx context.Context) error {
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: name}, catalog); err != nil {
			return err
		}
		if got := catalog.Status.URLs.Base; !strings.HasPrefix(got, "https://"+address) {
			return fmt.Errorf("the catalog is served at %s", got)
		}
		return nil
	})
	// It has no copy of the catalog's index: it reads from itself, over TLS.
	update(t, name, version("1.1.0"))
	installed(t, name, "1.1.0")
	if reads := startingReads(t); len(reads) > read {
		t.Errorf("whoever takes over reads what it could have held before: %v", reads[read:])
	}
}

// startingReads are the requests of all controllers which read all of what passes need.
func startingReads(t *testing.T) []environment.Request {
	t.Helper()
	requests, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(requests), func(r environment.Request) bool {
		isHeld := r.ObjectRef != nil && r.ObjectRef.Name == "" &&
			slices.Contains([]string{"clusterextensions", "clustercatalogs", "serviceaccounts"}, r.ObjectRef.Resource)
		begins := r.Verb == "list" || strings.Contains(r.RequestURI, "sendInitialEvents=true")
		return !isHeld || !begins || r.IsEndOfWatch() || r.ImpersonatedUser != nil
	})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// trusting has the trust that the Secret of the certificate gives.
func trusting(ctx context.Context) (*http.Transport, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: environment.SystemNamespace, Name: "operator-controller-catalog-server"}
	if err := theSuite.Admin.Get(ctx, key, secret); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}, nil
}

// fetchTrusted reads url with that trust.
func fetchTrusted(ctx context.Context, url string) error {
	transport, err := trusting(ctx)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	return askOnce(ctx, transport, url)
}
