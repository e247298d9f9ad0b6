package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// fakeManager ends as it is told to, without waiting for what runs.
type fakeManager struct {
	ctrl.Manager

	added []manager.Runnable
	err   error
	stops time.Duration // what it takes to stop
}

func (m *fakeManager) Add(runnable manager.Runnable) error {
	m.added = append(m.added, runnable)
	return nil
}

func (m *fakeManager) Start(ctx context.Context) error {
	for _, added := range m.added {
		go func() { _ = added.Start(ctx) }()
	}
	if m.err == nil {
		<-ctx.Done()
		time.Sleep(m.stops)
		return nil
	}
	time.Sleep(time.Second)
	return m.err
}

// A session that has lost the API server or the lease is followed by another one, once all
// of it has ended. Any other failure ends the process, and so does what goes on.
func TestSession(t *testing.T) {
	t.Parallel()
	boom, refused := errors.New("boom"), errors.New("connection refused")
	leaseLost := errors.New("leader election lost")
	for name, tt := range map[string]struct {
		err     error // of the manager
		silence error // of the API server
		heals   bool  // while the manager stops
		ends    bool  // the context
		lingers time.Duration
		noLock  bool
		again   bool
		wantErr error
	}{
		"the end":                      {ends: true},
		"the lease is lost":            {err: leaseLost, again: true},
		"the API server is away":       {silence: refused, again: true},
		"it is back at the end":        {silence: refused, heals: true, again: true},
		"an error while it is away":    {err: boom, silence: refused, again: true},
		"another error":                {err: boom, wantErr: boom},
		"no rights yet":                {err: fmt.Errorf("listing: %w", apierrors.NewForbidden(leases, "x", boom)), again: true},
		"no kinds yet":                 {err: &meta.NoKindMatchError{}, again: true},
		"no kinds, and no election":    {err: &meta.NoKindMatchError{}, noLock: true, again: true},
		"an error without an election": {err: boom, noLock: true, wantErr: boom},
		"what ends late":               {err: leaseLost, lingers: shutdownTimeout / 2, again: true},
		"what does not end":            {err: leaseLost, lingers: 2 * shutdownTimeout, wantErr: errSessionStays},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.ends {
					time.AfterFunc(time.Minute, cancel)
				}
				lock := &fakeLock{err: tt.silence}
				closed := false
				var ended atomic.Bool
				s := &session{
					manager: &countingManager{Manager: &fakeManager{err: tt.err, stops: time.Minute}}, gate: &gate{},
					close: []func(){func() { closed = true }},
				}
				if !tt.noLock {
					s.lock = &contact{Interface: lock, now: time.Now}
				}
				if err := s.manager.Add(runnable(func(ctx context.Context) error {
					time.Sleep(tt.lingers)
					ended.Store(true)
					return nil
				})); err != nil {
					t.Fatal(err)
				}
				if tt.silence != nil {
					_, _, _ = s.lock.Get(ctx)
					time.AfterFunc(awayAfter, func() { _, _, _ = s.lock.Get(ctx) })
				}
				if tt.heals {
					time.AfterFunc(awayAfter+time.Second, func() {
						lock.fails(nil)
						_, _, _ = s.lock.Get(ctx)
					})
				}
				again, err := s.run(ctx)
				if again != tt.again || !errors.Is(err, tt.wantErr) || tt.wantErr == nil && err != nil {
					t.Errorf("again %t, error %v", again, err)
				}
				if !s.gate.closed.Load() || !closed || again && !ended.Load() {
					t.Errorf("the gate is closed: %t, the rest: %t, all has ended: %t", s.gate.closed.Load(), closed, ended.Load())
				}
				time.Sleep(3 * shutdownTimeout)
			})
		})
	}
}

// Nothing is started in a session that is over.
func TestNothingStartsLate(t *testing.T) {
	t.Parallel()
	below := &fakeManager{}
	m := &countingManager{Manager: below}
	if err := m.Add(runnable(func(context.Context) error {
		t.Error("it is started")
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	if !m.ended(time.Minute) {
		t.Error("it waits for what was not started")
	}
	if err := below.added[0].Start(t.Context()); err != nil {
		t.Error(err)
	}
}

// A runnable is started where it would be without being counted.
func TestCountedRunnables(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		runnable manager.Runnable
		leads    bool
	}{
		"who does not say": {runnable: runnable(func(context.Context) error { return nil }), leads: true},
		"on every replica": {runnable: onEveryReplica(func() {})},
	} {
		below := &fakeManager{}
		if err := (&countingManager{Manager: below}).Add(tt.runnable); err != nil {
			t.Fatal(err)
		}
		counted, ok := below.added[0].(manager.LeaderElectionRunnable)
		if !ok || counted.NeedLeaderElection() != tt.leads {
			t.Errorf("%s: it waits to lead, against what it says", name)
		}
	}
}

// startingServer answers for the lease and for our API, and not yet for other kinds.
func startingServer(t *testing.T, kinds http.HandlerFunc) (*process, context.Context) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/apis/olm.operatorframework.io/v1":
			return
		case !strings.Contains(r.URL.Path, "/leases"):
			kinds(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1}
	ask := questionTo(t, config)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	t.Cleanup(cancel)
	return &process{
		config: config, ask: ask, reconnect: func() {}, pauses: newPauses(),
		options: &options{leaderElect: true, systemNamespace: "ns"},
	}, ctx
}

// An API server that does not say yet what there is, or lets nobody ask, as one does that has
// just started, does not end the process.
func TestSessionsWaitForKinds(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusServiceUnavailable, http.StatusForbidden, http.StatusUnauthorized, http.StatusNotFound} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			p, ctx := startingServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api" {
					asked.Add(1)
				}
				w.WriteHeader(code)
			})
			if err := p.act(ctx); err != nil || ctx.Err() == nil {
				t.Errorf("the process ends: %v", err)
			}
			if asked.Load() < 2 {
				t.Errorf("asked %d times", asked.Load())
			}
		})
	}
}

func TestObstacleIsToldTwice(t *testing.T) {
	t.Parallel()
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	var o obstacle
	began := time.Unix(1e9, 0)
	for _, told := range []struct {
		reason string
		after  time.Duration
		want   []string // in the lines
	}{
		{"no kinds", 0, []string{`"reason"="no kinds"`}},
		{"no kinds", 20 * time.Second, nil},
		{"no rights", 40 * time.Second, []string{`"reason"="no rights"`}},
		{"no rights", obstacleStays, []string{`"error"="no rights"`}},
		{"no rights", obstacleStays + 20*time.Second, nil},
		{"no rights", time.Hour, []string{`"reason"="no rights"`}}, // after an outage
		{"no rights", time.Hour + 20*time.Second, nil},
	} {
		lines = nil
		o.tell(log, told.reason, began.Add(told.after))
		if len(lines) != len(told.want) || len(lines) == 1 && !strings.Contains(lines[0], told.want[0]) {
			t.Errorf("%s after %s: %q, want %q", told.reason, told.after, lines, told.want)
		}
	}
}

// One that never says it does not keep a process that is told to end.
func TestSessionsEndWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	p, ctx := startingServer(t, func(http.ResponseWriter, *http.Request) { <-never })
	t.Cleanup(func() { close(never) })
	began := time.Now()
	if err := p.act(ctx); err != nil || time.Since(began) > 20*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}
