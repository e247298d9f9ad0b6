package requeue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterextensions/operator-controller/internal/requeue"
)

func TestQuietly(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	told := fmt.Errorf("again: %w", &requeue.ReportedError{Err: boom})
	conflict := fmt.Errorf("error updating status: %w", apierrors.NewConflict(schema.GroupResource{}, "x", boom))
	tests := map[string]struct {
		reason  string
		result  reconcile.Result
		err     error
		stopped bool
		want    time.Duration
		wantErr error
	}{
		"success":               {reason: "as the pass says", result: reconcile.Result{RequeueAfter: time.Hour}, want: time.Hour},
		"told":                  {reason: "it was waited once already", err: told, want: 2 * time.Second},
		"told, with a time":     {reason: "something is due sooner", result: reconcile.Result{RequeueAfter: time.Second}, err: told, want: time.Second},
		"told, with a far time": {reason: "the next try is sooner", result: reconcile.Result{RequeueAfter: time.Hour}, err: told, want: 2 * time.Second},
		"terminal":              {reason: "a change brings the next pass", err: reconcile.TerminalError(told)},                                                                     //nolint:forbidigo // an input
		"terminal, with a time": {reason: "there is something else to do", result: reconcile.Result{RequeueAfter: time.Hour}, err: reconcile.TerminalError(told), want: time.Hour}, //nolint:forbidigo // an input
		"under way":             {reason: "who is waited for brings it", err: requeue.ErrUnderway},
		"under way, for a time": {reason: "there is something to tell then", result: reconcile.Result{RequeueAfter: time.Hour}, err: fmt.Errorf("x: %w", requeue.ErrUnderway), want: time.Hour},
		"conflict":              {reason: "somebody else was faster", err: conflict, want: 500 * time.Millisecond},
		"conflict that is told": {reason: "it is why the object is not as wanted", err: &requeue.ReportedError{Err: conflict}, want: 2 * time.Second},
		"stop":                  {reason: "the process ends", err: boom, stopped: true},
		"any other":             {reason: "nobody else hears of it", err: boom, wantErr: boom},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waits := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute)
			request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "x"}}
			waits.When(request)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if tt.stopped {
				stop()
			}
			got, err := requeue.Quietly(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return tt.result, tt.err
			}), waits).Reconcile(ctx, request)
			_, isTold := errors.AsType[*requeue.ReportedError](tt.err)
			isBehind := got.Priority != nil && *got.Priority == requeue.Later
			if retried := isTold && !errors.Is(tt.err, reconcile.TerminalError(nil)); isBehind != retried { //nolint:forbidigo // it asks
				t.Errorf("priority %v, behind what is new: want %t", got.Priority, retried)
			}
			if got.RequeueAfter != tt.want || !errors.Is(err, tt.wantErr) {
				t.Errorf("got %s, %v, want %s, %v: %s", got.RequeueAfter, err, tt.want, tt.wantErr, tt.reason)
			}
			if forgotten := waits.NumRequeues(request) == 0; forgotten != (tt.err == nil) {
				t.Errorf("waits are forgotten: %t", forgotten)
			}
		})
	}
}
