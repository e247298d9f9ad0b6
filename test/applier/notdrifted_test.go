package applier_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestUpgradeReadsOnlyWhatIsNotKnown has two objects, of which the next version
// changes one. Nobody else touches that one.
func TestUpgradeReadsOnlyWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	touch := func(t *testing.T, f *fixture) {
		t.Helper()
		live := f.live(t, "same")
		live.Data["key"] = "theirs"
		if err := admin.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		before func(t *testing.T, f *fixture)
		reads  int
		change object.Change // of the object that stays the same
	}{
		"nothing happened": {
			before: func(*testing.T, *fixture) {},
			reads:  0, change: object.Unchanged,
		},
		"somebody changed it": {
			before: func(t *testing.T, f *fixture) {
				t.Helper()
				touch(t, f)
				f.waitForChange(t)
			},
			reads: 1, change: object.Updated,
		},
		"somebody deleted it": {
			before: func(t *testing.T, f *fixture) {
				t.Helper()
				if err := admin.Delete(t.Context(), f.live(t, "same")); err != nil {
					t.Fatal(err)
				}
				f.waitForChange(t)
			},
			reads: 1, change: object.Created,
		},
		"it was changed and repaired": {
			before: func(t *testing.T, f *fixture) {
				t.Helper()
				touch(t, f)
				f.waitForChange(t)
				f.repair(t)
				f.settle(t)
			},
			reads: 0, change: object.Unchanged,
		},
		"a process that knows nothing": {
			before: func(t *testing.T, f *fixture) {
				t.Helper()
				f.restart(t)
				f.observe(t)
			},
			reads: 2, change: object.Unchanged,
		},
		"a process that has recognized it": {
			before: func(t *testing.T, f *fixture) {
				t.Helper()
				f.restart(t)
				f.observe(t)
				f.repair(t)
			},
			reads: 0, change: object.Unchanged,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "undisturbed-"+strings.ReplaceAll(name, " ", "-"))
			f.apply(t, "1.0.0", configMap("same", "1"), configMap("other", "1"))
			f.settle(t)
			tc.before(t, f)
			f.requests.take()
			result := f.apply(t, "1.1.0", configMap("same", "1"), configMap("other", "2"))
			if got := countsOf(f.requests.take())["GET content"]; got != tc.reads {
				t.Errorf("%d objects were read, want %d", got, tc.reads)
			}
			if diff := cmp.Diff(map[string]object.Change{"same": tc.change, "other": object.Updated}, changesOf(result)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if value := f.live(t, "same").Data["key"]; value != "1" {
				t.Errorf("the object has %q", value)
			}
			// What was not looked at is still watched, repaired and pruned.
			f.settle(t)
			if err := admin.Delete(t.Context(), f.live(t, "same")); err != nil {
				t.Fatal(err)
			}
			for f.live(t, "same") == nil { // a process that is no more may be the first to notice
				f.waitForChange(t)
				f.repair(t)
			}
			f.apply(t, "1.2.0", configMap("other", "2"))
			if f.live(t, "same") != nil || f.live(t, "other") == nil {
				t.Error("the wrong object was pruned")
			}
		})
	}
}

// TestUpgradeKnowsVersionsFromWatches: objects that count generations change their versions
// with each status. They are not read for that, except for CRDs. Each object is read before it is deleted: an
// annotation on the cluster can keep it.
func TestUpgradeKnowsVersionsFromWatches(t *testing.T) {
	t.Parallel()
	labelled := func(object *unstructured.Unstructured, version string) *unstructured.Unstructured {
		object = object.DeepCopy()
		object.SetLabels(map[string]string{"version": version})
		return object
	}
	definition := parse(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.versions.test}, spec: {
		group: versions.test, scope: Namespaced, names: {kind: Thing, plural: things},
		versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`)
	for name, tc := range map[string]struct {
		object  *unstructured.Unstructured
		restart bool
		reads   int // before it is changed
		dropped int // before it is deleted
	}{
		"Deployment":                     {object: selecting(t, "a"), dropped: 1},
		"Deployment, in another process": {object: selecting(t, "a"), restart: true, dropped: 1},
		"definition, and what it stores": {object: definition, reads: 1, dropped: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "versions-"+strings.ToLower(strings.NewReplacer(" ", "-", ",", "").Replace(name)))
			watched := f.restartWatched(t)
			f.apply(t, "1.0.0", labelled(tc.object, "1"))
			if tc.restart {
				watched = f.restartWatched(t)
				f.observe(t)
				f.repair(t)
			}
			f.awaitVersion(t, watched, tc.object)
			f.requests.take()
			f.apply(t, "1.1.0", labelled(tc.object, "2"))
			want := map[string]int{"GET content": tc.reads, "TRY content": 1, "PATCH content": 1}
			got := countsOf(f.requests.take())
			for kind, count := range want {
				if got[kind] != count {
					t.Errorf("%d requests are %s, want %d", got[kind], kind, count)
				}
			}
			f.awaitVersion(t, watched, tc.object)
			f.requests.take()
			f.apply(t, "1.2.0") // which drops it
			if reads := countsOf(f.requests.take())["GET content"]; reads != tc.dropped {
				t.Errorf("%d reads before it was deleted, want %d", reads, tc.dropped)
			}
		})
	}
}

// awaitVersion waits until the controllers of the cluster have handled an object, and the applier
// has handled the event of its newest version.
func (f *fixture) awaitVersion(t *testing.T, watched *handledVersions, wanted *unstructured.Unstructured) {
	t.Helper()
	f.eventually(t, "the newest version is known", func() bool {
		live := f.get(t, wanted)
		observed, hasStatus, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
		isSettled := !hasStatus && live.GetKind() != "Deployment" || observed == live.GetGeneration()
		return isSettled && watched.of(live.GetUID()) == live.GetResourceVersion()
	})
}

// handledVersions are the resource versions of objects in the events that an applier has handled.
type handledVersions struct {
	mu       sync.Mutex
	versions map[types.UID]string
}

// restartWatched is restart with an applier whose watches are recorded.
func (f *fixture) restartWatched(t *testing.T) *handledVersions {
	t.Helper()
	handled := &handledVersions{versions: map[types.UID]string{}}
	f.restartWith(t, func(config *rest.Config) { config.Wrap(handled.wrap) })
	return handled
}

func (h *handledVersions) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(req)
		if err == nil && req.URL.Query().Get("watch") != "" {
			response.Body = &watchBody{ReadCloser: response.Body, handled: h.note}
		}
		return response, err
	})
}

// note records the object of an event, which is JSON.
func (h *handledVersions) note(data []byte) {
	var event struct {
		Object metav1.PartialObjectMetadata `json:"object"`
	}
	if json.Unmarshal(data, &event) != nil || event.Object.UID == "" {
		return // such as a bookmark
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.versions[event.Object.UID] = event.Object.ResourceVersion
}

func (h *handledVersions) of(uid types.UID) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.versions[uid]
}

// watchBody calls handled with each event of a watch that its reader has handled. Each event is a
// line, and the applier handles an event before it reads the next one.
type watchBody struct {
	io.ReadCloser
	handled   func(event []byte)
	unhandled []byte // bytes of events that may not be handled yet
}

func (w *watchBody) Read(p []byte) (int, error) {
	for {
		event, rest, isComplete := bytes.Cut(w.unhandled, []byte("\n"))
		if !isComplete {
			break
		}
		w.handled(event)
		w.unhandled = rest
	}
	n, err := w.ReadCloser.Read(p)
	w.unhandled = append(w.unhandled, p[:n]...)
	return n, err
}

// TestRetryAfterRepairWritesAgain has an upgrade that fails after its first write,
// and a repair that takes that back: the objects are then known to be as they were
// left, but not by the revision that is tried again.
func TestRetryAfterRepairWritesAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "retried")
	f.apply(t, "1.0.0", configMap("a", "1"), service(t))
	f.settle(t)
	failing := service(t)
	failing.SetLabels(map[string]string{"version": "2"})
	next := f.desired("1.1.0", configMap("a", "2"), failing)
	f.requests.setStop(func(req *http.Request) error {
		if req.Method == http.MethodPatch && !isTrial(req) && strings.Contains(req.URL.Path, "/services/") {
			return errors.New("injected")
		}
		return nil
	})
	if result, err := f.applier.Apply(t.Context(), f.owner, next); err == nil || !result.Began {
		t.Fatalf("result = %+v, err = %v, want it to fail half-way", result, err)
	}
	if value := f.live(t, "a").Data["key"]; value != "2" {
		t.Fatalf("a has %q, want it written before the failure", value)
	}
	f.requests.setStop(nil)
	f.observe(t)
	f.repair(t)
	if value := f.live(t, "a").Data["key"]; value != "1" {
		t.Fatalf("a has %q, want what is installed", value)
	}
	f.apply(t, "1.1.0", next.Objects...)
	if value := f.live(t, "a").Data["key"]; value != "2" {
		t.Errorf("a has %q after the upgrade was tried again", value)
	}
}

func changesOf(result installation.Result) map[string]object.Change {
	changes := map[string]object.Change{}
	for key, change := range result.Changes {
		changes[key.Name] = change
	}
	return changes
}
