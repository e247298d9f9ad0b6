package deployment_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// TestMetrics reads metrics as they are served by the manifests: with the certificate
// that the controller issues for both Services, and only by those who may. Nobody has
// to bring anything.
//
//nolint:paralleltest // it restarts the controller of all
func TestMetrics(t *testing.T) {
	address := freeAddress(t)
	restart(t, "--metrics-bind-address="+address, "--catalog-server-external-url=https://catalogd-service.olmv1-system.svc")
	t.Cleanup(func() {
		must(t, theSuite.controller.Kill())
		must(t, theSuite.start(context.WithoutCancel(t.Context())))
	})
	kubectl(t, "apply", "--server-side", "--force-conflicts", "-k", kustomization("rbac"))
	for reader, role := range map[string]string{"scraper": "operator-controller-metrics-reader", "catalog-scraper": "catalogd-metrics-reader", "stranger": ""} {
		makeReader(t, reader, role)
	}
	services := []string{"operator-controller-service.olmv1-system.svc", "catalogd-service.olmv1-system.svc", "operator-controller-service.olmv1-system.svc.cluster.local"}
	for _, service := range services {
		for reader, want := range map[string]int{
			"scraper": http.StatusOK, "catalog-scraper": http.StatusOK, "stranger": http.StatusForbidden, "": http.StatusUnauthorized,
		} {
			eventually(t, fmt.Sprintf("%q reads metrics from %s", reader, service), func(ctx context.Context) error {
				return scrape(ctx, t, address, service, token(t, reader), want)
			})
		}
	}
	if err := scrape(t.Context(), t, address, "elsewhere.olmv1-system.svc", "", http.StatusOK); err == nil || !strings.Contains(err.Error(), "certificate is valid for") {
		t.Errorf("under another name: %v", err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// makeReader makes a ServiceAccount with a ClusterRole, or without any.
func makeReader(t *testing.T, name, role string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	must(t, theSuite.Admin.Create(t.Context(), account))
	if role == "" {
		return
	}
	must(t, theSuite.Admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name}},
	}))
}

// token is one of a ServiceAccount; empty for nobody.
func token(t *testing.T, reader string) string {
	t.Helper()
	if reader == "" {
		return ""
	}
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: reader}}
	must(t, theSuite.Admin.SubResource("token").Create(t.Context(), account, request))
	return request.Status.Token
}

// scrape reads metrics at an address as those of a Service, with the trust that the
// Secret of their certificate gives.
func scrape(ctx context.Context, t *testing.T, address, service, token string, want int) error {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: environment.SystemNamespace, Name: "operator-controller-metrics-server"}
	if err := theSuite.Admin.Get(ctx, key, secret); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: service, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != want {
		return fmt.Errorf("status %s, want %d", response.Status, want)
	}
	if want == http.StatusOK && !strings.Contains(string(content), "\ncontroller_runtime_reconcile_total") {
		return errors.New("there are no metrics")
	}
	return nil
}
