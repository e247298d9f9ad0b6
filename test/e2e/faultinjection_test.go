package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/faultproxy"
)

// TestBadAPIServer has a fleet installed and upgraded while the API server
// refuses, fails, stalls and hangs up at random, before and after it did what it
// was asked. All get there, and no object is written again that was written
// once.
//
//nolint:paralleltest // it stops the controller of all tests
func TestBadAPIServer(t *testing.T) {
	fleet := newFleet(t, "faulty", 50, func(int) bool { return false })
	fleet.takeOver(t)
	journal := &faultproxy.Journal{}
	faults := &faultproxy.Faults{Seed: 1, Share: 0.02, Spare: isSpared}
	for _, step := range []struct {
		version string
		begin   func(*testing.T)
	}{
		{"1.0.0", fleet.install},
		{"1.1.0", fleet.upgrade},
	} {
		fleet.proxy.Use(journal.Wrap)
		fleet.proxy.Use(faults.Wrap)
		step.begin(t)
		converged := phase{version: step.version}
		eventually(t, step.version+" everywhere", func(ctx context.Context) error { return converged.check(ctx, fleet) })
		fleet.proxy.Heal()
	}
	t.Logf("met with %v", faults.Injected())
	total := 0
	for _, count := range faults.Injected() {
		total += count
	}
	if total < len(fleet.names) {
		t.Errorf("no more than %d requests met with a fault", total)
	}
	checkWrittenOnce(t, fleet, journal)
	eventually(t, "all workloads", fleet.checkReady)
	checkQuiet(t, fleet)
}

// isSpared lets requests alone that are not about extensions.
func isSpared(req *http.Request) bool {
	return strings.Contains(req.URL.Path, "/events") || strings.Contains(req.URL.Path, "/clustercatalogs")
}

// contentPath has the extension and the object, for content that is in a
// namespace.
var contentPath = regexp.MustCompile(`/namespaces/(faulty-\d+)/(.+)$`)

// checkWrittenOnce holds what the API server has accepted of writes to content
// against what an install and an upgrade take.
func checkWrittenOnce(t *testing.T, fleet *fleet, journal *faultproxy.Journal) {
	t.Helper()
	got := map[string][]string{}
	for _, write := range journal.Accepted() {
		if match := contentPath.FindStringSubmatch(write.Path); match != nil && write.User != "" {
			object := strings.Replace(match[2], match[1], "…", 1)
			got[match[1]] = append(got[match[1]], write.Method+" "+object)
		} else if write.User != "" {
			got[writerOf(write)] = append(got[writerOf(write)], write.Method+" "+kindIn(write.Path))
		}
	}
	// Names of roles are made from the version.
	want := []string{
		"DELETE clusterrolebindings", "DELETE clusterroles", "DELETE configmaps/dropped",
		"PATCH configmaps/settings", "PATCH deployments/…",
		"POST clusterrolebindings", "POST clusterrolebindings", "POST clusterroles", "POST clusterroles",
		"POST configmaps/added", "POST configmaps/dropped", "POST configmaps/settings",
		"POST customresourcedefinitions", "POST deployments/…", "POST serviceaccounts/…", "POST services/…",
	}
	for _, name := range fleet.names {
		slices.Sort(got[name])
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("writes to the content of %s (-want +got):\n%s", name, diff)
		}
	}
}

// kindIn takes the resource out of the path of an object of the cluster.
func kindIn(path string) string {
	parts := strings.Split(path, "/")
	return parts[len(parts)-2]
}

// checkQuiet has the controller look at every extension again, over a good
// connection, until it writes nothing on a whole pass. On the first ones it can still hear
// of what has happened while one of its watches was cut off, and the status follows.
func checkQuiet(t *testing.T, fleet *fleet) {
	t.Helper()
	eventually(t, "a pass that writes nothing", func(context.Context) error {
		written := writesOfAPass(t, fleet)
		if len(written) > 0 {
			return fmt.Errorf("written although all was as wanted: %v", written)
		}
		return nil
	})
}

// writesOfAPass has the controller look at every extension once, and returns what it has
// written meanwhile.
func writesOfAPass(t *testing.T, fleet *fleet) []faultproxy.Write {
	t.Helper()
	journal := &faultproxy.Journal{}
	fleet.proxy.Use(journal.Wrap)
	defer fleet.proxy.Heal()
	began := time.Now().Add(time.Second) // the log counts in whole seconds
	catalog := &ocv1.ClusterCatalog{}
	exists(t, catalog, "", fleet.name)
	wake := 0
	eventually(t, "a pass over each extension", func(ctx context.Context) error {
		// Labels decide who draws from a catalog: a change wakes every extension.
		before := client.MergeFrom(catalog.DeepCopy())
		catalog.Labels["wake"] = fmt.Sprint(wake)
		wake++
		if err := theSuite.Admin.Patch(ctx, catalog, before); err != nil {
			return err
		}
		seen := passesSince(t, began)
		for _, name := range fleet.names {
			if seen[name] == 0 {
				return fmt.Errorf("none over %s", name)
			}
		}
		return nil
	})
	return slices.DeleteFunc(journal.Accepted(), func(write faultproxy.Write) bool { return writerOf(write) == "" })
}
