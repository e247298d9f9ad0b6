package platform_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	pathRoles               = "/apis/rbac.authorization.k8s.io/v1/roles"
	pathRoleBindings        = "/apis/rbac.authorization.k8s.io/v1/rolebindings"
	pathClusterRoles        = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	pathClusterRoleBindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
)

func grantPaths() []string {
	return []string{pathRoles, pathRoleBindings, pathClusterRoles, pathClusterRoleBindings}
}

func TestGrantsAreNotWatchedBeforeSomebodyWaitsForThem(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(settled)
		for _, path := range grantPaths() {
			if n := w.watching(path); n > 0 {
				t.Errorf("there are %d watches of %s", n, path)
			}
		}
		w.FollowGrants()
		w.FollowGrants()
		pass(settled)
		for _, path := range grantPaths() {
			if n := w.watching(path); n != 1 {
				t.Errorf("there are %d watches of %s, want 1", n, path)
			}
		}
		if n := w.regrants.Load(); n != 1 {
			t.Errorf("%d changes of grants were told, want the one for what came before the watches", n)
		}
	})
}

func TestEachKindOfGrantIsTold(t *testing.T) {
	t.Parallel()
	for _, path := range grantPaths() {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			in(t, newServer(), func(t *testing.T, w *world) {
				w.FollowGrants()
				pass(settled)
				w.take()
				w.ring(path)
				pass(time.Second)
				if n := w.regrants.Load(); n != 2 {
					t.Errorf("%d changes of grants were told, want 2", n)
				}
				if n := w.changes.Load(); n != 0 {
					t.Errorf("%d changes of APIs were told", n)
				}
				pass(24 * time.Hour)
				if diff := cmp.Diff([]string(nil), w.take()); diff != "" || w.regrants.Load() != 2 {
					t.Errorf("it does not rest: %d were told, requests (-want +got):\n%s", w.regrants.Load(), diff)
				}
			})
		})
	}
}

func TestABurstOfGrantsIsToldOnce(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		w.FollowGrants()
		pass(settled)
		for range 20 {
			for _, path := range grantPaths() {
				w.ring(path)
			}
			pass(20 * time.Millisecond)
		}
		pass(settled)
		if n := w.regrants.Load(); n != 2 {
			t.Errorf("%d changes of grants were told, want one besides the first", n)
		}
	})
}

// TestEndlessGrantsAreToldSeldom covers changes that come too slowly to be one
// burst, and those that never end.
func TestEndlessGrantsAreToldSeldom(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"slow": 600 * time.Millisecond, "fast": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, newServer(), func(t *testing.T, w *world) {
				w.FollowGrants()
				pass(settled)
				before := w.regrants.Load()
				for began := time.Now(); time.Since(began) < time.Minute; {
					w.ring(pathRoles)
					pass(pause)
				}
				if n := w.regrants.Load() - before; n < 3 || n > 7 {
					t.Errorf("in a minute of changes %d were told", n)
				}
			})
		})
	}
}

func TestGrantsThatMayNotBeWatchedAtFirst(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.denyWatches(forbidden())
	in(t, s, func(t *testing.T, w *world) {
		w.FollowGrants()
		pass(time.Hour)
		if n := w.regrants.Load(); n != 0 {
			t.Errorf("%d changes of grants were told", n)
		}
		w.denyWatches(nil)
		pass(10 * time.Minute)
		if w.regrants.Load() == 0 {
			t.Error("what changed while there was no watch was not told")
		}
	})
}
