package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// ErrPending says that what was asked for is on its way.
var ErrPending = errors.New("on its way")

// Config is what a [Pool] is made from. All fields are required.
type Config[T any] struct {
	Limits Limits
	// Timeout bounds a fetch, from when a worker takes it up.
	Timeout time.Duration
	// Wake tells those who have asked that it is time to ask again. It must not block.
	Wake func(who string)
	// Discard is for what nobody wants any more.
	Discard func(T)
}

// Wish is something to fetch.
type Wish[T any] struct {
	// Key tells what is wanted from what else the same one may want.
	Key   string
	Party Party
	// Fetch gets it. It must end soon once its context has ended.
	Fetch func(context.Context) (T, error)
}

// Pool fetches. There is one wish of each who asks, so that what waits, and what came
// and was not taken yet, is bounded by their number. It is safe for concurrent use.
type Pool[T any] struct {
	cfg Config[T]
	// all is the context of fetches, which outlive the calls that begin them.
	all  context.Context //nolint:containedctx // see above
	stop context.CancelFunc

	mu      sync.Mutex
	tasks   map[string]*task[T] // by who has asked
	waiting []*task[T]
	running load
	group   sync.WaitGroup
}

// task is a wish of one. It waits, runs, or is done.
type task[T any] struct {
	who    string
	wish   Wish[T]
	cancel context.CancelFunc // while it runs
	done   bool
	value  T
	err    error
}

// New returns a pool, which fetches from now on and until [Pool.Start] has ended.
func New[T any](cfg Config[T]) *Pool[T] {
	p := &Pool[T]{cfg: cfg, tasks: map[string]*task[T]{}, running: newLoad()}
	p.all, p.stop = context.WithCancel(context.Background()) //nolint:forbidigo,gosec // Start ends it, and no caller is there for as long
	return p
}

// Get returns what a wish has come to, once, and otherwise ErrPending: then it is on
// its way, and who is woken when it has come to something. Another wish than before
// takes the place of that.
func (p *Pool[T]) Get(who string, wish Wish[T]) (T, error) {
	p.mu.Lock()
	known := p.tasks[who]
	if known != nil && known.wish.Key == wish.Key {
		defer p.mu.Unlock()
		if known.done {
			delete(p.tasks, who)
			return known.value, known.err
		}
		var none T
		return none, ErrPending
	}
	release := p.drop(known)
	t := &task[T]{who: who, wish: wish}
	p.tasks[who] = t
	p.waiting = append(p.waiting, t)
	p.begin()
	p.mu.Unlock()
	release()
	var none T
	return none, ErrPending
}

// Abandon is for one who wants nothing any more.
func (p *Pool[T]) Abandon(who string) {
	p.mu.Lock()
	release := p.drop(p.tasks[who])
	p.mu.Unlock()
	release()
}

// drop forgets a task, if there is one. What it returns is to be called without the
// lock.
func (p *Pool[T]) drop(t *task[T]) (release func()) {
	if t == nil {
		return func() {}
	}
	delete(p.tasks, t.who)
	switch {
	case t.done && t.err == nil:
		return func() { p.cfg.Discard(t.value) }
	case t.cancel != nil:
		t.cancel() // its worker is free when it has ended
	default:
		p.waiting = slices.DeleteFunc(p.waiting, func(other *task[T]) bool { return other == t })
	}
	return func() {}
}

// begin has workers take up what may be.
func (p *Pool[T]) begin() {
	for p.all.Err() == nil {
		parties := make([]Party, len(p.waiting))
		for i, t := range p.waiting {
			parties[i] = t.wish.Party
		}
		i := next(parties, p.running, p.cfg.Limits)
		if i < 0 {
			return
		}
		t := p.waiting[i]
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.running.add(t.wish.Party, 1)
		var ctx context.Context
		ctx, t.cancel = context.WithTimeout(p.all, p.cfg.Timeout) //nolint:gosec // work calls it
		p.group.Go(func() { p.work(ctx, t) })
	}
}

// work carries out a task and tells who waits for it.
func (p *Pool[T]) work(ctx context.Context, t *task[T]) {
	defer t.cancel()
	value, err := attempt(ctx, t.wish.Fetch)
	p.mu.Lock()
	p.running.add(t.wish.Party, -1)
	wanted := p.tasks[t.who] == t
	if wanted {
		t.done, t.value, t.err = true, value, err
	}
	p.begin()
	p.mu.Unlock()
	switch {
	case wanted && p.all.Err() == nil:
		p.cfg.Wake(t.who)
	case !wanted && err == nil:
		p.cfg.Discard(value)
	}
}

// attempt makes an error of a panic, as it is for those of a pass.
func attempt[T any](ctx context.Context, fetch func(context.Context) (T, error)) (_ T, err error) {
	defer func() {
		if r := recover(); r != nil {
			for _, handle := range utilruntime.PanicHandlers {
				handle(ctx, r)
			}
			err = fmt.Errorf("panic: %v [recovered]", r)
		}
	}()
	return fetch(ctx)
}

// Start waits for the end of ctx, ends all fetches, and returns when they have ended.
// It is for the manager of the process.
func (p *Pool[T]) Start(ctx context.Context) error {
	<-ctx.Done()
	// What has begun, has begun before this, and is waited for.
	p.mu.Lock()
	p.stop()
	p.mu.Unlock()
	p.group.Wait()
	return nil
}

// NeedLeaderElection is false: who does not lead may fetch.
func (*Pool[T]) NeedLeaderElection() bool { return false }
