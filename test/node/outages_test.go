//go:build linux

package node_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/node"
)

// How long something is away.
const (
	apiServerAway = time.Minute
	etcdAway      = 10 * time.Second
	dnsAway       = 20 * time.Second
)

var registryAway = flag.Duration("registry-away", 30*time.Second, "how long the registry is away")

// TestOutages takes away what the controller depends on, with an extension that does
// not change. Catalogs are served all the while, the controller is not restarted, and
// heals by itself.
//
//nolint:paralleltest // it takes away what all tests need
func TestOutages(t *testing.T) {
	needMinutes(t)
	const name = "steady"
	offer(t, name, nil, "1.0.0")
	extend(t, name, "1.0.0")
	ready(t, name, "1.0.0")
	for _, test := range []struct {
		name   string
		act    func(*testing.T)
		repair time.Duration // within which what is lost afterwards is there again
		after  func(*testing.T, time.Time)
	}{
		{"API server", func(t *testing.T) {
			t.Helper()
			haltComponent(t, "kube-apiserver", apiServerAway)
		}, 2 * time.Second, func(t *testing.T, began time.Time) {
			t.Helper()
			toldOnce(t, began)
			recovered(t)
		}},
		{"etcd", func(t *testing.T) {
			t.Helper()
			haltComponent(t, "etcd", etcdAway)
		}, takeoverAfterKill, func(t *testing.T, _ time.Time) { t.Helper(); recovered(t) }},
		{"registry, and a replica is replaced", func(t *testing.T) {
			t.Helper()
			if err := theSuite.CloseRegistries(); err != nil {
				t.Fatal(err)
			}
			deleteLeader(t)
			time.Sleep(*registryAway)
			if err := theSuite.OpenRegistries(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, takeoverAfterEnd, nil},
		{"DNS, and a replica is replaced", func(t *testing.T) {
			t.Helper()
			scaleDNS(t, 0)
			deleteLeader(t)
			time.Sleep(dnsAway)
			scaleDNS(t, 1)
		}, takeoverAfterEnd, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			quiet(t)
			watch, mark, before := watchCatalog(t, name), theSuite.mark(t), restarts(t)
			began := time.Now()
			test.act(t)
			repaired(t, name, time.Now(), test.repair)
			rolledOut(t)
			time.Sleep(5 * time.Second)
			watch.check(t)
			theSuite.wroteNothing(t, mark, "/namespaces/"+name+"/configmaps")
			if after := restarts(t); after > before {
				t.Errorf("controllers were restarted %d times", after-before)
			}
			if test.after != nil {
				test.after(t, began)
			}
		})
	}
}

// haltComponent has one of the control plane away for so long, and waits until the API
// server answers again.
func haltComponent(t *testing.T, component string, away time.Duration) {
	t.Helper()
	if err := theSuite.Cluster.Halt(component); err != nil {
		t.Fatal(err)
	}
	time.Sleep(away)
	if err := theSuite.Cluster.Resume(component); err != nil {
		t.Fatal(err)
	}
	// Nodes send to it as soon as kube-proxy has heard that it is there, which may be long after.
	eventually(t, "the API server", func(ctx context.Context) error {
		service := named(&corev1.Service{}, "default", "kubernetes")
		if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
			return err
		}
		connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(service.Spec.ClusterIP, "443"))
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// recovered waits until the parts of the cluster have noticed that the API server is back,
// with pauses of their own: until a pod is replaced, and requests go to the new one. Until
// then it may be that none go to pods that are ready.
func recovered(t *testing.T) {
	t.Helper()
	kubectl(t, "", "-n", "kube-system", "rollout", "restart", "deployment/coredns")
	if err := theSuite.RolledOut(t.Context(), "kube-system", "coredns"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "endpoints", func(ctx context.Context) error {
		for namespace, service := range map[string]string{"kube-system": "kube-dns", environment.SystemNamespace: "catalogd-service"} {
			if err := endpointsAreReady(ctx, namespace, service); err != nil {
				return err
			}
		}
		return nil
	})
}

// endpointsAreReady is an error unless requests for a Service go to all of its pods, and to
// no others.
func endpointsAreReady(ctx context.Context, namespace, name string) error {
	service := named(&corev1.Service{}, namespace, name)
	if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
		return err
	}
	var found corev1.PodList
	if err := theSuite.Admin.List(ctx, &found, client.InNamespace(namespace), client.MatchingLabels(service.Spec.Selector)); err != nil {
		return err
	}
	var slices discoveryv1.EndpointSliceList
	if err := theSuite.Admin.List(ctx, &slices, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: name}); err != nil {
		return err
	}
	want, got := sets.New[string](), sets.New[string]()
	for i := range found.Items {
		want.Insert(found.Items[i].Status.PodIP)
	}
	for i := range slices.Items {
		for _, endpoint := range slices.Items[i].Endpoints {
			if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				got.Insert(endpoint.Addresses...)
			}
		}
	}
	if !want.Equal(got) {
		return fmt.Errorf("requests for %s go to %v, and its pods are %v", name, sets.List(got), sets.List(want))
	}
	return nil
}

func scaleDNS(t *testing.T, to int) {
	t.Helper()
	kubectl(t, "", "-n", "kube-system", "scale", "deployment/coredns", fmt.Sprintf("--replicas=%d", to))
	if err := theSuite.RolledOut(t.Context(), "kube-system", "coredns"); err != nil {
		t.Fatal(err)
	}
}

// restarts are those of all containers of controllers.
func restarts(t *testing.T) int32 {
	t.Helper()
	found, err := pods(t.Context(), environment.SystemNamespace, "operator-controller")
	if err != nil {
		t.Fatal(err)
	}
	var sum int32
	for i := range found {
		for _, container := range found[i].Status.ContainerStatuses {
			sum += container.RestartCount
		}
	}
	return sum
}

// toldOnce wants the log of each controller to tell once since then that the API server was
// away, or twice if that went again while it started.
func toldOnce(t *testing.T, since time.Time) {
	t.Helper()
	found, err := pods(t.Context(), environment.SystemNamespace, "operator-controller")
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		log := kubectl(t, "", "-n", environment.SystemNamespace, "logs", found[i].Name, "--since-time="+since.UTC().Format(time.RFC3339))
		if count := strings.Count(log, "the API server is away"); count == 0 || count > 2 {
			t.Errorf("%s tells %d times that the API server is away:\n%s", found[i].Name, count, log)
		}
		if count := strings.Count(log, "connection refused"); count > 3 {
			t.Errorf("%s tells %d times of refused connections:\n%s", found[i].Name, count, log)
		}
	}
}

// TestNodeRestarts ends everything on the node at once, as a power cut does. When it is
// back, all is as before.
//
//nolint:paralleltest // it restarts the node of all tests
func TestNodeRestarts(t *testing.T) {
	needMinutes(t)
	const name = "rebooted"
	offer(t, name, nil, "1.0.0")
	extend(t, name, "1.0.0")
	ready(t, name, "1.0.0")
	quiet(t)
	mark := theSuite.mark(t)
	theSuite.PowerOff()
	ended := kill(t, "", "")
	if ended == 0 {
		t.Fatal("nothing ran on the node")
	}
	began := time.Now()
	if err := theSuite.PowerOn(); err != nil {
		t.Fatal(err)
	}
	rolledOut(t)
	ready(t, name, "1.0.0")
	runs(t, name, "1.0.0")
	through, err := theSuite.CatalogClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the catalog", func(ctx context.Context) error { return fetchCatalog(ctx, through, name) })
	t.Logf("all was back after %s", time.Since(began).Round(time.Second))
	if content := contentWrites(t, mark); len(content) > 0 {
		t.Errorf("there were %d writes to content:\n%s", len(content), strings.Join(content, "\n"))
	}
}

func fetchCatalog(ctx context.Context, through *http.Client, name string) error {
	_, err := fetch(ctx, through, "https://catalogd-service."+environment.SystemNamespace+".svc/catalogs/"+name+"/api/v1/all")
	return err
}

// TestCacheIsFull has a volume for the cache that one catalog would more than fill.
// Status says so, the others are served, and it goes on when the catalog is smaller.
//
//nolint:paralleltest // it deploys the controller of all tests anew
func TestCacheIsFull(t *testing.T) {
	needMinutes(t)
	const name, large = "small", "large"
	t.Cleanup(func() { deploy(t) })
	deploy(t, `{op: replace, path: /spec/template/spec/volumes/0, value: {name: cache, emptyDir: {medium: Memory, sizeLimit: 16Mi}}}`)
	offer(t, name, nil, "1.0.0")
	pushLarge(t, large, 32<<20)
	if err := theSuite.content.CreateCatalog(t.Context(), large, node.Registry+"/"+large+":v1", func(catalog *ocv1.ClusterCatalog) {
		minutes := 1
		catalog.Spec.Source.Image.PollIntervalMinutes = &minutes
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, named(&ocv1.ClusterCatalog{}, "", large)) })
	eventually(t, "word of the full volume", func(ctx context.Context) error {
		return catalogSays(ctx, large, ocv1.TypeProgressing, "space")
	})
	through, err := theSuite.CatalogClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := fetchCatalog(t.Context(), through, name); err != nil {
		t.Errorf("the other catalog: %v", err)
	}
	extend(t, name, "1.0.0")
	ready(t, name, "1.0.0")
	if evicted := restarts(t); evicted > 0 {
		t.Errorf("controllers were restarted %d times", evicted)
	}
	pushLarge(t, large, 1<<20)
	serving(t, large)
}

func deploy(t *testing.T, patches ...string) {
	t.Helper()
	if err := theSuite.Deploy(context.WithoutCancel(t.Context()), node.Default, theSuite.image, replicas, patches...); err != nil {
		t.Error(err)
	}
}

// pushLarge pushes a catalog of so many bytes that cannot be made smaller.
func pushLarge(t *testing.T, name string, size int) {
	t.Helper()
	files := fstest.MapFS{"catalog.json": {Data: aPackage(t, name, "")}}
	for i := range size >> 20 {
		files[fmt.Sprintf("noise-%d.json", i)] = &fstest.MapFile{Data: documents(t, map[string]any{
			"schema": "noise", "package": name, "name": fmt.Sprintf("noise-%d", i), "noise": noise(1 << 20),
		})}
	}
	if err := theSuite.content.PushCatalog(t.Context(), name+":v1", files); err != nil {
		t.Fatal(err)
	}
}

// aPackage is the part of a catalog about a package with one bundle, which nobody
// installs, and so much beside.
func aPackage(t *testing.T, name, beside string) []byte {
	t.Helper()
	bundle := name + ".v1.0.0"
	return documents(t,
		map[string]any{"schema": "olm.package", "name": name, "defaultChannel": "stable"},
		map[string]any{"schema": "olm.channel", "package": name, "name": "stable", "entries": []any{map[string]any{"name": bundle}}},
		map[string]any{"schema": "olm.bundle", "package": name, "name": bundle, "image": node.Registry + "/" + name + ":v1.0.0", "properties": []any{
			map[string]any{"type": "olm.package", "value": map[string]any{"packageName": name, "version": "1.0.0"}},
			map[string]any{"type": "noise", "value": beside},
		}},
	)
}

func documents(t *testing.T, objects ...map[string]any) []byte {
	t.Helper()
	var all []byte
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, text...), '\n')
	}
	return all
}

// noise is so many bytes that cannot be made much smaller.
func noise(size int) string {
	bytes := make([]byte, size*3/4)
	_, _ = rand.Read(bytes) // never fails
	return base64.StdEncoding.EncodeToString(bytes)
}

// catalogSays is nil when a condition of a catalog has the text.
func catalogSays(ctx context.Context, name, kind, text string) error {
	found := &ocv1.ClusterCatalog{}
	if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
		return err
	}
	current := meta.FindStatusCondition(found.Status.Conditions, kind)
	if current == nil || !strings.Contains(current.Message, text) {
		return fmt.Errorf("it is %+v", found.Status.Conditions)
	}
	return nil
}
