package turn

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

// ErrWait says that a job has to end, and is to begin again when it is woken.
var ErrWait = errors.New("waits for other large ones")

// Kind is what is large about a job. Each kind has places of its own.
type Kind int

const (
	// Content has much content.
	Content Kind = iota

	// Charts renders the templates of one, which may take long and is done for one at a time.
	Charts
)

// Turns are the places for large jobs of a kind. It is safe for concurrent use.
type Turns struct {
	kind Kind
	wake func(name string)

	mu      sync.Mutex
	free    int
	waiting []party // in the order in which they came
	// kept are places for those that were woken, until they have begun and ended.
	kept map[string]struct{}

	// Places are given in rounds, in each of which an author has one. This is the round,
	// and the last one that an author waits for, if that is yet to come.
	round int
	last  map[string]int
}

// party is a job and whose it is, and the round that it waits for.
type party struct {
	name, author string
	round        int
}

// New returns a number of places for [Content]. To wake somebody must not block.
func New(places int, wake func(name string)) *Turns { return NewOf(Content, places, wake) }

// NewOf does what [New] does for a kind.
func NewOf(kind Kind, places int, wake func(name string)) *Turns {
	return &Turns{kind: kind, wake: wake, free: places, kept: map[string]struct{}{}, last: map[string]int{}}
}

// jobKey is that of a job in its context, which has one of each kind at most.
type jobKey Kind

func jobOf(ctx context.Context, kind Kind) *job {
	j, _ := ctx.Value(jobKey(kind)).(*job)
	return j
}

// job is one that is under way.
type job struct {
	turns *Turns
	party party

	mu    sync.Mutex
	taken bool
}

// Begin is for a job of a name, of which there is one at a time. The end gives back its
// place, and the one that was kept for it and that it did not need.
func (t *Turns) Begin(ctx context.Context, name, author string) (_ context.Context, end func()) {
	j := &job{turns: t, party: party{name: name, author: author}}
	return context.WithValue(ctx, jobKey(t.kind), j), j.end
}

// Take is for the moment in which the job of the context turns out to be large. It fails
// with [ErrWait] if there is no place, and does nothing for a job that has one, of whatever kind, or
// where no job was begun.
func Take(ctx context.Context) error {
	if Taken(ctx) {
		return nil
	}
	return TakeOf(ctx, Content)
}

// TakeOf is [Take] for a place of a kind, whatever other one the job has.
func TakeOf(ctx context.Context, kind Kind) error {
	j := jobOf(ctx, kind)
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.taken {
		return nil
	}
	j.taken = j.turns.take(j.party)
	if !j.taken {
		return ErrWait
	}
	return nil
}

// Taken says that the job of the context has its turn as a large one, of whatever kind.
func Taken(ctx context.Context) bool {
	return jobOf(ctx, Content).isTaken() || jobOf(ctx, Charts).isTaken()
}

func (j *job) isTaken() bool {
	if j == nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.taken
}

func (j *job) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.turns.release(j.party.name, j.taken)
	j.taken = false
}

// Forget is for who begins no more.
func (t *Turns) Forget(name string) {
	t.mu.Lock()
	t.waiting = slices.DeleteFunc(t.waiting, func(p party) bool { return p.name == name })
	t.mu.Unlock()
	t.release(name, false)
}

// take gives a place, or notes who waits for one. Nobody overtakes those who wait.
func (t *Turns) take(who party) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, kept := t.kept[who.name]; kept {
		delete(t.kept, who.name)
		return true
	}
	if t.free > 0 {
		t.free--
		return true
	}
	if !slices.ContainsFunc(t.waiting, func(p party) bool { return p.name == who.name }) {
		who.round = max(t.round, t.last[who.author]) + 1
		t.last[who.author] = who.round
		t.waiting = append(t.waiting, who)
	}
	return false
}

// release is for the end of a job, with or without a place.
func (t *Turns) release(name string, taken bool) {
	t.mu.Lock()
	if _, kept := t.kept[name]; kept {
		delete(t.kept, name)
		t.free++
	}
	if taken {
		t.free++
	}
	woken := t.hand()
	t.mu.Unlock()
	for _, name := range woken {
		t.wake(name)
	}
}

// hand keeps the free places for those who wait.
func (t *Turns) hand() (woken []string) {
	for t.free > 0 && len(t.waiting) > 0 {
		i := t.next()
		chosen := t.waiting[i]
		t.waiting = slices.Delete(t.waiting, i, i+1)
		t.free--
		t.kept[chosen.name] = struct{}{}
		t.round = chosen.round
		maps.DeleteFunc(t.last, func(_ string, round int) bool { return round <= t.round })
		woken = append(woken, chosen.name)
	}
	return woken
}

// next is the first of those of the first round.
func (t *Turns) next() int {
	best := 0
	for i, p := range t.waiting {
		if p.round < t.waiting[best].round {
			best = i
		}
	}
	return best
}
