package image

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	t.Parallel()
	type read struct {
		came   int
		waited time.Duration
	}
	tests := map[string]struct {
		reason  string
		reads   []read
		tooSlow int // the read that is refused, from 1; 0 for none
	}{
		"fast":             {reason: "much in no time", reads: []read{{1 << 20, time.Second}, {1 << 20, time.Second}}},
		"just enough":      {reason: "the bound is what may be", reads: []read{{60, time.Minute}, {60, time.Minute}, {60, time.Minute}}},
		"dripping":         {reason: "never silent", reads: []read{{1, 30 * time.Second}, {1, 30 * time.Second}}, tooSlow: 2},
		"small and late":   {reason: "a window is not over", reads: []read{{1, 59 * time.Second}}},
		"silent, then not": {reason: "what comes in the same window makes up for it", reads: []read{{0, 50 * time.Second}, {60, 10 * time.Second}}},
		"fast, then slow":  {reason: "what came before says nothing about now", reads: []read{{1 << 20, time.Minute}, {59, time.Minute}}, tooSlow: 2},
		"never waited for": {reason: "slow readers are not slow registries", reads: []read{{1, 0}, {1, 0}, {1, 0}}},
		"headers":          {reason: "to be kept waiting for the first byte counts", reads: []read{{0, 40 * time.Second}, {0, 40 * time.Second}}, tooSlow: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pace{window: time.Minute, bytes: 60}
			refused := 0
			for i, r := range tt.reads {
				if err := p.add(r.came, r.waited); err != nil && refused == 0 {
					refused = i + 1
				}
			}
			if refused != tt.tooSlow {
				t.Errorf("read %d is refused, want %d: %s", refused, tt.tooSlow, tt.reason)
			}
		})
	}
}
