package drift

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestWatchesThatAreAheadOfAnOperation has a cluster take a change up before the
// operation is over that made it.
func TestWatchesThatAreAheadOfAnOperation(t *testing.T) {
	t.Parallel()
	key := object.Key{GroupKind: health.DeploymentKind, Namespace: "ns", Name: "op"}
	deployment := func(generation int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "ns", "name": "op", "uid": "u", "generation": generation},
			"status":   map[string]any{"observedGeneration": int64(1)},
		}}
	}
	up := health.Workload{Key: key, Available: metav1.ConditionTrue}
	tests := map[string]struct {
		reason string
		seen   *unstructured.Unstructured
		want   bool
	}{
		"the change": {reason: "the cluster does not say it again", seen: deployment(2), want: true},
		"before it":  {reason: "what was so before says nothing about the change", seen: deployment(1)},
		"nothing":    {reason: "what the operation left is all there is"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for operation, settle := range map[string]func(*State, map[object.Key]*unstructured.Unstructured){
				"of all objects": func(s *State, live map[object.Key]*unstructured.Unstructured) {
					s.Settle(Left{Live: live}, Certificates{}, time.Now())
				},
				"of some": func(s *State, live map[object.Key]*unstructured.Unstructured) {
					s.SettleSome(Left{Live: live}, Certificates{})
				},
			} {
				s := NewState()
				s.Settle(Left{Live: map[object.Key]*unstructured.Unstructured{key: deployment(1)}}, Certificates{}, time.Now())
				if test.seen != nil {
					s.noteWorkload(up, object.FingerprintOf(health.DeploymentKind, test.seen))
				}
				settle(s, map[object.Key]*unstructured.Unstructured{key: deployment(2)})
				if got := !s.Workloads()[0].RollingOut; got != test.want {
					t.Errorf("operation %s: rolled out is %t: %s", operation, got, test.reason)
				}
				s.Settle(Left{Live: map[object.Key]*unstructured.Unstructured{key: deployment(2)}}, Certificates{}, time.Now())
				if !s.Workloads()[0].RollingOut {
					t.Errorf("operation %s: what was seen before the last operation counts in the next", operation)
				}
			}
		})
	}
}

// TestNewestVersions are those of watches and of operations, whichever came last.
func TestNewestVersions(t *testing.T) {
	t.Parallel()
	counted := object.Key{GroupKind: health.DeploymentKind, Namespace: "ns", Name: "op"}
	plain := object.Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: "cm"}
	live := func(version string) map[object.Key]*unstructured.Unstructured {
		found := map[object.Key]*unstructured.Unstructured{}
		for key, generation := range map[object.Key]int64{counted: 1, plain: 0} {
			obj := &unstructured.Unstructured{}
			obj.SetName(key.Name)
			obj.SetGeneration(generation)
			obj.SetResourceVersion(version)
			found[key] = obj
		}
		return found
	}
	s := NewState()
	check := func(when, wantCounted, wantPlain string) {
		t.Helper()
		known := s.NotDrifted()
		if known[counted].Version != wantCounted || known[plain].Version != wantPlain {
			t.Errorf("%s: versions %q and %q, want %q and %q", when, known[counted].Version, known[plain].Version, wantCounted, wantPlain)
		}
	}
	asLeft := Left{Live: live("9")}.LastApplied()
	s.noteObject(counted, Known{Fingerprint: asLeft[counted], Version: "7"})
	s.Settle(Left{Live: live("9")}, Certificates{}, time.Now())
	check("after an operation", "9", "9")
	s.noteObject(counted, Known{Fingerprint: asLeft[counted], Version: "10"})
	s.noteObject(counted, Known{Fingerprint: asLeft[counted], Version: "8"}) // of a stream that was replaced
	check("after a change of a status", "10", "9")
	s.Settle(Left{Live: live("9")}, Certificates{}, time.Now())
	check("after an operation that the watch was ahead of", "10", "9")
	s.SettleSome(Left{Live: map[object.Key]*unstructured.Unstructured{counted: live("100")[counted]}}, Certificates{})
	check("after a repair", "100", "9")
	theirs := asLeft[counted]
	theirs.Generation++
	s.noteObject(counted, Known{Fingerprint: theirs, Version: "200"})
	check("while it has drifted", "", "9")
	s.noteObject(counted, Known{Fingerprint: asLeft[counted], Version: "100"})
	check("when an older event comes", "100", "9")
	left := s.NotDrifted()
	s.Settle(Left{Untouched: map[object.Key]object.Fingerprint{counted: left[counted].Fingerprint}}, Certificates{}, time.Now())
	check("after an operation that left it untouched", "100", "")
	s.Settle(Left{}, Certificates{}, time.Now())
	if len(s.versions) > 0 {
		t.Errorf("remembered of what is not content any more: %v", s.versions)
	}
}

// TestWorkloadsOfOthersAreNotRemembered: anybody can make and delete Deployments that
// look like content.
func TestWorkloadsOfOthersAreNotRemembered(t *testing.T) {
	t.Parallel()
	s := NewState()
	note := func() {
		for i := range 2 * maxEarly {
			s.noteWorkload(health.Missing(object.Key{GroupKind: health.DeploymentKind, Name: fmt.Sprint(i)}), object.Fingerprint{Deleted: true})
		}
	}
	if note(); len(s.seen) > maxEarly {
		t.Errorf("during an operation %d are remembered, want at most %d", len(s.seen), maxEarly)
	}
	s.Settle(Left{}, Certificates{}, time.Now())
	if note(); len(s.seen) > 0 {
		t.Errorf("at rest %d are remembered, want none", len(s.seen))
	}
}

// TestConfirmedAt: only who has read every object knows that the ServiceAccount still may.
func TestConfirmedAt(t *testing.T) {
	t.Parallel()
	key := keys("a")[0]
	live := map[object.Key]*unstructured.Unstructured{key: {Object: map[string]any{}}}
	at := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		happens func(*State)
		want    time.Time
	}{
		"an initial sync": {happens: func(s *State) {
			s.BeginInitialSync(nil, false)
			s.EndInitialSync(at)
		}},
		"all are read": {happens: func(s *State) { s.Settle(Left{Live: live}, Certificates{}, at) }, want: at},
		"some are not": {happens: func(s *State) {
			s.Settle(Left{Untouched: map[object.Key]object.Fingerprint{key: {}}}, Certificates{}, at)
		}},
		"some are repaired": {happens: func(s *State) { s.SettleSome(Left{Live: live}, Certificates{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := NewState()
			test.happens(state)
			if got := state.ConfirmedAt(); !got.Equal(test.want) {
				t.Errorf("confirmed at %s, want %s", got, test.want)
			}
		})
	}
}

// TestEventsDuringAnOperation has one find out, after an operation, what watches have reported
// while it ran, and nothing of what it has written itself.
func TestEventsDuringAnOperation(t *testing.T) {
	t.Parallel()
	old, added := keys("old")[0], keys("added")[0]
	live := func(version string, names ...object.Key) map[object.Key]*unstructured.Unstructured {
		found := map[object.Key]*unstructured.Unstructured{}
		for _, key := range names {
			obj := &unstructured.Unstructured{Object: map[string]any{}}
			obj.SetName(key.Name)
			obj.SetResourceVersion(version)
			found[key] = obj
		}
		return found
	}
	changed := func(key object.Key, version string) event {
		return event{owner: "x", key: key, version: version, fingerprint: object.Fingerprint{ResourceVersion: version}}
	}
	large := func(version string) event { return event{owner: "x", key: old, version: version, unknown: true} }
	for name, test := range map[string]struct {
		happens event
		some    []object.Key
		all     bool
		woken   bool
	}{
		"a change of what was there":            {happens: changed(old, "21"), some: []object.Key{old}, woken: true},
		"a change of what it adds":              {happens: changed(added, "21"), some: []object.Key{added}, woken: true},
		"its own write":                         {happens: changed(added, "20")},
		"what was there before its own write":   {happens: changed(added, "19")},
		"deletion of what it adds":              {happens: event{owner: "x", key: added, version: "21"}.deleted(), some: []object.Key{added}, woken: true},
		"an object of nobody":                   {happens: changed(keys("other")[0], "21")},
		"a change that is too large to be read": {happens: large("21"), some: []object.Key{old}, woken: true},
		"its own write, too large to be read":   {happens: large("20"), woken: true},
		"it is not known how some are":          {happens: event{owner: "x", unknown: true}, all: true, woken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, woken := NewState(), false
			watches := NewWatches(Config{Find: func(string) *State { return state }, Changed: func(string) { woken = true }, Now: time.Now})
			state.Settle(Left{Live: live("10", old)}, Certificates{}, time.Now())
			state.LookAtAll()
			watches.handle(test.happens)
			if state.Settle(Left{Live: live("20", old, added)}, Certificates{}, time.Now()) {
				woken = true
			}
			some, all := state.ToLookAt(time.Now())
			if !slices.Equal(some, test.some) || all != test.all || woken != test.woken {
				t.Errorf("it looks at %v, all = %t, woken = %t; want %v, %t, %t", some, all, woken, test.some, test.all, test.woken)
			}
			if _, known := state.NotDrifted()[old]; known == (test.all || slices.Contains(test.some, old)) {
				t.Errorf("it is known how the object is: %t", known)
			}
			// A repair reads what is to be read, and finds it in order.
			if all {
				state.Settle(Left{Live: live("21", old, added)}, Certificates{}, time.Now())
			} else {
				state.SettleSome(Left{Live: live("22", some...)}, Certificates{})
				for _, key := range some {
					watches.handle(changed(key, "22"))
				}
			}
			if some, all := state.ToLookAt(time.Now()); all || len(some) > 0 {
				t.Errorf("after it has read them it looks at %v, all = %t", some, all)
			}
		})
	}
}

// TestLargeObjectsAreHeldBack: whoever makes an object too large to be read is not repaired more
// often than others.
func TestLargeObjectsAreHeldBack(t *testing.T) {
	t.Parallel()
	state, key, now := NewState(), keys("a")[0], time.Unix(1000, 0)
	watches := NewWatches(Config{Find: func(string) *State { return state }, Changed: func(string) {}, Now: func() time.Time { return now }})
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetResourceVersion("10")
	state.Settle(Left{Live: map[object.Key]*unstructured.Unstructured{key: obj}}, Certificates{}, now)
	for range flappingLimit + 1 {
		state.NoteRepairs(map[object.Key]object.Difference{key: {}}, now)
	}
	watches.handle(event{owner: "x", key: key, version: "11", unknown: true})
	if some, all := state.ToLookAt(now); all || len(some) > 0 {
		t.Errorf("it looks at %v, all = %t during the pause", some, all)
	}
	if some, _ := state.ToLookAt(now.Add(minPause)); len(some) != 1 {
		t.Errorf("it looks at %v after the pause", some)
	}
}

// TestNewestOfAnObject: what is known is what the last operation has left or, if watches have
// reported something else since, that.
func TestNewestOfAnObject(t *testing.T) {
	t.Parallel()
	key := object.Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: "c"}
	left, changed := object.Fingerprint{UID: "u", ResourceVersion: "5"}, object.Fingerprint{UID: "u", ResourceVersion: "7"}
	tests := map[string]struct {
		reason string
		do     func(*State)
		want   object.Fingerprint
		known  bool
	}{
		"as it was left":       {reason: "nobody has changed it", do: func(*State) {}, want: left, known: true},
		"changed":              {reason: "watches have said how it is now", do: func(s *State) { s.drifted[key] = Known{Fingerprint: changed} }, want: changed, known: true},
		"changed somehow":      {reason: "how it is now was not said", do: func(s *State) { s.drifted[key] = Known{} }},
		"of no operation":      {reason: "nobody watches it", do: func(s *State) { delete(s.lastApplied, key) }},
		"all may have drifted": {reason: "watches may have missed something", do: func(s *State) { s.all = true }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := NewState()
			s.all, s.lastApplied[key] = false, left
			test.do(s)
			if got, known := s.Newest(key); known != test.known || known && got != test.want {
				t.Errorf("%+v, known: %t: %s", got, known, test.reason)
			}
		})
	}
}
