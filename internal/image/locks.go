package image

import (
	"context"
	"sync"
)

// keyedLock excludes work on the same key and lets other keys pass. A waiter
// keeps its own context: that of the holder never ends the waiter's work.
type keyedLock struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// lock waits until key is free or ctx is done. The caller calls unlock once.
func (l *keyedLock) lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		released, free := l.try(key)
		if free {
			return func() { l.unlock(key, released) }, nil
		}
		select {
		case <-released:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try takes the lock if it is free. The channel is closed on release.
func (l *keyedLock) try(key string) (released chan struct{}, free bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held, busy := l.held[key]; busy {
		return held, false
	}
	if l.held == nil {
		l.held = map[string]chan struct{}{}
	}
	released = make(chan struct{})
	l.held[key] = released
	return released, true
}

func (l *keyedLock) unlock(key string, released chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, key)
	close(released)
}
