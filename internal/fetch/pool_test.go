package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterextensions/operator-controller/internal/fetch"
)

// office is a pool, and what it did. It is used in a bubble: synctest.Wait returns
// when nothing goes on any more that nobody holds.
type office struct {
	pool *fetch.Pool[string]

	mu        sync.Mutex
	woken     []string
	discarded []string
	begun     []string
}

func newOffice(limits fetch.Limits) *office {
	o := &office{}
	o.pool = fetch.New(fetch.Config[string]{
		Limits: limits, Timeout: time.Minute,
		Wake:    func(who string) { o.note(&o.woken, who) },
		Discard: func(value string) { o.note(&o.discarded, value) },
	})
	return o
}

func (o *office) note(list *[]string, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*list = append(*list, text)
}

// wish is for what comes once release is closed, or at once if there is none.
func (o *office) wish(author, registry, key string, release <-chan struct{}) fetch.Wish[string] {
	return fetch.Wish[string]{
		Key: key, Party: fetch.Party{Author: author, Registry: registry},
		Fetch: func(ctx context.Context) (string, error) {
			o.note(&o.begun, key)
			if release == nil {
				return key, nil
			}
			select {
			case <-release:
				return key, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		},
	}
}

func (o *office) check(t *testing.T, what string, list *[]string, want ...string) {
	t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	slices.Sort(*list)
	if !slices.Equal(*list, want) {
		t.Errorf("%s: %v, want %v", what, *list, want)
	}
}

var small = fetch.Limits{Total: 12, PerRegistry: 3, PerAuthor: 2}

func TestWhatIsFetchedIsGivenOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(small)
		for range 2 {
			if value, err := o.pool.Get("x", o.wish("a", "r", "one", nil)); !errors.Is(err, fetch.ErrPending) {
				t.Errorf("first: %q, %v, want that it is pending", value, err)
			}
			synctest.Wait()
			if value, err := o.pool.Get("x", o.wish("a", "r", "one", nil)); value != "one" || err != nil {
				t.Errorf("then: %q, %v, want what was fetched", value, err)
			}
		}
		o.check(t, "woken", &o.woken, "x", "x")
		o.check(t, "begun", &o.begun, "one", "one")
		o.check(t, "discarded", &o.discarded)
	})
}

func TestWhileItIsOnItsWayItIsBegunOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(small)
		release := make(chan struct{})
		for range 3 {
			if _, err := o.pool.Get("x", o.wish("a", "r", "one", release)); !errors.Is(err, fetch.ErrPending) {
				t.Errorf("err = %v, want that it is pending", err)
			}
			synctest.Wait()
		}
		o.check(t, "begun", &o.begun, "one")
		o.check(t, "woken", &o.woken)
		close(release)
		o.check(t, "woken at the end", &o.woken, "x")
	})
}

// TestWhoHangsHoldsUpNobodyElse has one author and one registry with more wishes than
// there are workers, none of which ends.
func TestWhoHangsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]func(o *office, i int) fetch.Wish[string]{
		"one author, registries without end": func(o *office, i int) fetch.Wish[string] {
			return o.wish("evil", fmt.Sprint("registry-", i), fmt.Sprint("held-", i), make(chan struct{}))
		},
		"one registry, authors without end": func(o *office, i int) fetch.Wish[string] {
			return o.wish(fmt.Sprint("author-", i), "evil", fmt.Sprint("held-", i), make(chan struct{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(small)
				for i := range 20 {
					_, _ = o.pool.Get(fmt.Sprint("evil-", i), held(o, i))
				}
				synctest.Wait()
				for i := range 20 {
					who := fmt.Sprint("good-", i)
					_, _ = o.pool.Get(who, o.wish("good", "good", who, nil))
					synctest.Wait()
					if value, err := o.pool.Get(who, o.wish("good", "good", who, nil)); value != who || err != nil {
						t.Errorf("%s: %q, %v, want what was fetched", who, value, err)
					}
				}
				for i := range 20 {
					o.pool.Abandon(fmt.Sprint("evil-", i))
				}
				synctest.Wait()
			})
		})
	}
}

func TestAnotherWishTakesItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(small)
		_, _ = o.pool.Get("x", o.wish("a", "r", "old", make(chan struct{}))) // would never end
		synctest.Wait()
		_, _ = o.pool.Get("x", o.wish("a", "r", "new", nil))
		o.check(t, "woken", &o.woken, "x")
		if value, err := o.pool.Get("x", o.wish("a", "r", "new", nil)); value != "new" || err != nil {
			t.Errorf("got %q, %v, want what is wanted now", value, err)
		}
	})
}

func TestAbandon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(fetch.Limits{Total: 1, PerRegistry: 1, PerAuthor: 1})
		release := make(chan struct{})
		stubborn := o.wish("a", "r", "running", nil)
		stubborn.Fetch = func(context.Context) (string, error) { <-release; return "late", nil }
		_, _ = o.pool.Get("running", stubborn)
		_, _ = o.pool.Get("waiting", o.wish("b", "q", "waiting", nil))
		synctest.Wait()
		o.pool.Abandon("nobody")
		o.pool.Abandon("waiting")
		o.pool.Abandon("running")
		close(release)
		o.check(t, "discarded", &o.discarded, "late")

		_, _ = o.pool.Get("done", o.wish("a", "r", "done", nil))
		synctest.Wait()
		o.pool.Abandon("done")
		o.check(t, "discarded", &o.discarded, "done", "late")
		o.check(t, "woken", &o.woken, "done")
		o.check(t, "begun", &o.begun, "done")
	})
}

func TestFailures(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	tests := map[string]struct {
		fetch func(context.Context) (string, error)
		want  string
	}{
		"an error": {fetch: func(context.Context) (string, error) { return "", boom }, want: "boom"},
		"a panic":  {fetch: func(context.Context) (string, error) { panic("oh") }, want: "panic: oh [recovered]"},
		"for ever": {fetch: func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, want: "context deadline exceeded"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(small)
				wish := fetch.Wish[string]{Key: "k", Fetch: tt.fetch}
				_, _ = o.pool.Get("x", wish)
				time.Sleep(2 * time.Minute) // of the bubble
				if _, err := o.pool.Get("x", wish); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("err = %v, want %q", err, tt.want)
				}
				o.check(t, "woken", &o.woken, "x")
				o.check(t, "discarded", &o.discarded)
			})
		})
	}
}

// TestTheEndOfTheProcess ends what is on its way, and wakes nobody.
func TestTheEndOfTheProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(small)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.pool.Start(ctx) }()
		for i := range 20 {
			_, _ = o.pool.Get(fmt.Sprint(i), o.wish("a", "r", "k", make(chan struct{})))
		}
		synctest.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		o.check(t, "begun", &o.begun, "k", "k")
		o.check(t, "woken", &o.woken)
	})
}

// TestTheEndOfTheProcessMeetsABeginning has the process end at the moment of the first
// fetch, which either has ended by then or never begins. The race detector looks on.
func TestTheEndOfTheProcessMeetsABeginning(t *testing.T) {
	t.Parallel()
	for range 200 {
		o := newOffice(small)
		var running atomic.Int32
		wish := o.wish("a", "r", "k", nil)
		fetch := wish.Fetch
		wish.Fetch = func(ctx context.Context) (string, error) {
			running.Add(1)
			defer running.Add(-1)
			return fetch(ctx)
		}
		ctx, stop := context.WithCancel(t.Context())
		go stop()
		go func() { _, _ = o.pool.Get("x", wish) }()
		if err := o.pool.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if got := running.Load(); got != 0 {
			t.Fatalf("%d fetches run after the end", got)
		}
	}
}
