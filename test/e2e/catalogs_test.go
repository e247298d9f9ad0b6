package e2e_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestCatalogFromTheFirstSecond holds every version of two catalogs that the API
// server ever has, as it makes and defaults them, against what kstatus says of it:
// one that is never pulled is never current, another is once its content is served.
func TestCatalogFromTheFirstSecond(t *testing.T) {
	t.Parallel()
	const good, bad = "first-second", "first-second-bad"
	changes := watchCatalogs(t)
	publish(t, operators(good, "1.0.0")...)
	brokenCatalog(t, bad)
	serving(t, good)

	first := map[string]bool{}
	for current := false; !current || len(first) < 2; {
		var event watch.Event
		select {
		case event = <-changes:
		case <-time.After(patience):
			t.Fatal("the catalog never becomes current")
		}
		catalog, ok := event.Object.(*unstructured.Unstructured)
		if !ok || !strings.HasPrefix(catalog.GetName(), good) {
			continue
		}
		result, err := kstatus.Compute(catalog)
		if err != nil {
			t.Fatal(err)
		}
		if seen := first[catalog.GetName()]; !seen {
			first[catalog.GetName()] = true
			if observed, _, _ := unstructured.NestedInt64(catalog.Object, "status", "observedGeneration"); observed != -1 {
				t.Errorf("catalog %q begins with observedGeneration %d", catalog.GetName(), observed)
			}
		}
		_, isServed, _ := unstructured.NestedMap(catalog.Object, "status", "urls")
		if isCurrent := result.Status == kstatus.CurrentStatus; isCurrent != isServed {
			t.Errorf("kstatus says %s of catalog %q, whose content is served: %t\n%v", result.Status, catalog.GetName(), isServed, catalog.Object["status"])
		}
		current = current || isServed
	}
	eventTells(t, bad, "Pulling", "pulling ")
	eventTells(t, bad, "Retrying", "source catalog content: ")
	kubectlPrints(t, []string{"NAME", "PROGRESSING", "READY", "REASON", "Retrying"}, "get", "ccat", bad, "-o", "wide")
	kubectlPrints(t, []string{"clustercatalog.olm.operatorframework.io/" + bad}, "get", "olm", "-o", "name")
}

// watchCatalogs gives every change of catalogs from now on.
func watchCatalogs(t *testing.T) <-chan watch.Event {
	t.Helper()
	watcher, err := client.NewWithWatch(theSuite.Cluster.RESTConfig(), client.Options{Scheme: theSuite.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(ocv1.GroupVersion.WithKind(ocv1.ClusterCatalogKind + "List"))
	if err := watcher.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	changes, err := watcher.Watch(t.Context(), list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(changes.Stop)
	return changes.ResultChan()
}

func kubectlPrints(t *testing.T, wants []string, args ...string) {
	t.Helper()
	printed, err := theSuite.KubectlOutput(t.Context(), "", args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range wants {
		if !strings.Contains(printed, want) {
			t.Errorf("kubectl %v prints no %q:\n%s", args, want, printed)
		}
	}
}
