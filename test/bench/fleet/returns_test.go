package main

import (
	"testing"
	"time"
)

func TestSpreadOf(t *testing.T) {
	t.Parallel()

	since := time.Unix(1000, 0)
	after := func(seconds ...int) (times []time.Time) {
		for _, s := range seconds {
			times = append(times, since.Add(time.Duration(s)*time.Second))
		}
		return times
	}
	tests := map[string]struct {
		times []time.Time
		want  spread
	}{
		"one":                  {times: after(3), want: spread{3 * time.Second, 3 * time.Second, 3 * time.Second}},
		"several, in no order": {times: after(9, 1, 4), want: spread{1 * time.Second, 4 * time.Second, 9 * time.Second}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := spreadOf(tc.times, since); got != tc.want {
				t.Errorf("spread is %v, want %v", got, tc.want)
			}
		})
	}
}
