package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

// contentTimeout is how long a replica that has just been started may wait for the content
// of catalogs before it is ready without: others may have it no more, and nobody else can
// say so.
const contentTimeout = 2 * time.Minute

var (
	errNotReady = errors.New("the cluster has not been read yet")
	errStopping = errors.New("the process ends")
)

// probes answer for the process, also while it has no session.
type probes struct {
	live, ready healthz.Handler
}

// newProbes are those of a process that ends with ctx.
func newProbes(ctx context.Context) *probes {
	stopping := func(*http.Request) error {
		if ctx.Err() != nil {
			return errStopping
		}
		return nil
	}
	return &probes{
		live:  healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}},
		ready: healthz.Handler{Checks: map[string]healthz.Checker{"stopping": stopping}},
	}
}

// add makes the process ready only while check says nothing against it.
func (p *probes) add(name string, check healthz.Checker) {
	p.ready.Checks[name] = logChanges(name, check)
}

// server answers at an address; nil for none.
func (p *probes) server(address string) manager.Runnable {
	mux := http.NewServeMux()
	for path, handler := range map[string]http.Handler{"/healthz": &p.live, "/readyz": &p.ready} {
		mux.Handle(path, http.StripPrefix(path, handler))
		mux.Handle(path+"/", http.StripPrefix(path, handler))
	}
	return newServer("health", address, mux)
}

// readiness is what the process has come to. What it has reached once stays: without an
// API server, it serves what it has.
type readiness struct {
	store *catalogserver.Store // nil if something else serves catalogs
	now   func() time.Time

	// read is when the cluster had been read for the first time; nil before.
	read atomic.Pointer[time.Time]
	held atomic.Bool
	// catalogs reads those that there are from memory; nil before the first session.
	catalogs atomic.Pointer[client.Reader]
}

// reached is for the time when the caches of a session are filled.
func (r *readiness) reached(catalogs client.Reader) {
	r.catalogs.Store(&catalogs)
	r.read.CompareAndSwap(nil, new(r.now()))
}

// hasRead is a check for the caches.
func (r *readiness) hasRead(*http.Request) error {
	if r.read.Load() == nil {
		return errNotReady
	}
	return nil
}

// hasContent is a check for the content that the status of catalogs says is served.
func (r *readiness) hasContent(request *http.Request) error {
	if r.held.Load() {
		return nil
	}
	err := r.lacking(request.Context())
	if read := r.read.Load(); err == nil || read != nil && r.now().Sub(*read) >= contentTimeout {
		r.held.Store(true)
		return nil
	}
	return err
}

func (r *readiness) lacking(ctx context.Context) error {
	catalogs := r.catalogs.Load()
	if catalogs == nil {
		return errNotReady
	}
	lacking, err := r.store.Lacking(ctx, *catalogs)
	if err != nil || len(lacking) == 0 {
		return err
	}
	const shown = 5
	return fmt.Errorf("the content of %d catalogs is not here yet: %s", len(lacking), strings.Join(lacking[:min(shown, len(lacking))], ", "))
}

// onEveryReplica is run by a manager when its caches are filled.
type onEveryReplica func()

func (run onEveryReplica) Start(context.Context) error {
	run()
	return nil
}

func (onEveryReplica) NeedLeaderElection() bool { return false }

// logChanges logs each change of what check says. That a process which has just been
// started is not ready is not logged.
func logChanges(name string, check healthz.Checker) healthz.Checker {
	var (
		mu    sync.Mutex
		ready bool
	)
	return func(request *http.Request) error {
		err := check(request)
		mu.Lock()
		defer mu.Unlock()
		logger := ctrl.Log.WithValues("check", name)
		switch was := ready; {
		case err == nil && !was:
			logger.Info("ready")
		case err != nil && was:
			logger.Info("no longer ready", "reason", err.Error())
		case err != nil:
			logger.V(1).Info("not ready", "reason", err.Error())
		}
		ready = err == nil
		return err
	}
}
