package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/clusterextensions/operator-controller/internal/leadership"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func TestIsAway(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"an answer":            {},
		"no connection":        {err: errors.New("connection refused"), want: true},
		"no answer in time":    {err: context.DeadlineExceeded, want: true},
		"its database is away": {err: apierrors.NewInternalError(errors.New("etcdserver: no leader")), want: true},
		"it starts":            {err: apierrors.NewServiceUnavailable("starting"), want: true},
		"it is overloaded":     {err: apierrors.NewTooManyRequests("later", 1), want: true},
		"no such lease":        {err: apierrors.NewNotFound(leases, leadership.Lock)},
		"no right to it":       {err: apierrors.NewForbidden(leases, leadership.Lock, errors.New("no"))},
		"unknown token":        {err: apierrors.NewUnauthorized("expired")},
		"another replica won":  {err: apierrors.NewConflict(leases, leadership.Lock, errors.New("modified"))},
	} {
		if got := isAway(tt.err); got != tt.want {
			t.Errorf("%s: away is %t", name, got)
		}
	}
}

// fakeLock answers with an error, or not.
type fakeLock struct {
	resourcelock.Interface

	mu     sync.Mutex
	err    error
	asked  int
	holder string
	// written is called when the lease is written; nil for nothing.
	written func()
}

// fails has the lock answer with an error from now on.
func (l *fakeLock) fails(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, l.err
}

func (l *fakeLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	if l.written != nil {
		l.written()
	}
	return l.err
}

func (*fakeLock) Identity() string { return "me" }

// The API server is away when every answer has failed for some time, and not before.
func TestContact(t *testing.T) {
	t.Parallel()
	refused := errors.New("connection refused")
	now := time.Unix(0, 0)
	var away error
	lock := &fakeLock{}
	c := &contact{Interface: lock, now: func() time.Time { return now }}
	c.whenOver(func(err error) { away = err })
	for i, step := range []struct {
		wait       time.Duration
		err        error
		lost, away bool
	}{
		{err: nil},
		{wait: time.Hour, err: refused, lost: true},
		{wait: awayAfter - time.Second, err: refused, lost: true},
		{wait: time.Second, err: apierrors.NewConflict(leases, leadership.Lock, refused)},
		{wait: time.Hour, err: refused, lost: true},
		{wait: awayAfter, err: refused, lost: true, away: true},
	} {
		now, lock.err = now.Add(step.wait), step.err
		if i%2 == 0 {
			_ = c.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "other"})
		} else {
			_, _, _ = c.Get(t.Context())
		}
		if c.isLost() != step.lost || (away != nil) != step.away {
			t.Errorf("step %d: lost %t, away %v", i, c.isLost(), away)
		}
	}
}

// TestRefusedLeaseIsToldOnce: who elects a leader tries every second.
func TestRefusedLeaseIsToldOnce(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(leases, leadership.Lock, errors.New("no"))
	var logged bytes.Buffer
	lock := &fakeLock{}
	c := &contact{Interface: lock, now: time.Now, log: newLogger(&logged, 0)}
	c.whenOver(func(error) {})
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: c.Identity()}
	for i, step := range []struct {
		err  error
		told bool
	}{
		{err: forbidden, told: true},
		{err: forbidden},
		{err: errors.New("connection refused")},
		{err: forbidden},
		{err: apierrors.NewConflict(leases, leadership.Lock, errors.New("modified"))},
		{err: nil},
		{err: forbidden, told: true},
		{err: apierrors.NewUnauthorized("expired"), told: true},
	} {
		lock.fails(step.err)
		for _, err := range []error{func() error { _, _, err := c.Get(t.Context()); return err }(), c.Update(t.Context(), mine)} {
			if !errors.Is(err, step.err) {
				t.Errorf("step %d: %v, want %v", i, err, step.err)
			}
			_, isMarked := errors.AsType[refusedError](err)
			if want := apierrors.IsForbidden(step.err) || apierrors.IsUnauthorized(step.err); isMarked != want {
				t.Errorf("step %d: %v is marked as told: %t", i, err, isMarked)
			}
		}
		if got := strings.Count(logged.String(), "\n"); got > 1 || (got == 1) != step.told {
			t.Errorf("step %d: it is told %d times, want %t", i, got, step.told)
		}
		logged.Reset()
	}
}

// A leader that reads that another one has the lease ends at once, and does not give up what
// is not its own.
func TestTakenLease(t *testing.T) {
	t.Parallel()
	var over error
	lock := &fakeLock{holder: "other"}
	c := &contact{Interface: lock, now: time.Now}
	c.whenOver(func(err error) { over = err })
	read := func() {
		if _, _, err := c.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if over != nil {
		t.Fatalf("over before it has led: %v", over)
	}
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: c.Identity()}
	if err := c.Update(t.Context(), mine); err != nil || over != nil {
		t.Fatalf("leading: %v, %v", err, over)
	}
	read()
	if !errors.Is(over, errTaken) || !c.isLost() {
		t.Errorf("taken: %v", over)
	}
	lock.written = func() { t.Error("the lease of another replica is given up") }
	if err := c.Update(t.Context(), resourcelock.LeaderElectionRecord{}); !errors.Is(err, errTaken) {
		t.Errorf("given up: %v", err)
	}
}

// A leader that cannot renew its lease ends before another one can take it, and one that
// gives it up before that is said.
func TestLeaderEndsBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var over error
		lock := &fakeLock{}
		c := &contact{Interface: lock, now: time.Now}
		c.whenOver(func(err error) { over = err })
		renew := func() { _ = c.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}) }
		for range 100 {
			renew()
			time.Sleep(retryPeriod)
		}
		if over != nil || c.isLost() {
			t.Fatalf("over while the lease is renewed: %v", over)
		}
		lock.written = func() { time.Sleep(3 * time.Second) } // a slow answer
		renew()
		time.Sleep(renewDeadline - 3*time.Second)
		synctest.Wait()
		if !errors.Is(over, errNotRenewed) || !c.isLost() {
			t.Errorf("%s after the lease was last asked for: %v", renewDeadline, over)
		}

		over = nil
		lock.written = func() {
			if over == nil {
				t.Error("the lease is given up while requests are sent")
			}
		}
		_ = c.Update(t.Context(), resourcelock.LeaderElectionRecord{})
		if !errors.Is(over, errReleased) {
			t.Errorf("given up: %v", over)
		}
	})
}

// An API server that is there is asked once, and one that is away until it is back.
func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock := &fakeLock{}
		ask := func(ctx context.Context) error {
			_, _, err := lock.Get(ctx)
			return err
		}
		reconnected := 0
		reconnect := func() { reconnected++ }
		if !await(t.Context(), ask, reconnect, time.Now) {
			t.Error("no answer from an API server that is there")
		}
		if lock.asked != 1 || reconnected != 0 {
			t.Errorf("asked %d times, reconnected %d times", lock.asked, reconnected)
		}
		lock.fails(errors.New("connection refused"))
		began := time.Now()
		time.AfterFunc(time.Hour, func() { lock.fails(nil) })
		await(t.Context(), ask, reconnect, time.Now)
		if reconnected != lock.asked-2 {
			t.Errorf("asked %d times, reconnected %d times", lock.asked, reconnected)
		}
		if took := time.Since(began); took < time.Hour || took > time.Hour+probeInterval {
			t.Errorf("waited %s for an API server that was away for an hour", took)
		}
		lock.fails(errors.New("connection refused"))
		began = time.Now()
		time.AfterFunc(time.Hour, func() { lock.fails(apierrors.NewForbidden(leases, leadership.Lock, nil)) })
		await(t.Context(), ask, reconnect, time.Now)
		if took := time.Since(began) - time.Hour; took < awayAfter-probeInterval || took > awayAfter+probeInterval {
			t.Errorf("waited %s for rights", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		lock.fails(errors.New("connection refused"))
		time.AfterFunc(time.Minute, cancel)
		if await(ctx, ask, reconnect, time.Now) {
			t.Error("an answer from an API server that is away")
		}
	})
}

// questionTo asks whether an API server is there.
func questionTo(t *testing.T, config *rest.Config) func(context.Context) error {
	t.Helper()
	lock, err := newLock(config, "ns", "me", nil)
	if err != nil {
		t.Fatal(err)
	}
	ask, err := newQuestion(config, lock)
	if err != nil {
		t.Fatal(err)
	}
	return ask
}

// An API server that has a database and does not serve our API yet is away. One that lacks
// our definitions is not.
func TestQuestion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lease, api int // what is answered
		away       bool
		forbidden  bool
	}{
		"there":              {lease: http.StatusNotFound, api: http.StatusOK},
		"without a database": {lease: http.StatusInternalServerError, api: http.StatusOK, away: true},
		"without rights":     {lease: http.StatusForbidden, api: http.StatusOK, forbidden: true},
		"without our API":    {lease: http.StatusNotFound, api: http.StatusServiceUnavailable, away: true},
		"not installed":      {lease: http.StatusNotFound, api: http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "5")
				if r.URL.Path == "/apis/olm.operatorframework.io/v1" {
					w.WriteHeader(tt.api)
				} else {
					w.WriteHeader(tt.lease)
				}
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL}
			ask := questionTo(t, config)
			if err := soon(t.Context(), ask); isAway(err) != tt.away || apierrors.IsForbidden(err) != tt.forbidden {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Requests of a manager that has ended are not sent, whatever context they have.
func TestGate(t *testing.T) {
	t.Parallel()
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = append(sent, r.URL.Path) }))
	defer server.Close()
	g := &gate{}
	original := &rest.Config{Host: server.URL}
	through, err := rest.HTTPClientFor(g.behind(original))
	if err != nil {
		t.Fatal(err)
	}
	send := func(path string) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, io.NopCloser(strings.NewReader("{}")))
		if err != nil {
			t.Fatal(err)
		}
		response, err := through.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	if err := send("/before"); err != nil {
		t.Error(err)
	}
	g.close()
	if err := send("/after"); !errors.Is(err, errNoLonger) {
		t.Errorf("got error %v", err)
	}
	if len(sent) != 1 || original.WrapTransport != nil {
		t.Errorf("sent %q", sent)
	}
}
