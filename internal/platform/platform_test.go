package platform_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/platform"
)

const (
	current = apidiscoveryv2.DiscoveryFreshnessCurrent
	stale   = apidiscoveryv2.DiscoveryFreshnessStale
)

// settled is long after the last read that a change causes.
const settled = time.Minute

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestEveryFieldOfTheConfigIsRequired(t *testing.T) {
	t.Parallel()
	complete := platform.Config{REST: &rest.Config{}, HTTPClient: &http.Client{}, Changed: func() {}, Regranted: func() {}}
	if _, err := platform.New(complete); err != nil {
		t.Fatal(err)
	}
	for name, drop := range map[string]func(*platform.Config){
		"REST":       func(c *platform.Config) { c.REST = nil },
		"HTTPClient": func(c *platform.Config) { c.HTTPClient = nil },
		"Changed":    func(c *platform.Config) { c.Changed = nil },
		"Regranted":  func(c *platform.Config) { c.Regranted = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := complete
			drop(&cfg)
			if _, err := platform.New(cfg); err == nil {
				t.Error("it was accepted")
			}
		})
	}
}

func TestAPIsAreNotReadBeforeSomebodyAsks(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		pass(24 * time.Hour)
		want := []string{"GET " + pathVersion, "GET " + pathOpenShift}
		if diff := cmp.Diff(want, w.take()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if len(w.watchers) > 0 {
			t.Error("there are watches")
		}
		if _, err := w.ServedAPIs(); !errors.Is(err, platform.ErrUnknown) {
			t.Errorf("error = %v, want that nothing is known", err)
		}
		if _, err := w.APIs(); !errors.Is(err, platform.ErrUnknown) {
			t.Errorf("the first answer is %v, want %v", err, platform.ErrUnknown)
		}
		synctest.Wait()
		if !w.serves(t, "first.test") {
			t.Error("it does not know what is served after it was asked")
		}
		if n := w.changes.Load(); n != 1 {
			t.Errorf("%d changes were told, want the one that it is known", n)
		}
	})
}

func TestAnUnchangedWorldIsNotReadAgain(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(settled)
		if w.reads() == 0 {
			t.Fatal("nothing was read")
		}
		for range 1000 {
			w.serves(t, "first.test")
			pass(time.Minute)
		}
		if diff := cmp.Diff([]string(nil), w.take()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if n := w.changes.Load(); n != 1 {
			t.Errorf("%d changes were told, want 1", n)
		}
	})
}

func TestKindsAreThoseOfResources(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(settled)
		serves, err := w.APIs()
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			group, version, kind string
			want                 bool
		}{
			{"", "v1", "Pod", true},
			{"first.test", "v1", "Thing", true},
			{"first.test", "v2", "Thing", false},
			{"first.test", "v1", "Other", false},
			{"other.test", "v1", "Thing", false},
			{"policy", "v1", "Eviction", false},
			{"", "v1", "Eviction", false},
		} {
			if got := serves(test.group, test.version, test.kind); got != test.want {
				t.Errorf("serves %s/%s %s: %t, want %t", test.group, test.version, test.kind, got, test.want)
			}
		}
		apis, err := w.ServedAPIs()
		if err != nil || !slices.IsSorted(apis) {
			t.Fatalf("apis %q, %v; want them sorted", apis, err)
		}
		for api, want := range map[string]bool{
			"v1": true, "v1/Pod": true, "first.test/v1": true, "first.test/v1/Thing": true, "first.test/v2": false, "first.test/v1/Other": false,
		} {
			if got := slices.Contains(apis, api); got != want {
				t.Errorf("%s is among what is served: %t, want %t", api, got, want)
			}
		}
	})
}

func TestNewsAreFollowed(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"a definition": pathDefinitions, "an API service": pathAPIServices} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, newServer(), func(t *testing.T, w *world) {
				_, _ = w.APIs()
				pass(settled)
				w.serve("second.test", current)
				w.ring(path)
				pass(settled)
				if !w.serves(t, "second.test") {
					t.Error("the new group is not served")
				}
				if n := w.changes.Load(); n != 2 {
					t.Errorf("%d changes were told, want 2", n)
				}
			})
		})
	}
}

func TestNewsThatChangeNothingAreNotTold(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(settled)
		w.reads()
		w.ring(pathDefinitions)
		pass(settled)
		if w.reads() == 0 {
			t.Error("it did not read what has changed")
		}
		if n := w.changes.Load(); n != 1 {
			t.Errorf("%d changes were told, want 1", n)
		}
	})
}

func TestDiscoveryMayFollowTheDefinitionsLate(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(settled)
		w.ring(pathDefinitions)
		pass(20 * time.Second)
		w.serve("second.test", current)
		pass(settled)
		if !w.serves(t, "second.test") {
			t.Error("the new group is not served")
		}
	})
}

func TestABurstOfNewsIsReadLikeOne(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(settled)
		w.reads()
		w.ring(pathDefinitions)
		pass(settled)
		one := w.reads()
		for range 50 {
			w.ring(pathDefinitions)
			w.ring(pathAPIServices)
			pass(20 * time.Millisecond)
		}
		pass(settled)
		if burst := w.reads(); burst != one {
			t.Errorf("%d reads, want the %d of a single change", burst, one)
		}
	})
}

func TestEndlessNewsDoNotKeepItFromReading(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(settled)
		w.serve("second.test", current)
		for range 100 {
			w.ring(pathDefinitions)
			pass(100 * time.Millisecond)
		}
		if !w.serves(t, "second.test") {
			t.Error("the new group is not served")
		}
	})
}

func TestAGroupThatIsNotAvailable(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.serve("broken.test", stale)
	in(t, s, func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(settled)
		if w.serves(t, "broken.test") {
			t.Error("the group counts as served")
		}
		if apis, err := w.ServedAPIs(); err != nil || !slices.Contains(apis, "broken.test/v1") || slices.Contains(apis, "broken.test/v1/Thing") {
			t.Errorf("apis %q, %v; want the version of the group that is down, and no kinds of it", apis, err)
		}
		if !w.serves(t, "first.test") {
			t.Error("another group does not count as served")
		}
		w.reads()
		pass(24 * time.Hour)
		if n, most := w.reads(), 24*60/5+10; n > most {
			t.Errorf("discovery was read %d times in a day, more than %d", n, most)
		}
		// Nothing tells of its return.
		w.serve("broken.test", current)
		pass(10 * time.Minute)
		if !w.serves(t, "broken.test") {
			t.Error("the group does not count as served after its return")
		}
		if n := w.changes.Load(); n != 2 {
			t.Errorf("%d changes were told, want 2", n)
		}
		w.reads()
		pass(24 * time.Hour)
		if n := w.reads(); n != 0 {
			t.Errorf("discovery was read %d times after all was there", n)
		}
	})
}

func TestAGroupThatComesAndGoes(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(settled)
		for i := range 10 {
			freshness := []apidiscoveryv2.DiscoveryFreshness{stale, current}[i%2]
			w.serve("first.test", freshness)
			w.ring(pathAPIServices)
			pass(settled)
			if got, want := w.serves(t, "first.test"), freshness == current; got != want {
				t.Errorf("served: %t, want %t", got, want)
			}
			if got, want := w.changes.Load(), int64(i+2); got != want {
				t.Errorf("%d changes were told, want %d", got, want)
			}
		}
	})
}

func TestDiscoveryThatFailsAtFirst(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.answer(pathDiscovery, nil, apierrors.NewInternalError(errors.New("no")))
	in(t, s, func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(settled)
		if _, err := w.APIs(); !errors.Is(err, platform.ErrUnknown) {
			t.Errorf("the answer is %v, want %v", err, platform.ErrUnknown)
		}
		if n := w.changes.Load(); n != 0 {
			t.Errorf("%d changes were told", n)
		}
		w.discover()
		pass(10 * time.Minute)
		if !w.serves(t, "first.test") {
			t.Error("it does not know what is served although it can be read")
		}
	})
}

// TestDiscoveryThatHangs: the client for it takes no context.
func TestDiscoveryThatHangs(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.answers[pathDiscovery] = func(ctx context.Context) (any, error) {
		<-ctx.Done()
		return nil, apierrors.NewTimeoutError(ctx.Err().Error(), 0)
	}
	in(t, s, func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(29 * time.Second)
		w.discover()
		if _, err := w.APIs(); !errors.Is(err, platform.ErrUnknown) {
			t.Errorf("the answer is %v, want %v", err, platform.ErrUnknown)
		}
		pass(settled)
		if !w.serves(t, "first.test") {
			t.Error("it still waits for the first answer")
		}
	})
}

func TestDiscoveryThatFailsLater(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(settled)
		w.answer(pathDiscovery, nil, apierrors.NewInternalError(errors.New("no")))
		w.serve("second.test", current)
		w.ring(pathDefinitions)
		pass(time.Hour)
		if !w.serves(t, "first.test") || w.serves(t, "second.test") {
			t.Error("the last answer is not kept")
		}
		w.reads()
		pass(24 * time.Hour)
		if n, most := w.reads(), 24*60/5+1; n > most {
			t.Errorf("discovery was read %d times in a day, more than %d", n, most)
		}
		w.discover()
		pass(10 * time.Minute)
		if !w.serves(t, "second.test") {
			t.Error("the new group is not served")
		}
	})
}

func TestWatchesThatAreDenied(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.denyWatches(forbidden())
	in(t, s, func(t *testing.T, w *world) {
		_, _ = w.APIs()
		pass(time.Hour)
		if !w.serves(t, "first.test") {
			t.Error("it does not know what is served although it can be read")
		}
		w.serve("second.test", current)
		w.denyWatches(nil)
		pass(10 * time.Minute)
		if !w.serves(t, "second.test") {
			t.Error("what changed while there was no watch is missing")
		}
	})
}

func TestVersions(t *testing.T) {
	t.Parallel()
	desired := func(version string) any {
		return map[string]any{"status": map[string]any{"desired": map[string]any{"version": version}}}
	}
	for name, test := range map[string]struct {
		git                   string
		clusterVersion        any
		clusterVersionErr     error
		kubernetes, openShift string
	}{
		"Kubernetes is not OpenShift":      {git: "v1.36.0", clusterVersionErr: notFound(), kubernetes: "1.36.0"},
		"a distribution is no pre-release": {git: "v1.29.4-eks-036c24b", clusterVersionErr: notFound(), kubernetes: "1.29.4"},
		"a build is no other version":      {git: "v1.30.2+k3s1", clusterVersionErr: notFound(), kubernetes: "1.30.2"},
		"OpenShift":                        {git: "v1.34.2", clusterVersion: desired("4.21.3"), kubernetes: "1.34.2", openShift: "4.21.3"},
		"a version that is none":           {git: "main", clusterVersionErr: notFound()},
		"OpenShift may not be read":        {git: "v1.36.0", clusterVersionErr: forbidden(), kubernetes: "1.36.0"},
		"OpenShift says nothing yet":       {git: "v1.36.0", clusterVersion: desired(""), kubernetes: "1.36.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			s.answer(pathVersion, map[string]any{"gitVersion": test.git}, nil)
			s.answer(pathOpenShift, test.clusterVersion, test.clusterVersionErr)
			in(t, s, func(t *testing.T, w *world) {
				if got := w.Kubernetes(); got != test.kubernetes {
					t.Errorf("Kubernetes is %q, want %q", got, test.kubernetes)
				}
				if got := w.OpenShift(); got != test.openShift {
					t.Errorf("OpenShift is %q, want %q", got, test.openShift)
				}
				if n := w.changes.Load(); n != 0 {
					t.Errorf("%d changes were told", n)
				}
			})
		})
	}
}

func TestVersionsThatCannotBeReadAtFirst(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.answer(pathVersion, nil, apierrors.NewInternalError(errors.New("no")))
	in(t, s, func(t *testing.T, w *world) {
		if got := w.Kubernetes(); got != "" {
			t.Errorf("Kubernetes is %q", got)
		}
		w.answer(pathVersion, map[string]any{"gitVersion": "v1.36.0"}, nil)
		pass(settled)
		if got := w.Kubernetes(); got != "1.36.0" {
			t.Errorf("Kubernetes is %q", got)
		}
		if n := w.changes.Load(); n != 1 {
			t.Errorf("%d changes were told, want 1", n)
		}
		pass(settled * 10)
		w.take()
		pass(24 * time.Hour)
		if diff := cmp.Diff([]string(nil), w.take()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// TestUpgradesOfTheCluster come to be known to who asks again.
func TestUpgradesOfTheCluster(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		if got := w.Kubernetes(); got != "1.36.0" {
			t.Errorf("Kubernetes is %q", got)
		}
		pass(time.Hour)
		w.answer(pathVersion, map[string]any{"gitVersion": "v1.37.0"}, nil)
		pass(24 * time.Hour)
		if n := w.changes.Load(); n != 0 {
			t.Errorf("%d changes were told while nobody asked", n)
		}
		_ = w.Kubernetes()
		pass(settled)
		if n, got := w.changes.Load(), w.Kubernetes(); n != 1 || got != "1.37.0" {
			t.Errorf("%d changes were told, want 1, and Kubernetes is %q", n, got)
		}
	})
}

func TestAVersionThatIsKnownStaysKnown(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.answer(pathOpenShift, nil, apierrors.NewInternalError(errors.New("no")))
	in(t, s, func(t *testing.T, w *world) {
		if got := w.Kubernetes(); got != "1.36.0" {
			t.Errorf("Kubernetes is %q", got)
		}
		w.answer(pathVersion, nil, apierrors.NewInternalError(errors.New("no")))
		pass(settled)
		if got := w.Kubernetes(); got != "1.36.0" {
			t.Errorf("Kubernetes is %q after a read that failed", got)
		}
	})
}

// The API server refuses who may not read a resource before it says that there is
// none: on another cluster than OpenShift there is nothing to be tried again.
func TestWhatIsNotThereIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.answer(pathOpenShift, nil, forbidden())
	in(t, s, func(t *testing.T, w *world) {
		pass(24 * time.Hour)
		want := []string{"GET " + pathVersion, "GET " + pathOpenShift, "GET " + pathOpenShiftAPI}
		if diff := cmp.Diff(want, w.take()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

func TestVersionsAreWaitedForBriefly(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.answers[pathVersion] = func(ctx context.Context) (any, error) {
		<-ctx.Done()
		return nil, apierrors.NewTimeoutError(ctx.Err().Error(), 0)
	}
	in(t, s, func(t *testing.T, w *world) {
		began := time.Now()
		if got := w.Kubernetes(); got != "" {
			t.Errorf("Kubernetes is %q", got)
		}
		if waited := time.Since(began); waited == 0 || waited > 10*time.Second {
			t.Errorf("it waited for %s", waited)
		}
	})
}
