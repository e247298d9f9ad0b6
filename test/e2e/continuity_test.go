package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/leadership"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/faultproxy"
)

// soon is what "at once" is on a machine that does much else.
const soon = 5 * time.Second

// standAside stops the controller of all tests until the test ends.
func standAside(t *testing.T) {
	t.Helper()
	if err := theSuite.controller.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := theSuite.startController(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// TestRollingRestart replaces two replicas one after the other by others that have nothing
// yet, while the registry is away. Who asks for a catalog gets it, each time, and nothing
// is written that says nothing new.
//
//nolint:paralleltest // it stops the controller of all tests
func TestRollingRestart(t *testing.T) {
	fleet := newFleet(t, "rolling", 10, func(int) bool { return false })
	serving(t, fleet.name)
	fleet.install(t)
	eventually(t, "the installations", fleet.checkReady)
	standAside(t)

	service := startService(t)
	start := func() *environment.Controller {
		replica, err := theSuite.StartController(t.Context(), theSuite.controllerLog, "--v=1",
			"--cache-path="+t.TempDir(), "--catalog-server-external-url="+service.url())
		if err != nil {
			t.Fatal(err)
		}
		service.add(replica)
		t.Cleanup(func() {
			if err := replica.Stop(); err != nil {
				t.Error(err)
			}
		})
		return replica
	}
	replicas := []*environment.Controller{start(), start()}
	eventually(t, "the catalog is served by the service", func(ctx context.Context) error {
		catalog := &ocv1.ClusterCatalog{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: fleet.name}, catalog); err != nil {
			return err
		}
		if catalog.Status.URLs == nil || !strings.HasPrefix(catalog.Status.URLs.Base, service.url()) {
			return fmt.Errorf("it is served at %+v", catalog.Status.URLs)
		}
		return fetchTrusted(ctx, catalog.Status.URLs.Base+"/api/v1/all")
	})
	awaitSilence(t)

	through, err := trusting(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(through.CloseIdleConnections)
	theSuite.Registry.Use(testkit.FailPath("", http.StatusServiceUnavailable))
	t.Cleanup(theSuite.Registry.Heal)
	began := time.Now()
	end := poll(t, through, service.url()+"/catalogs/"+fleet.name+"/api/v1/all")
	for _, replica := range replicas {
		start()
		stopped := time.Now()
		if err := replica.Stop(); err != nil {
			t.Error(err)
		}
		t.Logf("a replica has stopped within %s", time.Since(stopped).Round(time.Millisecond))
	}
	time.Sleep(2 * endpointDelay)
	wantNothingTold(t, began)
	// One of these two leads, and the other one acts as soon as that is told to end.
	for _, replica := range service.all()[len(replicas):] {
		start()
		patchSettings(t, fleet.names...)
		stopped, ended := time.Now(), make(chan error, 1)
		go func() { ended <- replica.Stop() }()
		awaitSettings(t, fleet.names...)
		took := time.Since(stopped)
		t.Logf("all was repaired %s after a replica was told to end", took.Round(time.Millisecond))
		if took > soon {
			t.Errorf("it took %s to act", took)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	requests, failures := end()
	t.Logf("%d requests in %s, %d failed", requests, time.Since(began).Round(time.Second), len(failures))
	for _, failure := range failures {
		t.Errorf("a request for the catalog failed: %s", failure)
	}
}

// wantNothingTold finds what was written, but for the lease and events about that.
func wantNothingTold(t *testing.T, since time.Time) {
	t.Helper()
	for _, request := range requestsSince(t, since) {
		ref := request.ObjectRef
		isOfLease := ref != nil && ref.Resource == "events" && ref.Namespace == environment.SystemNamespace
		if request.IsWrite() && !isOfLease {
			t.Errorf("written although nothing is new: %s", request)
		}
	}
}

// TestColdStart starts the only replica with nothing on disk. What it finds is as the
// statuses say, and so it writes none.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestColdStart(t *testing.T) {
	fleet := newFleet(t, "cold", 50, func(int) bool { return false })
	serving(t, fleet.name)
	fleet.install(t)
	eventually(t, "the installations", fleet.checkReady)
	awaitSilence(t)

	began := time.Now()
	replaceController(t, false, "--cache-path="+t.TempDir(), "--catalog-server-bind-address="+theSuite.controller.CatalogServer(),
		"--catalog-server-external-url=http://"+theSuite.controller.CatalogServer())
	seen := time.Now()
	eventually(t, "a pass over each extension", func(context.Context) error {
		passes := passesSince(t, began)
		for _, name := range fleet.names {
			if passes[name] == 0 {
				return fmt.Errorf("none over %s", name)
			}
		}
		return nil
	})
	t.Logf("all extensions were looked at after %s", time.Since(seen).Round(time.Millisecond))
	time.Sleep(2 * time.Second)
	wantNothingTold(t, began)
}

// outage is longer than anybody waits between two tries.
const outage = 60 * time.Second

// TestAPIServerAway takes the API server away from a controller: while it runs, and while
// it starts. It stays, serves what it has, and acts as soon as the API server is back.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestAPIServerAway(t *testing.T) {
	fleet := newFleet(t, "away", 3, func(int) bool { return false })
	profiles := freeAddress(t)
	log := logOfItsOwn(t, func() { fleet.takeOver(t, "--leader-elect=true", "--pprof-bind-address="+profiles) })
	fleet.install(t)
	eventually(t, "the installations", fleet.checkReady)
	controller := theSuite.controller
	url := "http://" + controller.CatalogServer() + "/catalogs/" + fleet.name + "/api/v1/all"
	const rounds = 3
	var goroutines []int
	for round := range rounds {
		end := poll(t, &http.Transport{}, url)
		fleet.proxy.Use(faultproxy.Down)
		fleet.proxy.Cut()
		time.Sleep(time.Second)
		patchSettings(t, fleet.names...)
		if round == 0 {
			time.Sleep(outage)
		} else {
			time.Sleep(outage / 3)
		}
		if err := controller.Running(); err != nil {
			t.Fatal(err)
		}
		if !controller.IsReady(t.Context()) || !controller.IsLive(t.Context()) {
			t.Errorf("round %d: ready %t, live %t", round, controller.IsReady(t.Context()), controller.IsLive(t.Context()))
		}
		fleet.proxy.Heal()
		back := time.Now()
		awaitSettings(t, fleet.names...)
		took := time.Since(back)
		t.Logf("round %d: all was repaired %s after the API server was back", round, took.Round(time.Millisecond))
		if took > soon {
			t.Errorf("it took %s to act", took)
		}
		requests, failures := end()
		t.Logf("%d requests for the catalog, %d failed", requests, len(failures))
		for _, failure := range failures {
			t.Errorf("a request for the catalog failed: %s", failure)
		}
		eventually(t, "all is as wanted", fleet.checkReady)
		time.Sleep(5 * time.Second) // what has ended has gone by then
		goroutines = append(goroutines, countGoroutines(t, profiles))
	}
	if first, last := goroutines[0], goroutines[rounds-1]; last > first+10 {
		t.Errorf("%v goroutines after each round: they do not end", goroutines)
	}
	t.Logf("%v goroutines after each round", goroutines)
	for _, text := range []string{"the API server is away", "the API server is back"} {
		if got := countLines(t, log, text); got != rounds {
			t.Errorf("the log says %d times %q, want %d", got, text, rounds)
		}
	}

	// The next process starts without an API server, on the disk of this one.
	if err := controller.Stop(); err != nil {
		t.Fatal(err)
	}
	fleet.proxy.Use(faultproxy.Down)
	started, err := theSuite.LaunchController(log, theSuite.start...)
	if err != nil {
		t.Fatal(err)
	}
	theSuite.controller = started
	url = "http://" + started.CatalogServer() + "/catalogs/" + fleet.name + "/api/v1/all"
	eventually(t, "the catalog is served from disk", func(ctx context.Context) error { return askOnce(ctx, http.DefaultTransport, url) })
	patchSettings(t, fleet.names...)
	time.Sleep(outage / 3)
	if err := started.Running(); err != nil || started.IsReady(t.Context()) || !started.IsLive(t.Context()) {
		t.Fatalf("ready %t, live %t, %v", started.IsReady(t.Context()), started.IsLive(t.Context()), err)
	}
	fleet.proxy.Heal()
	back := time.Now()
	eventually(t, "it is ready", func(ctx context.Context) error {
		if !started.IsReady(ctx) {
			return errors.New("not ready")
		}
		return nil
	})
	t.Logf("ready %s after the API server was there", time.Since(back).Round(time.Millisecond))
	awaitSettings(t, fleet.names...)
	took := time.Since(back)
	t.Logf("all was repaired %s after the API server was there", took.Round(time.Millisecond))
	if took > soon {
		t.Errorf("it took %s to act", took)
	}
}

// TestAPIServerRestarts ends the API server itself, with two replicas, for longer than a
// lease lasts. One of them acts as soon as it is back. That it was away is told once, or
// twice if it goes again while it starts, and not with every try.
//
//nolint:paralleltest // it stops the controller and the API server of all tests
func TestAPIServerRestarts(t *testing.T) {
	const name = "restarted"
	publish(t, operators(name, "1.0.0")...)
	extend(t, name)
	installed(t, name, "1.0.0")
	standAside(t)
	var logs []string
	for i := range 2 {
		logs = append(logs, filepath.Join(filepath.Dir(theSuite.controllerLog), fmt.Sprintf("restarted-%d.log", i)))
		replica, err := theSuite.StartController(t.Context(), logs[i], "--cache-path="+t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := replica.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	patchSettings(t, name)
	awaitSettings(t, name)

	if err := theSuite.Cluster.Halt("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(outage / 2)
	if err := theSuite.Cluster.Resume("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API server", func(ctx context.Context) error {
		found := &corev1.ConfigMap{}
		return theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: name, Name: "settings"}, found)
	})
	back := time.Now()
	patchSettings(t, name)
	awaitSettings(t, name)
	took := time.Since(back)
	t.Logf("all was repaired %s after the API server was back", took.Round(time.Millisecond))
	if took > soon {
		t.Errorf("it took %s to act", took)
	}
	for _, log := range logs {
		for text, most := range map[string]int{"the API server is away": 2, "the API server is back": 2, "connection refused": 3} {
			if got := countLines(t, log, text); got == 0 || got > most {
				t.Errorf("%s says %d times %q, want at least once and at most %d times", filepath.Base(log), got, text, most)
			}
		}
	}
}

// TestStolenLease takes the lease from a controller. It stops acting, stays, and acts again
// when the one who has it now does not renew it.
//
//nolint:paralleltest // it takes the lease from the controller of all tests
func TestStolenLease(t *testing.T) {
	const name = "stolen"
	publish(t, operators(name, "1.0.0")...)
	extend(t, name)
	installed(t, name, "1.0.0")
	// It may notice before the next line of this test runs.
	const given = "leadership given up or lost"
	before := countLines(t, theSuite.controllerLog, given)
	eventually(t, "another one has the lease", func(ctx context.Context) error {
		lease := &unstructured.Unstructured{}
		lease.SetAPIVersion("coordination.k8s.io/v1")
		lease.SetKind("Lease")
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: environment.SystemNamespace, Name: leadership.Lock}, lease); err != nil {
			return err
		}
		return errors.Join(
			unstructured.SetNestedField(lease.Object, "somebody", "spec", "holderIdentity"),
			theSuite.Admin.Update(ctx, lease),
		)
	})
	eventually(t, "the controller notices", func(context.Context) error {
		if countLines(t, theSuite.controllerLog, given) == before {
			return errors.New("it still leads")
		}
		return nil
	})
	time.Sleep(time.Second)
	patchSettings(t, name)
	time.Sleep(2 * time.Second)
	found := &corev1.ConfigMap{}
	if exists(t, found, name, "settings"); found.Data["version"] != rivalling {
		t.Error("it writes although another one leads")
	}
	awaitSettings(t, name)
	if err := theSuite.controller.Running(); err != nil {
		t.Error(err)
	}
}

// patchSettings has another field manager change an object of each extension.
func patchSettings(t *testing.T, extensions ...string) {
	t.Helper()
	for _, extension := range extensions {
		found := &corev1.ConfigMap{}
		exists(t, found, extension, "settings")
		before := client.MergeFrom(found.DeepCopy())
		found.Data["version"] = rivalling
		if err := theSuite.Admin.Patch(t.Context(), found, before, client.FieldOwner("rival")); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitSettings returns when all are changed back.
func awaitSettings(t *testing.T, extensions ...string) {
	t.Helper()
	for _, extension := range extensions {
		eventually(t, "repair of "+extension, func(ctx context.Context) error {
			found := &corev1.ConfigMap{}
			if err := theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: extension, Name: "settings"}, found); err != nil {
				return err
			}
			if found.Data["version"] == rivalling {
				return errors.New("still changed")
			}
			return nil
		})
	}
}

// countGoroutines asks the process.
func countGoroutines(t *testing.T, address string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/debug/pprof/goroutine?debug=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var count int
	if _, err := fmt.Fscanf(response.Body, "goroutine profile: total %d", &count); err != nil {
		t.Fatal(err)
	}
	return count
}

func countLines(t *testing.T, path, part string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(data)))
	return len(slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, part) }))
}
