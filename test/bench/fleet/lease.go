package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/leadership"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// leaseWatch tells when the lease changes hands.
type leaseWatch struct {
	watch.Interface

	// before is who had the lease at the beginning, now who has it; empty for nobody.
	before, now string
}

// watchLease begins with a lease that is there. The caller stops the watch.
func (b *bench) watchLease(ctx context.Context) (*leaseWatch, error) {
	watcher, err := b.client.Watch(ctx, &coordinationv1.LeaseList{},
		client.InNamespace(environment.SystemNamespace), client.MatchingFields{metav1.ObjectNameField: leadership.Lock})
	if err != nil {
		return nil, err
	}
	w := &leaseWatch{Interface: watcher}
	if err := w.next(ctx); err != nil {
		watcher.Stop()
		return nil, err
	}
	w.before = w.now
	return w, nil
}

// leaves returns when who had the lease has it no longer.
func (w *leaseWatch) leaves(ctx context.Context) error {
	return w.await(ctx, func() bool { return w.now != w.before })
}

// taken returns when somebody else has the lease.
func (w *leaseWatch) taken(ctx context.Context) (time.Time, error) {
	err := w.await(ctx, func() bool { return w.now != w.before && w.now != "" })
	return time.Now(), err
}

func (w *leaseWatch) await(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !done() {
		if err := w.next(ctx); err != nil {
			return fmt.Errorf("waiting for the lease to leave %q: %w", w.before, err)
		}
	}
	return nil
}

func (w *leaseWatch) next(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case event := <-w.ResultChan():
		lease, ok := event.Object.(*coordinationv1.Lease)
		if !ok {
			return errors.New("the watch of the lease ended")
		}
		w.now = ""
		if holder := lease.Spec.HolderIdentity; holder != nil {
			w.now = *holder
		}
		return nil
	}
}
