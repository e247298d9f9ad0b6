package drift

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// server is an API server with two ConfigMaps of each extension, a and b, that were deleted
// (a) and changed (b). All is of resource version 20.
type server struct {
	host       string
	extensions int // how many there are

	mu      sync.Mutex
	asked   []string      // who watched what, from which version on
	denied  bool          // says that the controller may not watch itself
	once    bool          // says that it is denied only once
	whole   bool          // says that it has nothing but whole objects
	silent  bool          // says that initial syncs do not end
	cut     chan struct{} // ends the watches of the controller
	late    time.Duration // how long after the requests it is
	changed chan struct{} // is closed when any of this changes, and another one takes its place
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{extensions: extensions, cut: make(chan struct{}), changed: make(chan struct{})}
	serving := httptest.NewServer(s)
	t.Cleanup(serving.Close)
	s.host = serving.URL
	return s
}

// change changes what the server does.
func (s *server) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// deny takes the right of the controller away, and ends its watches if they are to notice.
func (s *server) deny(notice bool) {
	s.change(func() {
		s.denied = true
		if notice {
			close(s.cut)
			s.cut = make(chan struct{})
		}
	})
}

// now is a clock that goes on by a minute with each request.
func (s *server) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Unix(0, 0).Add(time.Duration(len(s.asked))*time.Minute + s.late)
}

// await waits until the server was asked for so many watches, and gives them sorted.
func (s *server) await(t *testing.T, count int) []string {
	t.Helper()
	for {
		s.mu.Lock()
		asked, changed := slices.Sorted(slices.Values(s.asked)), s.changed
		s.mu.Unlock()
		if len(asked) >= count {
			return asked
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("watches are asked for by %v", asked)
		}
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	user, query := strings.TrimPrefix(req.Header.Get("Impersonate-User"), "system:serviceaccount:ns:"), req.URL.Query()
	s.change(func() {
		s.asked = append(s.asked, strings.TrimSpace(fmt.Sprint(user, " ", req.URL.Path, " ", query.Get("resourceVersion"))))
	})
	s.mu.Lock()
	denied, cut := s.denied && user == "", s.cut
	if denied && s.once {
		s.denied = false
	}
	unknown := s.whole && !strings.HasSuffix(req.Header.Get("Accept"), ",application/json")
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if denied {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		return
	}
	if unknown {
		w.WriteHeader(http.StatusNotAcceptable)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotAcceptable","code":406}`)
		return
	}
	if query.Get("sendInitialEvents") != "" {
		for i := range s.extensions {
			if name := extension(i); user == "" || user == name || user == everybody {
				fmt.Fprintf(w, `{"type":"ADDED","object":{"metadata":{"namespace":"ns","name":"b-%s","uid":"changed","resourceVersion":"19","labels":{%q:%q}}}}`+"\n",
					name, object.LabelOwnerName, name)
			}
		}
		s.waitWhile(req, func() bool { return s.silent })
		fmt.Fprint(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"20","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n")
	}
	w.(http.Flusher).Flush()
	if user != "" {
		cut = nil
	}
	select {
	case <-cut:
	case <-req.Context().Done():
	}
}

// waitWhile returns when something holds no more.
func (s *server) waitWhile(req *http.Request, holds func() bool) {
	for {
		s.mu.Lock()
		still, changed := holds(), s.changed
		s.mu.Unlock()
		if !still {
			return
		}
		select {
		case <-changed:
		case <-req.Context().Done():
			return
		}
	}
}

const (
	// extensions is how many there are on the server, unless it says otherwise.
	extensions = 20

	// everybody is the ServiceAccount of extensions that have the same one.
	everybody = "everybody"
)

func extension(i int) string { return fmt.Sprintf("x%02d", i) }

func ownerOf(name string) object.Owner {
	return object.Owner{Name: name, Namespace: "ns", ServiceAccount: name}
}

func itemsOf(resource, name string) []object.Item {
	var items []object.Item
	for _, key := range keys("a-"+name, "b-"+name) {
		key.Kind = resource
		items = append(items, object.Item{Key: key, Mapping: &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}}})
	}
	return items
}

// newSharing are watches over the server with the states of all extensions.
func newSharing(t *testing.T, server *server) (*Watches, map[string]*State) {
	t.Helper()
	clients, err := impersonation.New(&rest.Config{Host: server.host})
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]*State{}
	for i := range server.extensions {
		states[extension(i)] = NewState()
	}
	watches := NewWatches(Config{Clients: clients, Find: func(name string) *State { return states[name] }, Changed: func(string) {}, Now: server.now})
	t.Cleanup(watches.Close)
	return watches, states
}

// look has an extension watched as after a restart, and checks what it is told.
func look(t *testing.T, watches *Watches, state *State, name string) {
	t.Helper()
	lookAs(t, watches, state, ownerOf(name), "configmaps")
}

func lookAs(t *testing.T, watches *Watches, state *State, owner object.Owner, resource string) {
	t.Helper()
	name := owner.Name
	items := itemsOf(resource, name)
	prints := map[object.Key]object.Fingerprint{}
	for _, item := range items {
		prints[item.Key] = object.Fingerprint{UID: "before", ResourceVersion: "1"}
	}
	done := state.BeginInitialSync(prints, false)
	if !watches.Watch(owner, items, AtLeast("10")) {
		t.Errorf("%s: it is not told of all", name)
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Errorf("%s: there is no end", name)
		return
	}
	state.EndInitialSync(time.Now())
	if drifted, all := state.ToLookAt(time.Now()); all || len(drifted) != 2 {
		t.Errorf("%s: it looks at %v, all = %t; want both objects", name, drifted, all)
	}
}

// TestSharedWatches has who asks the server for what.
func TestSharedWatches(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		denied   bool
		whole    bool
		resource string
		nobody   bool // says that the extensions do not name a ServiceAccount
		first    int  // how many requests two extensions make
		want     []string
	}{
		"granted": {resource: "configmaps", first: 1, want: []string{"/api/v1/configmaps 10"}},
		"not granted": {resource: "configmaps", denied: true, first: 3, want: []string{
			"/api/v1/configmaps 10", "x00 /api/v1/namespaces/ns/configmaps 10", "x01 /api/v1/namespaces/ns/configmaps 10", "x02 /api/v1/namespaces/ns/configmaps 10",
		}},
		"not as metadata": {resource: "configmaps", whole: true, first: 3, want: []string{
			"/api/v1/configmaps 10", "x00 /api/v1/namespaces/ns/configmaps 10", "x01 /api/v1/namespaces/ns/configmaps 10", "x02 /api/v1/namespaces/ns/configmaps 10",
		}},
		"never": {resource: "secrets", first: 2, want: []string{
			"x00 /api/v1/namespaces/ns/secrets 10", "x01 /api/v1/namespaces/ns/secrets 10", "x02 /api/v1/namespaces/ns/secrets 10",
		}},
		"nobody": {resource: "configmaps", nobody: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t)
			server.denied, server.whole = test.denied, test.whole
			watches, _ := newSharing(t, server)
			watch := func(i int) {
				owner := ownerOf(extension(i))
				if test.nobody {
					owner.ServiceAccount = ""
				}
				watches.Watch(owner, itemsOf(test.resource, owner.Name), AtLeast("10"))
			}
			watch(0)
			watch(1)
			server.await(t, test.first)
			watch(2)
			watch(0)
			asked := server.await(t, len(test.want))
			if got, want := watches.Unconfirmed(extension(0)), len(test.want) == 1; got != want {
				t.Errorf("the extension is unconfirmed: %t, want %t", got, want)
			}
			watches.Close()
			if diff := cmp.Diff(append([]string(nil), test.want...), asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhoComesLater is told what the watch has seen long ago, at no request.
func TestWhoComesLater(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	watches, states := newSharing(t, server)
	for range 2 {
		for i := range extensions {
			look(t, watches, states[extension(i)], extension(i))
			watches.Unwatch(extension(i - 1)) // the one before: somebody is always left
		}
	}
	if asked := server.await(t, 1); len(asked) != 1 {
		t.Errorf("asked for %v", asked)
	}
	watches.Unwatch(extension(extensions - 1))
	if len(watches.shared) > 0 || watches.seen.count != 0 {
		t.Errorf("without extensions, there are %d watches that remember %d objects", len(watches.shared), watches.seen.count)
	}
}

// TestWhatIsNotKnownIsRead has an extension told that its objects are not remembered: they are
// all read, by the pass that waits for them or by another one.
func TestWhatIsNotKnownIsRead(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"at the first look": true, "after an installation": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, woken := NewState(), 0
			watches := NewWatches(Config{Find: func(string) *State { return state }, Changed: func(string) { woken++ }, Now: time.Now})
			state.Settle(Left{}, Certificates{}, time.Now())
			if waits {
				done := state.BeginInitialSync(map[object.Key]object.Fingerprint{keys("a")[0]: {UID: "1"}}, false)
				defer func() {
					select {
					case <-done:
					default:
						t.Error("it is waited for")
					}
				}()
			}
			watches.handle(event{owner: "x", unknown: true})
			if _, all := state.ToLookAt(time.Now()); !all || (woken > 0) == waits {
				t.Errorf("all are looked at: %t, and the extension is woken %d times", all, woken)
			}
		})
	}
}

// TestWhatIsNotKnownIsReadAfterAllWasReported: an initial sync that is complete may still turn out
// to be of objects of which it is not known how they are.
func TestWhatIsNotKnownIsReadAfterAllWasReported(t *testing.T) {
	t.Parallel()
	state := NewState()
	watches := NewWatches(Config{Find: func(string) *State { return state }, Changed: func(string) {}, Now: time.Now})
	key := keys("a")[0]
	done := state.BeginInitialSync(map[object.Key]object.Fingerprint{key: {UID: "1"}}, false)
	watches.handle(event{owner: "x", key: key, fingerprint: object.Fingerprint{UID: "1"}})
	<-done
	watches.handle(event{owner: "x", unknown: true})
	state.EndInitialSync(time.Now())
	if _, all := state.ToLookAt(time.Now()); !all {
		t.Error("not all objects are looked at")
	}
}

// silence is an API server whose watches tell nothing.
type silence struct{}

func (silence) RoundTrip(req *http.Request) (*http.Response, error) {
	body, end := io.Pipe()
	context.AfterFunc(req.Context(), func() { _ = end.CloseWithError(req.Context().Err()) })
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: req}, nil
}

// TestWaitsAreBounded: an extension that a shared watch tells nothing reads its objects.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clients, err := impersonation.New(&rest.Config{Host: "https://api.test", Transport: silence{}})
		if err != nil {
			t.Fatal(err)
		}
		state := NewState()
		state.Settle(Left{}, Certificates{}, time.Now())
		watches := NewWatches(Config{Clients: clients, Find: func(string) *State { return state }, Changed: func(string) {}, Now: time.Now})
		defer watches.Close()
		watches.Watch(ownerOf("x"), itemsOf("configmaps", "x"), AtLeast("10"))
		for _, want := range []bool{false, true} {
			if _, all := state.ToLookAt(time.Now()); all != want {
				t.Errorf("all objects are looked at: %t, want %t", all, want)
			}
			time.Sleep(2 * maxWait)
			synctest.Wait()
		}
	})
}

// TestTheRightIsTakenAway: the extensions of a watch that is denied when it goes on are told
// of their objects by others, which are no older.
func TestTheRightIsTakenAway(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	watches, states := newSharing(t, server)
	for i := range 2 {
		look(t, watches, states[extension(i)], extension(i))
	}
	server.deny(true)
	want := []string{
		"/api/v1/configmaps 10", "/api/v1/configmaps 20", "/api/v1/configmaps 20",
		"x00 /api/v1/namespaces/ns/configmaps 20", "x01 /api/v1/namespaces/ns/configmaps 20",
	}
	if diff := cmp.Diff(want, server.await(t, len(want))); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	look(t, watches, states[extension(2)], extension(2))
	if len(watches.shared) > 0 || watches.seen.count != 0 {
		t.Errorf("%d watches are shared, which remember %d objects", len(watches.shared), watches.seen.count)
	}
}

// TestDeniedForOnce: an API server that has just started denies what it does not know of yet.
func TestDeniedForOnce(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	watches, states := newSharing(t, server)
	look(t, watches, states[extension(0)], extension(0))
	server.once = true
	server.deny(true)
	want := []string{"/api/v1/configmaps 10", "/api/v1/configmaps 20", "/api/v1/configmaps 20"}
	if diff := cmp.Diff(want, server.await(t, len(want))); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	look(t, watches, states[extension(1)], extension(1))
	if len(watches.shared) != 1 || len(watches.active) != 0 {
		t.Errorf("%d watches are shared, and %d are not", len(watches.shared), len(watches.active))
	}
}

// TestTheRightIsGranted: what was denied is tried again, at the earliest an hour later.
func TestTheRightIsGranted(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.denied = true
	watches, states := newSharing(t, server)
	look(t, watches, states[extension(0)], extension(0))
	server.await(t, 2)
	server.change(func() { server.denied, server.late = false, 50*time.Minute })
	look(t, watches, states[extension(1)], extension(1))
	want := []string{"/api/v1/configmaps 10", "x00 /api/v1/namespaces/ns/configmaps 10", "x01 /api/v1/namespaces/ns/configmaps 10"}
	if diff := cmp.Diff(want, server.await(t, len(want))); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	server.change(func() { server.late = 2 * time.Hour })
	look(t, watches, states[extension(0)], extension(0))
	look(t, watches, states[extension(1)], extension(1))
	want = append([]string{"/api/v1/configmaps 10"}, want...)
	if diff := cmp.Diff(want, server.await(t, len(want))); diff != "" {
		t.Errorf("later, asked for (-want +got):\n%s", diff)
	}
	if len(watches.active) != 0 {
		t.Errorf("%d watches are still not shared", len(watches.active))
	}
}

// TestWatchesBeginOneAfterTheOther, however many kinds were shared.
func TestWatchesBeginOneAfterTheOther(t *testing.T) {
	t.Parallel()
	watches, now := NewWatches(Config{}), time.Unix(1000, 0)
	for i := range 10 {
		if got, want := watches.untilNextStart(now), time.Duration(i)*betweenStarts; got != want {
			t.Errorf("watch %d begins after %s, want %s", i, got, want)
		}
	}
	for _, later := range []time.Duration{time.Millisecond, time.Second} {
		want := max(10*betweenStarts-later, 0)
		if got := watches.untilNextStart(now.Add(later)); got != want {
			t.Errorf("%s later, the next one begins after %s, want %s", later, got, want)
		}
	}
}

// TestManyAtATime has extensions come, go and come back while the initial sync ends, while the
// controller is denied, and while all ends.
func TestManyAtATime(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(*server, *Watches){
		"the initial sync ends":          func(s *server, _ *Watches) { s.change(func() { s.silent = false }) },
		"denied before the initial sync": func(s *server, _ *Watches) { s.deny(true) },
		"denied": func(s *server, _ *Watches) {
			s.change(func() { s.silent = false })
			s.deny(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t)
			server.silent = true
			watches, states := newSharing(t, server)
			var looking sync.WaitGroup
			for i := range extensions {
				looking.Go(func() {
					look(t, watches, states[extension(i)], extension(i))
					watches.Unwatch(extension(i))
					look(t, watches, states[extension(i)], extension(i))
				})
			}
			server.await(t, 1)
			happens(server, watches)
			server.change(func() { server.silent = false })
			looking.Wait()
		})
	}
}

// TestCloseWhileManyJoin ends all watches, whoever comes meanwhile.
func TestCloseWhileManyJoin(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	watches, _ := newSharing(t, server)
	var joining sync.WaitGroup
	for i := range extensions {
		joining.Go(func() {
			for range 10 {
				watches.Watch(ownerOf(extension(i)), itemsOf("configmaps", extension(i)), AtLeast("10"))
			}
		})
	}
	server.await(t, 1)
	watches.Close()
	joining.Wait()
	if len(watches.shared)+len(watches.active) > 0 || watches.seen.count != 0 {
		t.Errorf("%d and %d watches go on, and remember %d objects", len(watches.shared), len(watches.active), watches.seen.count)
	}
}

// TestManyExtensionsOfOneServiceAccount: as after a restart, each is told of its objects,
// however many there are. Once they are too many to be selected, nothing begins anew.
func TestManyExtensionsOfOneServiceAccount(t *testing.T) {
	t.Parallel()
	const many = 3 * maxSelected
	for name, look := range map[string]func(all *sync.WaitGroup, look func()){
		"one after the other": func(_ *sync.WaitGroup, look func()) { look() },
		"at once":             func(all *sync.WaitGroup, look func()) { all.Go(look) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t)
			server.extensions = many
			watches, states := newSharing(t, server)
			var looking sync.WaitGroup
			for i := range many {
				look(&looking, func() {
					owner := object.Owner{Name: extension(i), Namespace: "ns", ServiceAccount: everybody}
					lookAs(t, watches, states[owner.Name], owner, "secrets")
				})
			}
			looking.Wait()
			if asked := server.await(t, 1); len(asked) > maxSelected+1 {
				t.Errorf("watches began %d times, want %d at most", len(asked), maxSelected+1)
			}
			for i := range many {
				watches.Unwatch(extension(i))
			}
			if watches.seen.count > 0 || len(watches.seen.kinds) > 0 {
				t.Errorf("%d objects of %d watches are remembered when nobody is left", watches.seen.count, len(watches.seen.kinds))
			}
		})
	}
}

// TestWatchesThatAreReplacedGoNotBack has an extension come with an older version than the
// one that what it takes part in began with.
func TestWatchesThatAreReplacedGoNotBack(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.silent = true
	watches, _ := newSharing(t, server)
	for i, since := range []string{"10", "5", "15"} {
		owner := object.Owner{Name: extension(i), Namespace: "ns", ServiceAccount: everybody}
		watches.Watch(owner, itemsOf("secrets", owner.Name), AtLeast(since))
		server.await(t, i+1)
	}
	const path = everybody + " /api/v1/namespaces/ns/secrets "
	if diff := cmp.Diff([]string{path + "10", path + "10", path + "15"}, server.await(t, 3)); diff != "" {
		t.Errorf("watches (-want +got):\n%s", diff)
	}
}

// TestEventsAreToldUnderTheLock: what a watch tells cannot come after what one in its place
// has told.
func TestEventsAreToldUnderTheLock(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	clients, err := impersonation.New(&rest.Config{Host: server.host})
	if err != nil {
		t.Fatal(err)
	}
	state := NewState()
	var watches *Watches
	watches = NewWatches(Config{Clients: clients, Changed: func(string) {}, Now: time.Now, Find: func(string) *State {
		if watches.mu.TryLock() {
			watches.mu.Unlock()
			t.Error("an event is told beside whatever else happens")
		}
		return state
	}})
	t.Cleanup(watches.Close)
	lookAs(t, watches, state, ownerOf(extension(0)), "secrets")
}

// TestNewest is of versions, which may be such as cannot be compared.
func TestNewest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ one, other, want string }{
		{one: "9", other: "10", want: "10"},
		{one: "10", other: "9", want: "10"},
		{one: "9", other: "9", want: "9"},
		{one: "x", other: "x", want: "x"},
		{one: "9", other: "x"},
		{one: "9", other: ""},
		{one: "", other: "9"},
	} {
		if got := newest(test.one, test.other); got != test.want {
			t.Errorf("of %q and %q %q is the newest, want %q", test.one, test.other, got, test.want)
		}
	}
}
