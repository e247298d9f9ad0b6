//go:build linux

package node_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/node"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// history is what a condition was, each value once, in order.
type history struct {
	mu     sync.Mutex
	values []string
	end    func()
}

// follow reads a condition ten times a second.
func follow(t *testing.T, extension, kind string) *history {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	h := &history{}
	var following sync.WaitGroup
	following.Go(func() {
		for ctx.Err() == nil {
			if got, err := condition(ctx, extension, kind); err == nil && got != "" {
				h.add(got)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	h.end = func() { cancel(); following.Wait() }
	t.Cleanup(h.end)
	return h
}

func (h *history) add(value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.values) == 0 || h.values[len(h.values)-1] != value {
		h.values = append(h.values, value)
	}
}

// all ends the following, and gives what there was.
func (h *history) all() []string {
	h.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.values
}

func (h *history) had(prefix string) bool {
	for _, value := range h.all() {
		if strings.HasPrefix(value, prefix) {
			return true
		}
	}
	return false
}

// causeTime is how long it may take until status names the cause: as long as kubelet
// takes until it waits between restarts.
const causeTime = 45 * time.Second

// soon is nil once a condition contains all parts.
func soon(t *testing.T, extension, kind string, parts []string) (err error) {
	t.Helper()
	for began := time.Now(); time.Since(began) < causeTime; time.Sleep(200 * time.Millisecond) {
		var got string
		if got, err = condition(t.Context(), extension, kind); err == nil {
			err = containsAll(got, parts)
		}
		if err == nil {
			return nil
		}
	}
	return err
}

// TestUnavailable has operators that do not run, each in its way. Status says so, with
// the cause, and is never Ready; a version that runs mends it.
//
//nolint:paralleltest,tparallel // the tests share one controller, and some stop it
func TestUnavailable(t *testing.T) {
	needNode(t)
	for name, test := range map[string]struct {
		change func(*operator.Variant)
		want   []string // of Available
	}{
		"pull": {
			func(v *operator.Variant) { v.Image = node.Image("nobody-pushed-this", "v1") },
			[]string{"False", "ImagePull"},
		},
		"crash": {
			func(v *operator.Variant) { v.Environment = map[string]string{"EXIT_AFTER": "100ms"} },
			[]string{"False", "CrashLoopBackOff"},
		},
		"later": { // dies after it was ready
			func(v *operator.Variant) { v.Environment = map[string]string{"EXIT_AFTER": "2s"} },
			[]string{"False", "CrashLoopBackOff"},
		},
		"stuck": {
			func(v *operator.Variant) {
				v.Environment, v.ProgressDeadline = map[string]string{"READY_AFTER": "1h"}, 5
			},
			[]string{"False", "timed out progressing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			offer(t, name, func(version string, variant *operator.Variant) {
				if version == "1.0.0" {
					test.change(variant)
				}
			}, "1.0.0", "1.1.0")
			extend(t, name, "1.0.0")
			seen := follow(t, name, ocv1.TypeReady)
			becomes(t, name, ocv1.TypeAvailable, "False")
			if err := soon(t, name, ocv1.TypeAvailable, test.want); err != nil {
				t.Errorf("Available: %v", err)
			}
			if seen.had("True") {
				t.Errorf("Ready was %q", seen.all())
			}
			upgrade(t, name, "1.1.0")
			ready(t, name, "1.1.0")
			runs(t, name, "1.1.0")
		})
	}
}

// TestSlowReadiness has an operator that takes ten seconds until it is ready, and status
// that does not say so before.
//
//nolint:paralleltest // the tests share one controller, and some stop it
func TestSlowReadiness(t *testing.T) {
	needNode(t)
	const name, slow = "slow", 10 * time.Second
	offer(t, name, func(_ string, variant *operator.Variant) {
		variant.Environment = map[string]string{"READY_AFTER": slow.String()}
	}, "1.0.0")
	began := time.Now()
	extend(t, name, "1.0.0")
	becomes(t, name, ocv1.TypeAvailable, "False")
	ready(t, name, "1.0.0")
	if took := time.Since(began); took < slow {
		t.Errorf("it was ready after %s, but the operator says so after %s", took, slow)
	}
}
