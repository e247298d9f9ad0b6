package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// proxy leads requests for every host to the registry, and remembers the hosts.
type proxy struct {
	*httptest.Server

	mu    sync.Mutex
	hosts []string
}

func startProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{}
	forward := &httputil.ReverseProxy{Rewrite: func(request *httputil.ProxyRequest) {
		request.SetURL(&url.URL{Scheme: "http", Host: theSuite.Registry.Host()})
	}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		p.mu.Lock()
		p.hosts = append(p.hosts, request.URL.Host)
		p.mu.Unlock()
		// The registry speaks plain HTTP, which clients find out.
		if request.Method == http.MethodConnect {
			http.Error(w, "no tunnels", http.StatusMethodNotAllowed)
			return
		}
		forward.ServeHTTP(w, request)
	}))
	t.Cleanup(p.Close)
	return p
}

// asked are the hosts without their ports, each once.
func (p *proxy) asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []string
	for _, host := range p.hosts {
		name, _, _ := strings.Cut(host, ":")
		found = append(found, name)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestProxy runs the controller with the variables of config/components/proxy, where
// registries are behind a proxy: it asks the proxy for what is not in NO_PROXY, and for
// nothing else. Its own catalogs and the API server are never asked for there.
func TestProxy(t *testing.T) {
	proxy := startProxy(t)
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	t.Setenv("NO_PROXY", ".svc,.cluster.local,10.0.0.0/16,direct.test")
	insecure(t, "proxied.test", "direct.test")
	restart(t, "--catalog-server-external-url=https://catalogd-service.olmv1-system.svc")
	t.Cleanup(func() {
		must(t, theSuite.controller.Kill())
		for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"} {
			must(t, os.Unsetenv(name))
		}
		must(t, theSuite.start(context.WithoutCancel(t.Context())))
	})
	catalogOf(t, "proxied", "proxied.test/sample-catalog:latest")
	catalogOf(t, "direct", "direct.test/sample-catalog:latest")

	eventually(t, "a catalog by the proxy", func(ctx context.Context) error {
		found, err := conditionOf(ctx, "proxied", ocv1.TypeServing)
		if err != nil || found.Status != metav1.ConditionTrue {
			return fmt.Errorf("%v, %w", found, err)
		}
		return nil
	})
	// Nothing has this name.
	eventually(t, "a catalog without the proxy", func(ctx context.Context) error {
		found, err := conditionOf(ctx, "direct", ocv1.TypeProgressing)
		if err != nil || !strings.Contains(found.Message, "direct.test") || found.Reason != ocv1.ReasonRetrying {
			return fmt.Errorf("%v, %w", found, err)
		}
		return nil
	})
	// What the catalog has is read from it to install from it.
	kubectl(t, "apply", "-k", kustomization("samples"))
	awaitReady(t)
	if got := proxy.asked(); !slices.Equal(got, []string{"proxied.test"}) {
		t.Errorf("the proxy is asked for %q", got)
	}
	kubectl(t, "delete", "clusterextensions,clustercatalogs", "--all", "--timeout=1m")
}

// insecure has hosts asked without TLS, too.
func insecure(t *testing.T, hosts ...string) {
	t.Helper()
	file := theSuite.RegistriesConf()
	before, err := os.ReadFile(file)
	must(t, err)
	after := string(before)
	for _, host := range hosts {
		after += fmt.Sprintf("\n[[registry]]\nprefix = %[1]q\nlocation = %[1]q\ninsecure = true\n", host)
	}
	must(t, os.WriteFile(file, []byte(after), 0o600))
	t.Cleanup(func() { must(t, os.WriteFile(file, before, 0o600)) })
}

func catalogOf(t *testing.T, name, reference string) {
	t.Helper()
	must(t, theSuite.Admin.Create(t.Context(), &ocv1.ClusterCatalog{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       ocv1.ClusterCatalogSpec{Source: ocv1.CatalogSource{Type: ocv1.SourceTypeImage, Image: &ocv1.ImageSource{Ref: reference}}},
	}))
}

func conditionOf(ctx context.Context, catalog, kind string) (metav1.Condition, error) {
	found := &ocv1.ClusterCatalog{}
	if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: catalog}, found); err != nil {
		return metav1.Condition{}, err
	}
	condition := meta.FindStatusCondition(found.Status.Conditions, kind)
	if condition == nil {
		return metav1.Condition{}, errors.New("there is no such condition")
	}
	return *condition, nil
}
