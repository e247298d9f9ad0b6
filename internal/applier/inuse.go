package applier

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
)

const (
	// usesRecheck is how long it may take until a change to custom resources that hold up
	// a deletion is told. The end of the last one is told at once, if they are watched.
	usesRecheck = 30 * time.Second

	// watchedUsesRecheck is how long what watches have told is believed.
	watchedUsesRecheck = 10 * time.Minute
)

// inUse remembers that definitions are in use, and watches for the end of that. That none
// is in use is never remembered: one could be by now.
type inUse struct {
	mu    sync.Mutex
	uses  installation.Uses
	until time.Time
	stop  context.CancelFunc

	// left is how many custom resources there are, as far as the watches have told. dated
	// says that something has changed since they were listed.
	left  int64
	dated bool
}

// remembered gives what was found last, unless it may be otherwise by now.
func (u *inUse) remembered(now time.Time) (installation.Uses, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !now.Before(u.until) {
		return installation.Uses{}, false
	}
	uses := u.uses
	uses.RecheckAfter = u.until.Sub(now)
	return uses, true
}

// follow remembers what was found, and calls changed when that may be over. It gives the
// time until it is not remembered any more, which is zero if it is not at all.
func (u *inUse) follow(ctx context.Context, now time.Time, found []listedUse, uses installation.Uses, changed func()) time.Duration {
	u.forget()
	var left int64
	watched := true
	for _, one := range found {
		left += one.Count - one.Own
		watched = watched && one.Err == nil
	}
	if left == 0 && watched {
		return 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	wait := usesRecheck
	u.uses, u.left = uses, left
	if watched {
		wait = watchedUsesRecheck
		ctx, u.stop = context.WithCancel(context.WithoutCancel(ctx)) // forget ends it
		for _, one := range found {
			go u.watch(ctx, one, changed)
		}
	}
	u.until = now.Add(wait)
	return wait
}

// forget ends the watches.
func (u *inUse) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stop != nil {
		u.stop()
	}
	u.uses, u.until, u.stop, u.left, u.dated = installation.Uses{}, time.Time{}, nil, 0, false
}

// watch counts along until nothing is left, or it is not known what is.
func (u *inUse) watch(ctx context.Context, one listedUse, changed func()) {
	events, err := one.by.Resource(one.resource).Watch(ctx, metav1.ListOptions{ResourceVersion: one.version, AllowWatchBookmarks: true})
	if err != nil {
		u.outdate(ctx, changed)
		return
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-events.ResultChan():
			switch {
			case !open || event.Type == watch.Error:
				u.outdate(ctx, changed)
				return
			case u.count(ctx, event.Type):
				changed()
			case isTold(event):
				u.outdate(ctx, changed)
			}
		}
	}
}

// isTold says that a message about custom resources reads otherwise after an event: there is
// one more or less, or one waits for its finalizers.
func isTold(event watch.Event) bool {
	object, isObject := event.Object.(metav1.Object)
	return event.Type == watch.Added || event.Type == watch.Deleted ||
		event.Type == watch.Modified && isObject && object.GetDeletionTimestamp() != nil
}

// count reports whether nothing is left.
func (u *inUse) count(ctx context.Context, happened watch.EventType) (isOver bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	switch happened {
	case watch.Added:
		u.left++
	case watch.Deleted:
		u.left--
	case watch.Modified, watch.Bookmark, watch.Error:
		return false
	}
	if u.left > 0 {
		return false
	}
	u.until = time.Time{}
	return true
}

// outdate has the custom resources listed again before long. However often it is called
// until then, that is once.
func (u *inUse) outdate(ctx context.Context, changed func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dated || ctx.Err() != nil {
		return
	}
	u.dated = true
	go func() {
		select {
		case <-ctx.Done():
		case <-time.After(usesRecheck):
			u.expire(ctx)
			changed()
		}
	}()
}

func (u *inUse) expire(ctx context.Context) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() == nil {
		u.until = time.Time{}
	}
}
