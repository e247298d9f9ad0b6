package platform_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/platform"
)

const (
	pathVersion      = "/version"
	pathOpenShift    = "/apis/config.openshift.io/v1/clusterversions/version"
	pathOpenShiftAPI = "/apis/config.openshift.io/v1"
	pathDiscovery    = "/apis"
	pathDefinitions  = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	pathAPIServices  = "/apis/apiregistration.k8s.io/v1/apiservices"
)

// server is an API server without a network, so that a test can pass hours in
// no time.
type server struct {
	mu        sync.Mutex
	requests  []string
	answers   map[string]func(context.Context) (any, error)
	groups    map[string]apidiscoveryv2.DiscoveryFreshness
	watchers  map[string][]*io.PipeWriter
	failWatch error
}

func newServer() *server {
	s := &server{
		answers:  map[string]func(context.Context) (any, error){},
		groups:   map[string]apidiscoveryv2.DiscoveryFreshness{"first.test": apidiscoveryv2.DiscoveryFreshnessCurrent},
		watchers: map[string][]*io.PipeWriter{},
	}
	s.answer(pathVersion, map[string]any{"gitVersion": "v1.36.0"}, nil)
	s.answer(pathOpenShift, nil, notFound())
	s.answer(pathOpenShiftAPI, nil, notFound())
	s.answers["/api"] = func(context.Context) (any, error) { return s.coreDiscovery(), nil }
	s.answers[pathDiscovery] = func(context.Context) (any, error) { return s.discovery(), nil }
	return s
}

func notFound() error { return apierrors.NewNotFound(schema.GroupResource{}, "") }

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", nil)
}

// answer makes the server answer so to a path.
func (s *server) answer(path string, body any, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = func(context.Context) (any, error) { return body, err }
}

// discover makes the server give its groups to those who ask.
func (s *server) discover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[pathDiscovery] = func(context.Context) (any, error) { return s.discovery(), nil }
}

// serve adds a group with one kind, Thing. One that is stale is not available.
func (s *server) serve(group string, freshness apidiscoveryv2.DiscoveryFreshness) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups[group] = freshness
}

func (s *server) denyWatches(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failWatch = err
}

// ring tells who watches the path of a change.
func (s *server) ring(path string) {
	s.mu.Lock()
	watchers := slices.Clone(s.watchers[path])
	s.mu.Unlock()
	for _, watcher := range watchers {
		send(watcher, "MODIFIED", nil)
	}
}

// watching counts who watches the path, or has done so.
func (s *server) watching(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watchers[path])
}

// take gives the requests since the last call, without the watches.
func (s *server) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.requests
	s.requests = nil
	return taken
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	watched := append(grantPaths(), pathDefinitions, pathAPIServices)
	if r.URL.Query().Get("watch") != "" || slices.Contains(watched, r.URL.Path) {
		return s.watch(r)
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	answer := s.answers[r.URL.Path]
	s.mu.Unlock()
	if answer == nil {
		return nil, fmt.Errorf("unexpected request for %s", r.URL.Path)
	}
	body, err := answer(r.Context())
	return respond(r, body, err), nil
}

func respond(r *http.Request, body any, err error) *http.Response {
	code := http.StatusOK
	if err != nil {
		status := err.(apierrors.APIStatus).Status() //nolint:forcetypeassert // we made it
		status.APIVersion, status.Kind = "v1", "Status"
		code, body = int(status.Code), status
	}
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	contentType := "application/json"
	if _, ok := body.(apidiscoveryv2.APIGroupDiscoveryList); ok {
		contentType += ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	}
	return &http.Response{
		StatusCode: code,
		Header:     http.Header{"Content-Type": {contentType}},
		Body:       io.NopCloser(strings.NewReader(string(data))),
		Request:    r,
	}
}

func (s *server) watch(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failWatch != nil {
		return respond(r, nil, s.failWatch), nil
	}
	if r.URL.Query().Get("sendInitialEvents") != "true" {
		return nil, fmt.Errorf("unexpected request for %s", r.URL)
	}
	reader, writer := io.Pipe()
	s.watchers[r.URL.Path] = append(s.watchers[r.URL.Path], writer)
	context.AfterFunc(r.Context(), func() { reader.CloseWithError(r.Context().Err()) })
	go send(writer, "BOOKMARK", map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"application/json;stream=watch"}},
		Body:       reader,
		Request:    r,
	}, nil
}

func send(to io.Writer, event string, annotations map[string]string) {
	data, err := json.Marshal(map[string]any{"type": event, "object": metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Name: "any", ResourceVersion: "1", Annotations: annotations},
	}})
	if err != nil {
		panic(err)
	}
	// It fails if nobody watches any more.
	_, _ = to.Write(data)
}

func (s *server) discovery() apidiscoveryv2.APIGroupDiscoveryList {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list apidiscoveryv2.APIGroupDiscoveryList
	for group, freshness := range s.groups {
		version := apidiscoveryv2.APIVersionDiscovery{Version: "v1", Freshness: freshness}
		if freshness == apidiscoveryv2.DiscoveryFreshnessCurrent {
			version.Resources = []apidiscoveryv2.APIResourceDiscovery{resource("things", "Thing")}
		}
		list.Items = append(list.Items, apidiscoveryv2.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: group},
			Versions:   []apidiscoveryv2.APIVersionDiscovery{version},
		})
	}
	return list
}

// coreDiscovery has pods, with a subresource that has a kind of its own.
func (*server) coreDiscovery() apidiscoveryv2.APIGroupDiscoveryList {
	pods := resource("pods", "Pod")
	pods.Subresources = []apidiscoveryv2.APISubresourceDiscovery{{
		Subresource: "eviction", ResponseKind: &metav1.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"},
	}}
	return apidiscoveryv2.APIGroupDiscoveryList{Items: []apidiscoveryv2.APIGroupDiscovery{{
		Versions: []apidiscoveryv2.APIVersionDiscovery{{
			Version:   "v1",
			Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
			Resources: []apidiscoveryv2.APIResourceDiscovery{pods},
		}},
	}}}
}

func resource(name, kind string) apidiscoveryv2.APIResourceDiscovery {
	return apidiscoveryv2.APIResourceDiscovery{
		Resource:     name,
		ResponseKind: &metav1.GroupVersionKind{Kind: kind},
		Scope:        apidiscoveryv2.ScopeCluster,
	}
}

// world is a Platform that runs on a server.
type world struct {
	*server
	*platform.Platform

	changes  atomic.Int64
	regrants atomic.Int64
}

// in runs a test in a time of its own.
func in(t *testing.T, s *server, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{server: s}
		w.Platform = newPlatform(t, platform.Config{
			REST:       &rest.Config{Host: "http://cluster.test", QPS: -1},
			HTTPClient: &http.Client{Transport: s},
			Changed:    func() { w.changes.Add(1) },
			Regranted:  func() { w.regrants.Add(1) },
		})
		test(t, w)
	})
}

// newPlatform runs a Platform until the test ends.
func newPlatform(t *testing.T, config platform.Config) *platform.Platform {
	t.Helper()
	p, err := platform.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p
}

// serves fails the test while it is not known what is served.
func (w *world) serves(t *testing.T, group string) bool {
	t.Helper()
	serves, err := w.APIs()
	if err != nil {
		t.Fatal(err)
	}
	return serves(group, "v1", "Thing")
}

// reads counts the reads of discovery since the last count.
func (w *world) reads() int {
	return len(slices.DeleteFunc(w.take(), func(request string) bool { return request != "GET "+pathDiscovery }))
}
