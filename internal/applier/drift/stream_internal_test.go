package drift

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/objectlist"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestListsAreReadInPages: however many objects there are, a page of them is asked for,
// and each is looked at as it comes.
func TestListsAreReadInPages(t *testing.T) {
	t.Parallel()
	const count = 1234
	seen, pages := make(chan string, count), 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		limit, err := strconv.Atoi(query.Get("limit"))
		if err != nil || limit > 500 || query.Get("labelSelector") != "a=b" {
			t.Errorf("the list is asked for with %s", r.URL.RawQuery)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		pages++
		first, _ := strconv.Atoi(query.Get("continue"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","items":[`)
		for i := first; i < min(first+limit, count); i++ {
			comma := ","
			if i == first {
				comma = ""
			}
			fmt.Fprintf(w, `%s{"metadata":{"name":"c%d","resourceVersion":"%d"}}`, comma, i, i)
			if i != first {
				continue
			}
			// The rest is written when the first one has been looked at.
			fmt.Fprint(w, " ")
			w.(http.Flusher).Flush()
			select {
			case name := <-seen:
				if want := fmt.Sprintf("c%d", i); name != want {
					t.Errorf("%s is seen, want %s", name, want)
				}
			case <-r.Context().Done():
				t.Error("the page is not looked at as it comes")
				return
			}
		}
		next := ""
		if first+limit < count {
			next = strconv.Itoa(first + limit)
		}
		fmt.Fprintf(w, `],"metadata":{"resourceVersion":"77","continue":%q}}`, next)
	}))
	t.Cleanup(server.Close)
	clients, err := impersonation.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	last := -1
	s := &stream{
		clients:  clients,
		key:      watchKey{account: types.NamespacedName{Namespace: "ns", Name: "sa"}, resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}},
		kind:     schema.GroupKind{Kind: "ConfigMap"},
		selected: selection{labels: "a=b"},
		handle: func(s event) bool {
			number, _ := strconv.Atoi(s.version)
			if number != last+1 {
				t.Errorf("%d is seen after %d", number, last)
			}
			if last = number; number%500 == 0 {
				seen <- s.key.Name
			}
			return true
		},
		synced: func(found map[object.Key]struct{}, _ string) { listed = len(found) },
	}
	if err := s.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	if listed != count || pages != 3 || s.version != "77" {
		t.Errorf("%d objects are listed on %d pages, and the stream goes on at %q", listed, pages, s.version)
	}
}

// TestWhatAServerDoesNotKnowIsNotAskedForAgain: what is left out of the second request is all
// that the answer to the first was about.
func TestWhatAServerDoesNotKnowIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	const first = "allowWatchBookmarks=true&fieldSelector=metadata.name%3Da&labelSelector=l&resourceVersion=77&" +
		"resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true"
	const resumed = "allowWatchBookmarks=true&fieldSelector=metadata.name%3Da&labelSelector=l&resourceVersion=99&watch=true"
	for name, test := range map[string]struct {
		first  string // [first], if empty
		status int    // of the answer; zero for one in the stream
		answer string
		second string
	}{
		"a version as new as that": {
			answer: `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,` +
				`"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}}`,
			second: strings.Replace(first, "resourceVersion=77&", "", 1),
		},
		"a version as new as where it was": {
			first: resumed,
			answer: `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,` +
				`"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}}`,
			second: strings.Replace(first, "resourceVersion=77&", "", 1),
		},
		"versions of others": {
			status: http.StatusGone,
			answer: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`,
			second: strings.Replace(first, "resourceVersion=77&", "", 1),
		},
		"names of objects": {
			status: http.StatusBadRequest,
			answer: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400,"message":"field label not supported"}`,
			second: strings.NewReplacer("fieldSelector=metadata.name%3Da&", "", "resourceVersion=77&", "").Replace(first),
		},
		"lists that are streamed": {
			status: http.StatusUnprocessableEntity,
			answer: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`,
			second: "fieldSelector=metadata.name%3Da&labelSelector=l&limit=500",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				query := r.URL.Query()
				query.Del("timeoutSeconds")
				if asked = append(asked, query.Encode()); len(asked) == 2 {
					stop()
					return
				}
				w.Header().Set("Content-Type", "application/json")
				if test.status != 0 {
					w.WriteHeader(test.status)
				}
				fmt.Fprint(w, test.answer)
			}))
			t.Cleanup(server.Close)
			clients, err := impersonation.New(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			s := &stream{
				clients:  clients,
				key:      watchKey{account: types.NamespacedName{Namespace: "ns", Name: "sa"}, resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}},
				kind:     schema.GroupKind{Kind: "ConfigMap"},
				selected: selection{labels: "l", name: "a"},
				since:    "77",
				handle:   func(event) bool { return true },
				synced:   func(map[object.Key]struct{}, string) {},
			}
			if test.first == resumed {
				s.version = "99"
			}
			if err := s.run(ctx); err != nil {
				t.Errorf("it is given up: %v", err)
			}
			if want := []string{cmp.Or(test.first, first), test.second}; !slices.Equal(asked, want) {
				t.Errorf("it asks for\n%s\nand then\n%s\nwant\n%s\nand then\n%s", asked[0], asked[1], want[0], want[1])
			}
		})
	}
}

// TestEventsAreBounded has an event that does not end.
func TestEventsAreBounded(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	object := func(size int) string {
		return `{"type":"ADDED","object":{"metadata":{"name":"c","resourceVersion":"7","annotations":{"a":"` + strings.Repeat("x", size) + `"}}}}`
	}
	tests := map[string]struct {
		stream string
		seen   int
		err    error
	}{
		"as large as there are": {stream: strings.Repeat(object(3<<20), 5), seen: 5, err: io.EOF},
		"many small ones":       {stream: strings.Repeat(object(1<<10), 8<<10), seen: 8 << 10, err: io.EOF},
		"larger":                {stream: object(1) + object(64<<20) + "\n" + object(1), seen: 3, err: io.EOF},
		"larger, of no name":    {stream: object(1) + `{"type":"ADDED","object":{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 64<<20), seen: 1, err: errLargeEvent},
	}
	for name, tc := range tests { //nolint:paralleltest // it measures memory
		t.Run(name, func(t *testing.T) {
			seen := 0
			s := &stream{kind: schema.GroupKind{Kind: "ConfigMap"}, handle: func(event) bool { seen++; return true }}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := s.read(newEventReader(strings.NewReader(tc.stream)))
			runtime.ReadMemStats(&after)
			if seen != tc.seen || !errors.Is(err, tc.err) {
				t.Errorf("%d events are seen, and %v; want %d and %v", seen, err, tc.seen, tc.err)
			}
			if taken, limit := after.TotalAlloc-before.TotalAlloc, uint64(256<<20); taken > limit {
				t.Errorf("it takes %d bytes, at most %d are right", taken, limit)
			}
		})
	}
}

// TestLargeObjectsOfAListAreRefused has an object that does not end.
func TestLargeObjectsOfAListAreRefused(t *testing.T) {
	t.Parallel()
	body := `{"items":[{"metadata":{"name":"c"}},{"metadata":{"name":"` + strings.Repeat("x", 2*maxEvent) + `"}}]}`
	s := &stream{kind: schema.GroupKind{Kind: "ConfigMap"}, handle: func(event) bool { return true }}
	found := map[object.Key]struct{}{}
	if meta, err := s.readPage(strings.NewReader(body), found); !errors.Is(err, objectlist.ErrLargeObject) || meta != (metav1.ListMeta{}) || len(found) != 1 {
		t.Errorf("read %v of %d objects, err = %v", meta, len(found), err)
	}
}

// Of an API server that is away nothing is logged for each watch; what it says is.
func TestIsOfConnection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"nobody there":      {&url.Error{Op: "Get", URL: "https://api.test", Err: syscall.ECONNREFUSED}, true},
		"closed by it":      {errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=83"), true},
		"lost":              {errors.New("http2: client connection lost"), true},
		"it fails":          {apierrors.NewInternalError(errors.New("boom")), false},
		"more than we take": {errLargeEvent, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isOfConnection(test.err); got != test.want {
				t.Errorf("got %t of %v", got, test.err)
			}
		})
	}
}
