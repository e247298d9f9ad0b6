package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// ways are what requests of a life are counted for, in the order of the table.
var ways = []string{"install", "upgrade", "restart", "uninstall"}

// TestRequestsOfALife counts what one extension costs the API server, by verb and resource,
// and holds it against the table in docs/performance.md, in which each request has its
// reason. The extension is one of the benchmark.
//
//nolint:paralleltest // what other tests send would count
func TestRequestsOfALife(t *testing.T) {
	const name, first = "counted", "counted-first"
	var versions []testkit.Operator
	for _, version := range []string{"1.0.0", "1.1.0"} {
		versions = append(versions, testkit.Operator{Package: name, Version: version, ConfigMaps: []string{"settings", "defaults", "features"}})
	}
	publish(t, versions...)
	publish(t, operators(first, "1.0.0")...)
	// What is asked once in a session is not what an extension costs.
	extend(t, first)
	isReady(t, first, "1.0.0")
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: first}})
	awaitSilence(t)

	got := map[string]map[string]int{}
	count := func(way string, act func()) {
		t.Helper()
		begin := time.Now()
		act()
		awaitQuiet(t)
		got[way] = countRequests(requestsOfExtensions(t, begin))
	}
	count("install", func() {
		extend(t, name, version("1.0.0"))
		isReady(t, name, "1.0.0")
	})
	count("upgrade", func() {
		update(t, name, version("1.1.0"))
		isReady(t, name, "1.1.0")
	})
	count("restart", func() {
		begin := time.Now()
		if err := errors.Join(theSuite.controller.Stop(), theSuite.startController(t.Context())); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a look at "+name, func(context.Context) error {
			if passesOver(t, name, begin) == 0 {
				return errors.New("not yet")
			}
			return nil
		})
	})
	count("uninstall", func() { remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}) })
	compareRequests(t, got)
}

// isReady waits until nothing goes on any more.
func isReady(t *testing.T, extension, version string) {
	t.Helper()
	installed(t, extension, version)
	conditionContains(t, extension, ocv1.TypeReady, "True Succeeded")
}

// awaitQuiet returns when no extension has cost anything for longer than there is between
// the requests of a pass and an event about it.
func awaitQuiet(t *testing.T) {
	t.Helper()
	const pause = 3 * time.Second
	testkit.Eventually(t, patience, "no requests", func(context.Context) error {
		if sent := requestsOfExtensions(t, time.Now().Add(-pause)); len(sent) > 0 {
			return fmt.Errorf("%d requests within %s, such as %s", len(sent), pause, sent[0])
		}
		return nil
	})
}

// requestsOfExtensions are those that the controller sends for extensions. They are not
// about what the cluster serves, catalogs, leading, or what it watches for itself.
func requestsOfExtensions(t *testing.T, since time.Time) []environment.Request {
	t.Helper()
	requests, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(requests), func(request environment.Request) bool {
		if !request.StageTimestamp.After(since) || request.IsEndOfWatch() || request.ObjectRef == nil {
			return true
		}
		switch request.ObjectRef.Resource {
		case "leases", "clustercatalogs", "clusterversions":
			return true
		case "events":
			return request.ObjectRef.Namespace == environment.SystemNamespace
		}
		return request.Verb == "watch" && request.ImpersonatedUser == nil
	})
}

// countRequests counts by what the table calls them. Of what is written and watched as the
// ServiceAccount, each kind of object has the same reason.
func countRequests(requests []environment.Request) map[string]int {
	counts := map[string]int{}
	for _, request := range requests {
		if isOvertaken(request) {
			continue
		}
		kind := request.Verb + " " + request.ObjectRef.Resource
		if request.ObjectRef.Subresource != "" {
			kind += "/" + request.ObjectRef.Subresource
		}
		isQuestion := strings.HasPrefix(request.ObjectRef.Resource, "selfsubject")
		if request.ImpersonatedUser != nil && !isQuestion && request.Verb != "get" && request.Verb != "list" {
			kind = request.Verb + " an object"
		}
		if request.IsDryRun() {
			kind += " in a dry run"
		}
		counts[kind]++
	}
	return counts
}

// isOvertaken says of a patch of finalizers that it was refused because it was sent before: on
// a slow machine a second pass can come before its watch has told of what the first one wrote.
func isOvertaken(request environment.Request) bool {
	return request.Verb == "patch" && request.ObjectRef.Resource == "clusterextensions" && request.ObjectRef.Subresource == "" &&
		request.ResponseStatus.Code == http.StatusConflict
}

// compareRequests holds counts of each way against the table.
func compareRequests(t *testing.T, got map[string]map[string]int) {
	t.Helper()
	want := requestTable(t)
	for _, way := range ways {
		all := 0
		for kind, count := range got[way] {
			if kind != "watch an object" {
				all += count
			}
			least, most := want[way][kind], want[way][kind]
			if kind == stepsOfRollouts && most > 0 {
				least, most = least-1, most+maxSteps
			}
			if count < least || count > most {
				t.Errorf("%s: %d times %q, and the table in %s has it %d times", way, count, kind, requestPage, want[way][kind])
			}
		}
		for kind, count := range want[way] {
			if count > 0 && got[way][kind] == 0 && kind != allRequests {
				t.Errorf("%s: never %q, and the table in %s has it %d times", way, kind, requestPage, count)
			}
		}
		sum := 0
		for kind, count := range want[way] {
			if kind != allRequests && kind != "watch an object" {
				sum += count
			}
		}
		if sum != want[way][allRequests] {
			t.Errorf("%s: the table in %s has %d requests, and says that there are %d", way, requestPage, sum, want[way][allRequests])
		}
		t.Logf("%s: %d requests beside watches", way, all)
	}
}

const (
	requestPage    = "docs/performance.md"
	requestSection = "## Requests"

	// allRequests is the row with the sums, without watches.
	allRequests = "all but watches"

	// stepsOfRollouts are requests of which there may be maxSteps more, one for each step
	// between the first and the last that a pass happens to see, and one less, if the pods
	// are there before the pass has ended.
	stepsOfRollouts = "patch clusterextensions/status"
	maxSteps        = 3
)

// requestTable gives how often each kind of request is sent, by way and kind.
func requestTable(t *testing.T) map[string]map[string]int {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(theSuite.Root(), requestPage))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n"+requestSection+"\n")
	if !found {
		t.Fatalf("%s has no section %q", requestPage, requestSection)
	}
	table := map[string]map[string]int{}
	for _, way := range ways {
		table[way] = map[string]int{}
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != len(ways)+2 || strings.Contains(cells[0], "---") || strings.TrimSpace(cells[1]) == ways[0] {
			continue
		}
		for i, way := range ways {
			cell := strings.TrimSpace(cells[i+1])
			if cell == "" {
				continue
			}
			count, err := strconv.Atoi(cell)
			if err != nil {
				t.Fatalf("%s: %v in %s", requestPage, err, line)
			}
			table[way][strings.TrimSpace(cells[0])] = count
		}
	}
	return table
}
