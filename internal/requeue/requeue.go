// Package requeue decides how a work queue hears of the end of a pass, and of what
// calls for the next one.
//
// The queue of controller-runtime logs each error of a pass as one of the program,
// with a stack. Most of them are none: what stands in the way of an object is told in
// its status, somebody else was faster to write it, or the process stops. They go in,
// and when to make the next pass comes out. All other errors stay as they are.
package requeue

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// conflictWait is for the cache to see what somebody else has written.
const conflictWait = 500 * time.Millisecond

// ErrUnderway says that a pass has ended for what it waits for to go on without it. It
// has neither failed nor succeeded, and whoever is waited for brings the next pass.
var ErrUnderway = errors.New("under way")

// ReportedError is why an object is not as wanted, which those whom it concerns have been
// told. It is tried again.
type ReportedError struct{ Err error }

func (e *ReportedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ReportedError) Unwrap() error { return e.Err }

// Waits are how long to wait with the next pass after a [ReportedError]. They are forgotten
// after a pass that succeeds.
type Waits interface {
	When(request reconcile.Request) time.Duration
	Forget(request reconcile.Request)
}

// Quietly returns a reconciler that makes the passes of next. After a [ReportedError] the
// next pass comes when waits say, behind what is new, and they are forgotten with the first
// pass that succeeds; the sooner one counts if next names a time as well. After a terminal
// error, and after [ErrUnderway], there is none, unless next names a time. Waits are not to
// be those of the queue, which forgets them on its own.
func Quietly(next reconcile.Reconciler, waits Waits) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := next.Reconcile(ctx, req)
		switch {
		case err == nil:
			waits.Forget(req)
			return result, nil
		case ctx.Err() != nil:
			return reconcile.Result{}, nil //nolint:nilerr // the process stops
		case errors.Is(err, ErrUnderway), errors.Is(err, reconcile.TerminalError(nil)): //nolint:forbidigo // it asks, and does not decide
			return result, nil
		case isTold(err):
			return reconcile.Result{RequeueAfter: sooner(waits.When(req), result.RequeueAfter), Priority: new(Later)}, nil
		case apierrors.IsConflict(err):
			return reconcile.Result{RequeueAfter: conflictWait}, nil
		}
		return reconcile.Result{}, err
	})
}

func isTold(err error) bool {
	_, ok := errors.AsType[*ReportedError](err)
	return ok
}

// sooner of two waits, of which the second may be none.
func sooner(wait, other time.Duration) time.Duration {
	if other > 0 {
		return min(wait, other)
	}
	return wait
}
