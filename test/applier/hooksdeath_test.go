package applier_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/hook"
)

// deaths ends a process at its n-th write, before the API server has it, or before its answer is read.
type deaths struct {
	mu     sync.Mutex
	left   int
	lost   bool
	dead   bool
	struck string
	writes []string
}

var errDead = errors.New("the process is dead")

func (d *deaths) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if !isWrite(req) || isTrial(req) {
			return next.RoundTrip(req)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.dead {
			return nil, errDead
		}
		d.left--
		strikes := d.left == 0
		if strikes {
			d.dead, d.struck = true, req.Method+" "+req.URL.Path
		}
		if strikes && !d.lost {
			return nil, errDead
		}
		response, err := next.RoundTrip(req)
		if err == nil && response.StatusCode < 300 {
			d.writes = append(d.writes, req.Method+" "+req.URL.Path[strings.LastIndex(strings.TrimSuffix(req.URL.Path, "/"), "/")+1:])
		}
		if strikes {
			if err == nil {
				response.Body.Close()
			}
			return nil, errDead
		}
		return response, err
	})
}

func (d *deaths) revive() (was string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was, d.dead, d.struck = d.struck, false, ""
	return was
}

// TestDeathAtEveryWriteOfHooks: wherever the process dies, each hook has run once, and content is written after
// the hooks before it.
func TestDeathAtEveryWriteOfHooks(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		for n := 1; n <= 40; n++ {
			t.Run(fmt.Sprintf("write %d, lost %t", n, lost), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, fmt.Sprintf("hook-death-%d-%t", n, lost))
				d := &deaths{left: n, lost: lost}
				f.restartWith(t, func(config *rest.Config) { config.Wrap(d.wrap) })
				struck := ""
				for _, version := range []string{"1.0.0", "1.1.0"} {
					hooks := []hook.Hook{
						hookAt(t, configMap("script", version), "pre-install,pre-upgrade", "hook-weight", "-1", "hook-delete-policy", "before-hook-creation,hook-succeeded"),
						hookAt(t, idlePod("before"), "pre-install,pre-upgrade"), hookAt(t, idlePod("after"), "post-install,post-upgrade"),
						hookAt(t, idlePod("leave"), "pre-delete"), hookAt(t, idlePod("left"), "post-delete"),
					}
					desired := f.wantingHooks(version, hooks, configMap("a", version))
					struck += f.until(t, d, func() error {
						state, err := f.applier.Observe(t.Context(), f.owner)
						if err != nil {
							return err
						}
						if !state.Unfinished && state.Installed != nil && state.Installed.Bundle == desired.Bundle {
							return nil // by a process that has died since
						}
						_, err = f.applier.Apply(t.Context(), f.owner, desired)
						return err
					})
					struck += f.until(t, d, func() error { return f.applier.FinishHooks(t.Context(), f.owner, desired.HookDeadline) })
				}
				deletion := len(d.writes)
				struck += f.until(t, d, func() error { return f.applier.RunDeletionHooks(t.Context(), f.owner, hook.PreDelete, time.Minute) })
				struck += f.until(t, d, func() error {
					left, err := f.applier.DeleteContent(t.Context(), f.owner)
					if err == nil && len(left) > 0 {
						err = errors.New(strings.Join(left, ", "))
					}
					return err
				})
				struck += f.until(t, d, func() error { return f.applier.RunDeletionHooks(t.Context(), f.owner, hook.PostDelete, time.Minute) })
				deletions := d.writes[deletion:]
				if gone := slices.Index(deletions, "DELETE a"); gone < slices.Index(deletions, "POST pods") {
					t.Errorf("died at %q: content goes before its hook: %s", struck, strings.Join(deletions, ", "))
				}
				created := 0
				for _, write := range d.writes {
					if write == "POST pods" {
						created++
					}
				}
				if created != 6 {
					t.Errorf("died at %q: %d pods were created, want 6: %s", struck, created, strings.Join(d.writes, ", "))
				}
				first := slices.Index(d.writes, "POST pods")
				if content := slices.Index(d.writes, "PATCH a"); content >= 0 && content < first {
					t.Errorf("died at %q: content before its hook", struck)
				}
				if script := f.live(t, "script"); script != nil && script.DeletionTimestamp == nil {
					t.Errorf("died at %q: what was to be deleted when it had succeeded stays: %s", struck, strings.Join(d.writes, ", "))
				}
			})
		}
	}
}

// until does something again and again, with another process after each death, and ends all pods.
func (f *fixture) until(t *testing.T, d *deaths, do func() error) (struck string) {
	t.Helper()
	var err error
	for range 100 {
		if err = do(); err == nil {
			return struck
		}
		if was := d.revive(); was != "" {
			struck = was
			f.restartWith(t, func(config *rest.Config) { config.Wrap(d.wrap) })
		}
		for _, name := range []string{"before", "after", "leave", "left"} {
			if pod := f.pod(t, name); pod != nil && pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
				f.endPod(t, name, corev1.PodSucceeded)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("died at %q: it does not end: %v", struck, err)
	return ""
}
