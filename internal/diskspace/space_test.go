package diskspace_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

func isFull(err error) bool {
	_, ok := errors.AsType[*diskspace.FullError](err)
	return ok
}

// TestTake: who comes first has what is beyond the shares, and nobody the share of
// another, wherever in time they come.
func TestTake(t *testing.T) {
	t.Parallel()
	type step struct {
		who  int
		take int64
		full bool
	}
	tests := map[string]struct {
		config diskspace.Config
		steps  []step
	}{
		"as much as there is": {
			config: diskspace.Config{Bytes: 10},
			steps:  []step{{0, 4, false}, {1, 6, false}, {0, 1, true}, {2, 0, false}},
		},
		"what was refused takes nothing": {
			config: diskspace.Config{Bytes: 10},
			steps:  []step{{0, 11, true}, {1, 10, false}},
		},
		"a share stays for each": {
			config: diskspace.Config{Bytes: 10, Shares: 2, Share: 3},
			steps:  []step{{0, 7, false}, {0, 1, true}, {1, 3, false}, {1, 1, true}},
		},
		"who comes after the shares has what is left": {
			config: diskspace.Config{Bytes: 10, Shares: 2, Share: 3},
			steps:  []step{{0, 1, false}, {1, 1, false}, {2, 4, false}, {2, 1, true}, {0, 2, false}, {0, 1, true}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space := diskspace.New(test.config)
			holdings := []*diskspace.Holding{space.Hold(), space.Hold(), space.Hold()}
			unused := test.config.Bytes
			for i, step := range test.steps {
				err := holdings[step.who].Take(step.take)
				if isFull(err) != step.full || !step.full && err != nil {
					t.Fatalf("step %d: got %v, want full: %t", i, err, step.full)
				}
				if err == nil {
					unused -= step.take
				}
				if got := space.Unused(); got != unused {
					t.Errorf("step %d: %d bytes are unused, want %d", i, got, unused)
				}
			}
			for _, holding := range holdings {
				holding.Release()
				holding.Release()
			}
			if got := space.Unused(); got != test.config.Bytes {
				t.Errorf("after all was given back %d bytes are unused", got)
			}
			again := space.Hold()
			if err := again.Take(test.config.Bytes - int64(max(0, test.config.Shares-1))*test.config.Share); err != nil {
				t.Errorf("after all was given back: %v", err)
			}
			if err := again.Take(1); !isFull(err) {
				t.Errorf("beyond all: got %v, want a FullError", err)
			}
		})
	}
}

func TestResizeAndAdopt(t *testing.T) {
	t.Parallel()
	space := diskspace.New(diskspace.Config{What: "images", Bytes: 10 << 20})
	old, other := space.Hold(), space.Hold()
	old.Adopt(11 << 20)
	if !space.Full() || space.Unused() != -1<<20 {
		t.Error("what was adopted does not count")
	}
	if err := other.Take(1); !isFull(err) || err.Error() != "images may take 10 MiB on disk, and what there is leaves no space for more" {
		t.Errorf("got error %v", err)
	}
	if err := old.Resize(12 << 20); !isFull(err) {
		t.Errorf("to grow: got %v, want a FullError", err)
	}
	if err := old.Resize(9 << 20); err != nil || space.Full() {
		t.Errorf("to shrink: %v, full is %t", err, space.Full())
	}
	if err := other.Take(1 << 20); err != nil {
		t.Errorf("what fits: %v", err)
	}
	other.Give(1 << 19)
	if got := space.Unused(); got != 1<<19 {
		t.Errorf("%d bytes are unused, want those that were given back", got)
	}
	if err := errors.Join(old.Take(1<<19), other.Resize(1<<19)); err != nil || !isFull(old.Take(1)) {
		t.Errorf("what was given back is not there, or more: %v", err)
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	for size, want := range map[int64]int64{0: 4096, 1: 4096, 4096: 4096, 4097: 8192} {
		if got := diskspace.Blocks(size); got != want {
			t.Errorf("Blocks(%d) = %d, want %d", size, got, want)
		}
	}
}

// TestConcurrentHoldings have no more than there is, and all of it in the end.
func TestConcurrentHoldings(t *testing.T) {
	t.Parallel()
	space := diskspace.New(diskspace.Config{Bytes: 100, Shares: 2, Share: 10})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 1000 {
				holding := space.Hold()
				for holding.Take(7) == nil {
				}
				holding.Release()
			}
		})
	}
	group.Wait()
	last := space.Hold()
	if err := errors.Join(last.Take(90), last.Take(1)); !isFull(err) || last.Resize(90) != nil {
		t.Errorf("got %v, want 90 of 100 bytes beside a share of 10", err)
	}
}
