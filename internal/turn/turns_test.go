package turn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/turn"
)

// jobs are begun by name, and woken into a channel.
type jobs struct {
	turns *turn.Turns
	woken chan string
	ends  map[string]func()
}

func newJobs(places int) *jobs {
	j := &jobs{woken: make(chan string, 100), ends: map[string]func(){}}
	j.turns = turn.New(places, func(name string) { j.woken <- name })
	return j
}

// take begins a large job; the author is the first letter of its name.
func (j *jobs) take(ctx context.Context, name string) bool {
	ctx, end := j.turns.Begin(ctx, name, name[:1])
	if err := turn.Take(ctx); errors.Is(err, turn.ErrWait) {
		end()
		return false
	}
	j.ends[name] = end
	return true
}

func (j *jobs) end(name string) { j.ends[name]() }

func TestTakeTurns(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		places int
		come   []string // one after the other, as long as nobody ends
		taken  []string
		order  []string // in which the others are woken, as one ends after the other
	}{
		"as many as there are places": {places: 2, come: []string{"a1", "b1"}, taken: []string{"a1", "b1"}},
		"the others in their order":   {places: 1, come: []string{"a1", "b1", "c1"}, taken: []string{"a1"}, order: []string{"b1", "c1"}},
		"one author after the other": {
			places: 1, come: []string{"a1", "a2", "a3", "a4", "b1", "b2", "c1"}, taken: []string{"a1"},
			order: []string{"a2", "b1", "c1", "a3", "b2", "a4"},
		},
		"who asks again waits once": {places: 1, come: []string{"a1", "b1", "b1"}, taken: []string{"a1"}, order: []string{"b1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobs(test.places)
			var taken []string
			for _, name := range test.come {
				if j.take(t.Context(), name) {
					taken = append(taken, name)
				}
			}
			if !slices.Equal(taken, test.taken) {
				t.Fatalf("taken by %v, want %v", taken, test.taken)
			}
			var order []string
			for len(order) < len(test.order) {
				j.end(taken[0])
				name := <-j.woken
				if !j.take(t.Context(), name) {
					t.Fatalf("%s was woken, and has no place", name)
				}
				taken, order = append(taken[1:], name), append(order, name)
			}
			if !slices.Equal(order, test.order) {
				t.Errorf("woken: %v, want %v", order, test.order)
			}
			for _, name := range taken {
				j.end(name)
			}
			for i := range test.places {
				if name := string(rune('p' + i)); !j.take(t.Context(), name) {
					t.Errorf("a place was lost")
				}
			}
		})
	}
}

// TestNewcomersDoNotOvertake: who waits is served however many others come one by one.
func TestNewcomersDoNotOvertake(t *testing.T) {
	t.Parallel()
	j := newJobs(1)
	for _, name := range []string{"a1", "c1", "c2", "c3"} {
		j.take(t.Context(), name)
	}
	var order []string
	running := "a1"
	for i := range 4 {
		j.take(t.Context(), fmt.Sprintf("%c0", 'm'+i)) // an author who was not there before
		j.end(running)
		running = <-j.woken
		order = append(order, running)
		if !j.take(t.Context(), running) {
			t.Fatalf("%s was woken, and has no place", running)
		}
	}
	if want := []string{"c1", "m0", "c2", "n0"}; !slices.Equal(order, want) {
		t.Errorf("woken: %v, want %v", order, want)
	}
}

// TestPlacesThatAreNotNeeded go to who waits next.
func TestPlacesThatAreNotNeeded(t *testing.T) {
	t.Parallel()
	j := newJobs(1)
	j.take(t.Context(), "a")
	j.take(t.Context(), "b")
	j.take(t.Context(), "c")
	j.end("a")
	if woken := <-j.woken; woken != "b" {
		t.Fatalf("woken: %s", woken)
	}
	if j.take(t.Context(), "d") {
		t.Fatal("d has a place that is kept for b")
	}
	_, end := j.turns.Begin(t.Context(), "b", "b")
	end() // it has nothing large to do any more
	if woken := <-j.woken; woken != "c" {
		t.Fatalf("woken: %s", woken)
	}
}

// TestForget: who begins no more keeps no place, and is not woken.
func TestForget(t *testing.T) {
	t.Parallel()
	j := newJobs(1)
	for _, name := range []string{"a", "b", "c", "d"} {
		j.take(t.Context(), name)
	}
	j.turns.Forget("b")
	j.end("a")
	if woken := <-j.woken; woken != "c" {
		t.Fatalf("woken: %s", woken)
	}
	j.turns.Forget("c")
	if woken := <-j.woken; woken != "d" {
		t.Fatalf("woken: %s", woken)
	}
}

// TestTakeAgain costs no second place, and none where nobody takes turns.
func TestTakeAgain(t *testing.T) {
	t.Parallel()
	if err := turn.Take(t.Context()); err != nil {
		t.Errorf("without a job: %v", err)
	}
	turns := turn.New(1, func(string) {})
	ctx, end := turns.Begin(t.Context(), "a", "a")
	if turn.Taken(ctx) || turn.Taken(t.Context()) {
		t.Error("taken before anybody has asked")
	}
	for range 2 {
		if err := turn.Take(ctx); err != nil || !turn.Taken(ctx) {
			t.Fatal(err)
		}
	}
	end()
	end()
	other, end := turns.Begin(t.Context(), "b", "b")
	defer end()
	if err := turn.Take(other); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// TestPlacesOfKinds: each kind has its own, and a job that has one of any kind is large.
func TestPlacesOfKinds(t *testing.T) {
	t.Parallel()
	nobody := func(name string) { t.Errorf("%s is woken", name) }
	content, charts := turn.New(1, nobody), turn.NewOf(turn.Charts, 1, nobody)
	begin := func(name string) (context.Context, func()) {
		ctx, endContent := content.Begin(t.Context(), name, name)
		ctx, endChart := charts.Begin(ctx, name, name)
		return ctx, func() { endChart(); endContent() }
	}
	chart, endChart := begin("chart")
	defer endChart()
	if err := turn.TakeOf(chart, turn.Charts); err != nil || !turn.Taken(chart) {
		t.Errorf("error %v, taken: %t", err, turn.Taken(chart))
	}
	if err := turn.Take(chart); err != nil {
		t.Errorf("a chart with much content: %v", err)
	}
	large, endLarge := begin("large")
	defer endLarge()
	if err := turn.Take(large); err != nil {
		t.Errorf("much content beside a chart: %v", err)
	}
	slow, endSlow := begin("slow")
	defer func() { content.Forget("slow"); charts.Forget("slow"); endSlow() }()
	for _, take := range []error{turn.Take(slow), turn.TakeOf(slow, turn.Charts)} {
		if !errors.Is(take, turn.ErrWait) {
			t.Errorf("error %v, want that it waits", take)
		}
	}
}
