package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// errSessionStays says that something of a session has not ended. The process has to,
// because nothing may go on beside the next session.
var errSessionStays = errors.New("something that was begun before the lease was lost does not end")

// errNoReason says that a manager has ended by itself. A process without one would be live
// and ready, and do nothing.
var errNoReason = errors.New("the manager has ended without a reason")

// session is the time in which the process is in touch with the API server: a manager,
// with all that it has seen of the cluster. When the lease is lost, or the API server is
// away for long or has only just started, the session ends, and another one begins from
// nothing as a process does.
type session struct {
	manager *countingManager
	gate    *gate
	lock    *contact // nil without leader election

	// close ends what no context ends.
	close []func()
}

// run returns when ctx has ended, or the session. It says whether there is to be another
// one.
func (s *session) run(ctx context.Context) (again bool, err error) {
	acting, end := context.WithCancelCause(ctx)
	defer end(nil)
	if s.lock != nil {
		s.lock.whenOver(func(err error) {
			s.gate.close()
			end(err)
		})
	}
	err = s.manager.Start(acting)
	s.end()
	reason := s.lost(acting, err)
	if ctx.Err() != nil || reason == nil && !isOfAPIServer(err) {
		return false, err
	}
	if reason == nil {
		reason = err
	}
	if !s.manager.ended(shutdownTimeout) {
		return false, errors.Join(errSessionStays, reason)
	}
	ctrl.Log.Info("what was seen of the cluster is read again", "reason", reason)
	return true, nil
}

// lost is why the lease, or the API server, was lost in a session whose manager has ended
// with err; nil if neither was. The API server may be back by then.
func (s *session) lost(acting context.Context, err error) error {
	switch {
	case acting.Err() != nil:
		return context.Cause(acting)
	case isLeaseLost(err), s.lock != nil && s.lock.isLost():
		return err
	}
	return nil
}

// end has nothing sent any more, and ends what no context ends.
func (s *session) end() {
	s.gate.close()
	for _, end := range s.close {
		end()
	}
}

// isLeaseLost says that a manager has ended because another replica may act. The manager
// has no other sign of that.
func isLeaseLost(err error) bool {
	return err != nil && strings.Contains(err.Error(), "leader election lost")
}

// countingManager knows when all that was added to it has ended. A manager that has lost
// its lease does not wait for that.
type countingManager struct {
	ctrl.Manager

	mu      sync.Mutex
	running int
	// idle is closed when nothing runs any more, and nothing is started; nil before it is
	// asked for that.
	idle chan struct{}
}

// Add implements [manager.Manager].
func (m *countingManager) Add(runnable manager.Runnable) error {
	return m.Manager.Add(&countedRunnable{Runnable: runnable, by: m})
}

// count changes the number of runnables that run, if that is still possible.
func (m *countingManager) count(change int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.idle != nil && change > 0 {
		return false
	}
	m.running += change
	if m.idle != nil && m.running == 0 {
		close(m.idle)
	}
	return true
}

// close has nothing started any more, and returns what is closed when nothing runs.
func (m *countingManager) close() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle = make(chan struct{})
	if m.running == 0 {
		close(m.idle)
	}
	return m.idle
}

// ended waits until nothing runs any more, but not for longer than that. It is called once.
func (m *countingManager) ended(within time.Duration) bool {
	select {
	case <-m.close():
		return true
	case <-time.After(within):
		return false
	}
}

type countedRunnable struct {
	manager.Runnable

	by *countingManager
}

var _ manager.LeaderElectionRunnable = &countedRunnable{}

// Start implements [manager.Runnable].
func (r *countedRunnable) Start(ctx context.Context) error {
	if !r.by.count(1) {
		return nil // the session is over
	}
	defer r.by.count(-1)
	return r.Runnable.Start(ctx)
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable], as the manager takes who
// does not.
func (r *countedRunnable) NeedLeaderElection() bool {
	says, ok := r.Runnable.(manager.LeaderElectionRunnable)
	return !ok || says.NeedLeaderElection()
}

// act has sessions one after the other until ctx ends.
func (p *process) act(ctx context.Context) error {
	for await(ctx, p.ask, p.reconnect, time.Now) {
		again, err := p.once(ctx)
		switch {
		case err != nil:
			return err
		case !again && ctx.Err() == nil:
			return errNoReason
		}
	}
	return nil
}

// once has one session. It says whether there is to be another one. Where one does not last,
// the next one waits.
func (p *process) once(ctx context.Context) (again bool, err error) {
	began := time.Now()
	s, err := p.begin(ctx)
	switch {
	case ctx.Err() != nil:
		return false, nil //nolint:nilerr // the process ends
	case isOfAPIServer(err):
		p.obstacle.tell(ctrl.Log, err.Error(), time.Now())
		again = true
	case err != nil:
		return false, err
	default:
		p.obstacle = obstacle{}
		again, err = s.run(ctx)
		p.metrics.reset() // they are those of who acts
		if err != nil {
			return false, fmt.Errorf("running: %w", err)
		}
	}
	if time.Since(began) > awayAfter {
		p.pauses = newPauses()
	}
	pause(ctx, p.pauses.Step())
	return again, nil
}

// obstacle is why no session can begin, as it was logged.
type obstacle struct {
	reason string
	// began and last are when there was one first, and last, without a session in between.
	began, last time.Time
	// insisted says that it was logged as an error.
	insisted bool
}

// obstacleStays is how long an API server that has just started may take to know kinds and
// rights. What it says after that, somebody has to mend.
const obstacleStays = time.Minute

// tell logs once what the API server says instead of what there is, and once more, as an
// error, if it goes on refusing. While it is away, nothing is told, and the time begins anew.
func (o *obstacle) tell(log logr.Logger, reason string, now time.Time) {
	if now.Sub(o.last) > 3*maxPause {
		*o = obstacle{began: now}
	}
	o.last = now
	if o.reason != reason {
		log.Info("the API server does not say yet what there is", "reason", reason)
	}
	o.reason = reason
	if !o.insisted && now.Sub(o.began) >= obstacleStays {
		o.insisted = true
		log.Error(errors.New(reason), "nothing is done until the API server says what there is: look at our definitions, and at the rights of this ServiceAccount")
	}
}

// begin makes a session. The API server is asked for kinds by that, without a bound in
// time; with the end of ctx the answer is not waited for.
func (p *process) begin(ctx context.Context) (*session, error) {
	type made struct {
		session *session
		err     error
	}
	done := make(chan made, 1)
	go func() {
		s, err := p.newSession(ctx)
		done <- made{s, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case m := <-done:
		return m.session, m.err
	}
}

// isOfAPIServer tells what an API server is the reason of, and may not be later, from faults
// of this program and its options. One that has just started may know neither rights nor
// kinds.
func isOfAPIServer(err error) bool {
	if isUnreachable(err) || meta.IsNoMatchError(err) || discovery.IsGroupDiscoveryFailedError(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return true
	default:
		return code >= http.StatusTooManyRequests
	}
}

// isUnreachable says that a request has got no answer.
func isUnreachable(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

// maxPause is the longest one between two sessions.
const maxPause = 10 * time.Second

// newPauses are those between sessions that do not last.
func newPauses() wait.Backoff {
	return wait.Backoff{Duration: probeInterval, Factor: 2, Steps: 10, Cap: maxPause}
}

// pause waits, but not for longer than ctx.
func pause(ctx context.Context, span time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(span):
	}
}
