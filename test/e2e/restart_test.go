package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// TestUnchangedExtensionCostsNothing makes the controller look at an extension
// again and again, and counts what it asks the API server.
//
//nolint:paralleltest // what other tests send would count
func TestUnchangedExtensionCostsNothing(t *testing.T) {
	const name = "quiet"
	publish(t, operators(name, "1.0.0")...)
	extend(t, name)
	installed(t, name, "1.0.0")
	awaitSilence(t)
	wakeByCatalog(t, name)
}

// wakeByCatalog has the controller look at an extension some times, and finds what that costs.
func wakeByCatalog(t *testing.T, name string) {
	t.Helper()
	catalog := &ocv1.ClusterCatalog{}
	exists(t, catalog, "", name)
	start := time.Now()
	const passes = 5
	for i := range passes {
		// Labels decide who draws from a catalog: a change wakes every extension.
		before := client.MergeFrom(catalog.DeepCopy())
		labels := maps.Clone(catalog.Labels)
		labels["pass"] = fmt.Sprint(i)
		catalog.Labels = labels
		if err := theSuite.Admin.Patch(t.Context(), catalog, before); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
	}
	if got := passesOver(t, name, start); got < passes {
		t.Errorf("the controller made %d passes over the extension, want at least %d", got, passes)
	}
	for _, request := range requestsSince(t, start) {
		t.Errorf("an unchanged extension cost a request: %s", request)
	}
}

// TestBundleWithoutObjects: a publisher may leave all manifests out of a version. It is
// installed as any other and costs no more, and the version after it has them again.
//
//nolint:paralleltest // it looks at all requests
func TestBundleWithoutObjects(t *testing.T) {
	const name = "hollow"
	versions := operators(name, "1.0.0", "1.1.0")
	hollow := versions[0].Bundle()
	maps.DeleteFunc(hollow, func(file string, _ *fstest.MapFile) bool {
		return strings.HasPrefix(file, "manifests/") && file != "manifests/csv.yaml"
	})
	hollow["manifests/csv.yaml"] = &fstest.MapFile{Data: []byte(`{"apiVersion":"operators.coreos.com/v1alpha1",
		"kind":"ClusterServiceVersion","metadata":{"name":"hollow.v1.0.0"},"spec":{"version":"1.0.0",
		"installModes":[{"type":"AllNamespaces","supported":true}],"install":{"strategy":"deployment","spec":{}}}}`)}
	pushBundle(t, versions[0], hollow)
	pushBundle(t, versions[1], versions[1].Bundle())
	publishCatalog(t, name, testkit.Catalog(registryHost, versions...))
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	awaitSilence(t)
	wakeByCatalog(t, name)
	update(t, name, version("1.1.0"))
	installed(t, name, "1.1.0")
}

// TestNobodyIsWokenForNothing: definitions come and go with another extension, which leave
// what this one requires of the cluster as it is.
//
//nolint:paralleltest // other tests would wake it with reason
func TestNobodyIsWokenForNothing(t *testing.T) {
	const name, other = "undisturbed", "coming"
	requiring := operators(name, "1.0.0")
	requiring[0].Properties = []string{
		`{type: olm.gvk.required, value: {group: apps, version: v1, kind: Deployment}}`,
		`{type: olm.maxOpenShiftVersion, value: "4.99"}`,
	}
	publish(t, requiring...)
	publish(t, operators(other, "1.0.0")...)
	serving(t, other)
	extend(t, name)
	installed(t, name, "1.0.0")
	began := time.Now()
	catalog := &ocv1.ClusterCatalog{}
	exists(t, catalog, "", name)
	before := client.MergeFrom(catalog.DeepCopy())
	catalog.Labels["moved"] = "yes"
	if err := theSuite.Admin.Patch(t.Context(), catalog, before); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a pass that is called for is seen", func(context.Context) error {
		if passesOver(t, name, began) == 0 {
			return errors.New("none is")
		}
		return nil
	})
	awaitSilence(t)

	start := time.Now()
	extend(t, other)
	installed(t, other, "1.0.0")
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: other}})
	awaitSilence(t)
	if got := passesOver(t, name, start); got > 0 {
		t.Errorf("the controller made %d passes over the extension, none is called for", got)
	}
}

// awaitSilence returns when the controller has asked nothing for longer than it waits
// before it reads once more what the cluster serves: definitions that another test
// installed or removed have it read that again and again for half a minute.
func awaitSilence(t *testing.T) {
	t.Helper()
	const longestPause = 16 * time.Second
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		if len(requestsSince(t, time.Now().Add(-longestPause-2*time.Second))) == 0 {
			return
		}
	}
	t.Fatal("the controller goes on asking in a world that does not change")
}

// requestsSince are the controller's, but for watches and those about its lease.
func requestsSince(t *testing.T, since time.Time) []environment.Request {
	t.Helper()
	requests, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(requests), func(request environment.Request) bool {
		isLease := request.ObjectRef != nil && request.ObjectRef.Resource == "leases"
		return !request.StageTimestamp.After(since) || isLease || request.Verb == "watch"
	})
}

// passesOver counts the passes over an extension that found all as wanted.
func passesOver(t *testing.T, extension string, since time.Time) int {
	t.Helper()
	return passesSince(t, since)[extension]
}

// passesSince counts, for each extension, the passes that found all as wanted.
func passesSince(t *testing.T, since time.Time) map[string]int {
	t.Helper()
	data, err := os.ReadFile(theSuite.controllerLog)
	if err != nil {
		t.Fatal(err)
	}
	const asWanted = "as wanted"
	counts := map[string]int{}
	for line := range bytes.Lines(data) {
		if !bytes.Contains(line, []byte(asWanted)) {
			continue
		}
		var entry struct {
			Time    time.Time `json:"ts"`
			Message string    `json:"msg"`
			Name    string    `json:"name"`
		}
		if json.Unmarshal(line, &entry) != nil {
			continue // written by a library
		}
		// The log counts in whole seconds.
		if entry.Message == asWanted && !entry.Time.Before(since.Truncate(time.Second)) {
			counts[entry.Name]++
		}
	}
	return counts
}

// TestDeathInTheMiddle kills the controller at a random moment of an install and
// of an upgrade, again and again, and starts it anew. The seed is fixed; the
// moment also depends on the machine. What a dead leader leaves is for
// [TestWebhooksWithoutACertificateManager].
//
//nolint:paralleltest // it kills the controller of all tests
func TestDeathInTheMiddle(t *testing.T) {
	replaceController(t, true)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 2 {
		name := fmt.Sprintf("death-%d", round)
		all := operators(name, "1.0.0", "1.1.0")
		publish(t, all...)
		serving(t, name)
		extend(t, name, version("1.0.0"))
		dieAfter(t, time.Duration(random.IntN(600))*time.Millisecond)
		installed(t, name, "1.0.0")

		update(t, name, version("1.1.0"))
		dieAfter(t, time.Duration(random.IntN(600))*time.Millisecond)
		installed(t, name, "1.1.0")
		found := &corev1.ConfigMap{}
		exists(t, found, name, "settings")
		if found.Data["version"] != "1.1.0" {
			t.Errorf("settings = %v, want those of 1.1.0", found.Data)
		}
	}
}

func dieAfter(t *testing.T, delay time.Duration) {
	t.Helper()
	time.Sleep(delay)
	if err := theSuite.controller.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := theSuite.startController(t.Context()); err != nil {
		t.Fatal(err)
	}
}
