package applier_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// request is a request as it leaves the process.
type request struct {
	method string
	url    *url.URL
	header http.Header
}

func (d request) isRecord() bool {
	return strings.HasPrefix(d.url.Path+"/", "/api/v1/namespaces/"+systemNamespace+"/secrets/")
}

// isOwn says that a request is not about content, but about what belongs to the
// controller itself.
func (d request) isOwn() bool { return d.isRecord() || d.isOwnerRead() }

func (d request) isOwnerRead() bool {
	return d.method == http.MethodGet && strings.HasPrefix(d.url.Path, "/apis/olm.operatorframework.io/v1/clusterextensions/")
}

// isShared says that a request is a watch of a kind for all extensions, which is the
// controller's own. It reads what has the label of extensions, wherever that is.
func (d request) isShared() bool {
	return d.header.Get("Impersonate-User") == "" && d.method == http.MethodGet && d.isWatch() &&
		d.url.Query().Get("labelSelector") == "olm.operatorframework.io/owner-kind=ClusterExtension" &&
		!strings.Contains(d.url.Path, "/namespaces/") && !strings.Contains(d.url.Path, "/secrets")
}

func (d request) isWatch() bool { return d.url.Query().Get("watch") != "" }

// fault is what happens to a request instead of what should.
type fault func(next http.RoundTripper, req *http.Request) (*http.Response, error)

// gate notes every request that leaves, and lets one of them go wrong.
type gate struct {
	mu     sync.Mutex
	passed []request
	match  func(request) bool // nil for none
	fault  fault
	struck chan struct{}
}

func (g *gate) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		this := request{method: req.Method, url: req.URL, header: req.Header.Clone()}
		g.mu.Lock()
		g.passed = append(g.passed, this)
		strikes := g.match != nil && g.match(this)
		if strikes {
			g.match = nil
			close(g.struck)
		}
		g.mu.Unlock()
		if strikes {
			return g.fault(next, req)
		}
		return next.RoundTrip(req)
	})
}

// arm has the next request go wrong that matches; the channel is closed when it
// does.
func (g *gate) arm(match func(request) bool) (struck <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.match, g.struck = match, make(chan struct{})
	return g.struck
}

func (g *gate) sent() []request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.passed)
}

// status answers in place of the API server.
func status(code int, header http.Header) fault {
	return func(_ http.RoundTripper, req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			_, _ = io.Copy(io.Discard, req.Body)
			_ = req.Body.Close()
		}
		return &http.Response{StatusCode: code, Header: header, Body: http.NoBody, Request: req}, nil
	}
}

var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

func reset(_ http.RoundTripper, req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, errReset
}

// lost is an answer that does not arrive: what was asked for has happened.
func lost(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	response, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	return nil, errReset
}

// TestNoRequestToContentIsTheControllers takes an extension through its life while
// one kind of request after the other goes wrong, in every way. Whatever leaves,
// and whenever, is the ServiceAccount's, unless it is about a release record or watches a
// kind for all extensions.
func TestNoRequestToContentIsTheControllers(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		t.Errorf("%s %s went elsewhere, with the headers %v", req.Method, req.URL, req.Header)
	}))
	t.Cleanup(elsewhere.Close)
	tests := map[string]struct {
		fault     fault
		ofRecords bool // happens to release records too
	}{
		"unauthorized":     {fault: status(http.StatusUnauthorized, nil), ofRecords: true},
		"forbidden":        {fault: status(http.StatusForbidden, nil), ofRecords: true},
		"internal error":   {fault: status(http.StatusInternalServerError, nil), ofRecords: true},
		"try again":        {fault: status(http.StatusTooManyRequests, http.Header{"Retry-After": {"0"}}), ofRecords: true},
		"connection reset": {fault: reset, ofRecords: true},
		"answer lost":      {fault: lost, ofRecords: true},
		"another host":     {fault: status(http.StatusTemporaryRedirect, http.Header{"Location": {elsewhere.URL}})},
		"another path":     {fault: status(http.StatusFound, http.Header{"Location": {"/api/v1/namespaces/kube-system/secrets"}})},
	}
	for name, tc := range tests {
		for who, shares := range map[string]bool{"account": false, "controller": true} {
			t.Run(name+" "+who, func(t *testing.T) {
				t.Parallel()
				l := &life{
					webhookFixture: newWebhookFixture(t, "requests-"+dashed(name+" "+who)),
					gate:           &gate{fault: tc.fault},
				}
				l.shares = shares
				l.begin(t)
				l.live(t)
				if tc.ofRecords {
					l.writeRecords(t)
				}
				l.applier.Forget(l.owner.Name)
				l.check(t)
			})
		}
	}
}

// life is that of an extension whose requests go through a gate.
type life struct {
	*webhookFixture

	gate *gate
}

func (l *life) begin(t *testing.T) {
	t.Helper()
	l.restartWith(t, func(config *rest.Config) { config.Wrap(l.gate.wrap) })
}

// withTrouble has one request of an operation go wrong, and the operation be
// repeated until it succeeds, as the controller does.
func (l *life) withTrouble(t *testing.T, what string, match func(request) bool, operation func() error) {
	t.Helper()
	struck := l.gate.arm(match)
	var err error
	for range 3 {
		if err = operation(); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	select {
	case <-struck:
	case <-time.After(patience):
		t.Fatalf("%s: there was no such request", what)
	}
}

// isQuestion says whether a request asks for rights.
func (d request) isQuestion() bool { return isQuestion(d.url) }

func content(method string) func(request) bool {
	return func(d request) bool { return d.method == method && !d.isOwn() && !d.isWatch() && !d.isQuestion() }
}

func (l *life) applying(t *testing.T, version string, more ...*unstructured.Unstructured) func() error {
	t.Helper()
	return func() error {
		_, err := l.applier.Apply(t.Context(), l.owner, l.desired(version, slices.Concat(l.objects, more)...))
		return err
	}
}

func (l *life) repairing(t *testing.T) func() error {
	t.Helper()
	return func() error {
		_, err := l.applier.Repair(t.Context(), l.owner)
		return err
	}
}

// live has each kind of request to content go wrong once.
func (l *life) live(t *testing.T) {
	t.Helper()
	l.runPods(t)
	l.withTrouble(t, "asking for rights", request.isQuestion, l.applying(t, "0.9.0", configMap("a", "0")))
	l.withTrouble(t, "reading before an upgrade", content(http.MethodGet), l.applying(t, "1.0.0", configMap("a", "1")))
	l.withTrouble(t, "creating", content(http.MethodPost), l.applying(t, "1.1.0", configMap("a", "1"), configMap("b", "1")))
	l.withTrouble(t, "patching", content(http.MethodPatch), l.applying(t, "1.2.0", configMap("a", "2"), configMap("b", "1")))
	l.withTrouble(t, "deleting", content(http.MethodDelete), l.applying(t, "1.3.0", configMap("a", "2")))
	l.untilServed(t)

	l.begin(t)
	l.withTrouble(t, "reading before a repair", content(http.MethodGet), l.repairing(t))
	changed := l.webhookFixture.live(t, "a")
	changed.Data["key"] = "changed"
	if err := admin.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	l.begin(t)
	l.withTrouble(t, "repairing", content(http.MethodPatch), l.repairing(t))

	if err := admin.Delete(t.Context(), l.secret(t)); err != nil {
		t.Fatal(err)
	}
	l.begin(t)
	l.withTrouble(t, "writing a certificate", func(d request) bool {
		return content(http.MethodPatch)(d) && strings.Contains(d.url.Path, "/secrets/")
	}, l.repairing(t))
	l.inPlace(t)

	l.begin(t)
	isWatchOfConfigMaps := func(d request) bool {
		return d.isWatch() && strings.HasSuffix(d.url.Path, "/configmaps") && (l.shares || !d.isShared())
	}
	before := l.count(isWatchOfConfigMaps)
	l.withTrouble(t, "watching", isWatchOfConfigMaps, l.repairing(t))
	// Watches begin anew by themselves, or after a while if they were denied. Who watches
	// instead of the controller does so at once.
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		l.later.Add(int64(time.Minute))
		return l.count(isWatchOfConfigMaps) > before+1, l.repairing(t)()
	}); err != nil {
		t.Fatalf("watching again: %v", err)
	}
}

func (l *life) count(match func(request) bool) int {
	count := 0
	for _, d := range l.gate.sent() {
		if match(d) {
			count++
		}
	}
	return count
}

// writeRecords has requests go wrong that are the controller's own.
func (l *life) writeRecords(t *testing.T) {
	t.Helper()
	record := func(method string) func(request) bool {
		return func(d request) bool { return d.method == method && d.isRecord() }
	}
	l.begin(t)
	l.withTrouble(t, "reading records", record(http.MethodGet), func() error {
		_, err := l.applier.Observe(t.Context(), l.owner)
		return err
	})
	l.withTrouble(t, "creating a record", record(http.MethodPost), l.applying(t, "2.0.0", configMap("a", "3")))
	l.withTrouble(t, "updating a record", record(http.MethodPut), l.applying(t, "2.1.0", configMap("a", "4")))
}

// check asserts whose each request was, and that there were requests of every kind.
func (l *life) check(t *testing.T) {
	t.Helper()
	user := "system:serviceaccount:" + l.owner.Namespace + ":" + l.owner.ServiceAccount
	server, err := url.Parse(theCluster.RESTConfig().Host)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, d := range l.gate.sent() {
		if d.url.Host != server.Host {
			t.Errorf("%s %s does not go to the API server", d.method, d.url)
		}
		want := http.Header{"Impersonate-User": {user}}
		if d.isOwn() || d.isShared() {
			want = http.Header{}
		}
		got := http.Header{}
		for name, values := range d.header {
			if strings.HasPrefix(strings.ToLower(name), "impersonate") {
				got[name] = values
			}
		}
		if len(got) != len(want) || !slices.Equal(got["Impersonate-User"], want["Impersonate-User"]) {
			t.Errorf("%s %s left with %v, want %v", d.method, d.url, got, want)
		}
		switch {
		case d.isOwn():
			kinds["own"]++
		case d.isShared():
			kinds["shared watch"]++
		case d.isWatch():
			kinds["watch"]++
		default:
			kinds[d.method]++
		}
	}
	for _, kind := range []string{"own", "watch", "shared watch", http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		if kinds[kind] == 0 {
			t.Errorf("there was no %s", kind)
		}
	}
}

// TestNobodyTouchesContent: where the ServiceAccount is not fully named, content is
// neither read nor written, nor watched.
func TestNobodyTouchesContent(t *testing.T) { //nolint:tparallel // see below
	t.Parallel()
	f := newFixture(t, "nobody")
	f.apply(t, "1.0.0", configMap("a", "1"))
	for name, take := range map[string]func(*object.Owner){ //nolint:paralleltest // one process after the other
		"no name":      func(e *object.Owner) { e.ServiceAccount = "" },
		"no namespace": func(e *object.Owner) { e.Namespace = "" },
		"neither":      func(e *object.Owner) { e.Namespace, e.ServiceAccount = "", "" },
	} {
		t.Run(name, func(t *testing.T) {
			gate := &gate{}
			f.restartWith(t, func(config *rest.Config) { config.Wrap(gate.wrap) })
			nobody := f.owner
			take(&nobody)
			if _, err := f.applier.Observe(t.Context(), nobody); err != nil {
				t.Errorf("observing: %v", err)
			}
			object := configMap("a", "2")
			object.SetNamespace(f.owner.Namespace)
			if _, err := f.applier.Apply(t.Context(), nobody, f.desired("2.0.0", object)); !errors.Is(err, impersonation.ErrNoIdentity) {
				t.Errorf("applying: %v, want ErrNoIdentity", err)
			}
			if _, err := f.applier.Repair(t.Context(), nobody); !errors.Is(err, impersonation.ErrNoIdentity) {
				t.Errorf("repairing: %v, want ErrNoIdentity", err)
			}
			for _, d := range gate.sent() {
				if !d.isOwn() || d.method != http.MethodGet {
					t.Errorf("%s %s was sent", d.method, d.url)
				}
			}
		})
	}
	if got := len(f.records(t)); got != 1 {
		t.Errorf("there are %d records, want that of the install", got)
	}
	if a := f.live(t, "a"); a == nil || a.Data["key"] != "1" {
		t.Errorf("a = %v, want it as it was", a)
	}
}
