package drift

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

var unreadNoon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// definitionAt is a CustomResourceDefinition at a resource version.
func definitionAt(version int, established string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": "things.example.test", "uid": "u", "generation": int64(1), "resourceVersion": fmt.Sprint(version),
			"labels": map[string]any{object.LabelOwnerName: "x"},
		},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": established, "reason": "ShortNamesConflict"},
			map[string]any{"type": "Established", "status": established},
		}},
	}}
}

// sharedWorld is an extension whose CustomResourceDefinition a shared watch reports.
type sharedWorld struct {
	t       *testing.T
	state   *State
	watches *Watches
	woken   int
	key     object.Key
}

func newSharedWorld(t *testing.T) *sharedWorld {
	t.Helper()
	w := &sharedWorld{t: t, state: NewState(), key: object.Key{GroupKind: object.DefinitionKind, Name: "things.example.test"}}
	w.watches = NewWatches(Config{
		Find: func(string) *State { return w.state }, Changed: func(string) { w.woken++ }, Now: func() time.Time { return unreadNoon },
	})
	return w
}

// report sends an event with the metadata.
func (w *sharedWorld) report(version int) {
	w.t.Helper()
	live := definitionAt(version, "")
	delete(live.Object, "status")
	data, err := json.Marshal(live)
	if err != nil {
		w.t.Fatal(err)
	}
	seen, err := (&stream{key: watchKey{shared: true}, kind: object.DefinitionKind}).eventOf(apiwatch.Modified, data)
	if err != nil {
		w.t.Fatal(err)
	}
	w.watches.handle(seen)
}

// isToRead reports whether the status is to be read a moment later.
func (w *sharedWorld) isToRead(now time.Time) bool {
	if keys := w.state.TakeUnread(now); len(keys) > 0 {
		w.t.Errorf("it is read before the status is written twice: %v", keys)
	}
	keys := w.state.TakeUnread(now.Add(readDelay))
	if looked, _ := w.state.ToLookAt(now); len(looked) > 0 {
		w.t.Errorf("it counts as drifted: %v", looked)
	}
	return len(keys) == 1 && keys[0] == w.key
}

func (w *sharedWorld) read(version int, established string) {
	w.state.NoteStatus(w.key, definitionAt(version, established))
}

func (w *sharedWorld) available() metav1.ConditionStatus {
	found := w.state.Workloads()
	if len(found) != 1 {
		w.t.Fatalf("%d objects with a status, want 1: %+v", len(found), found)
	}
	return found[0].Available
}

// TestStatusIsReadAfterAnEvent is F2: a shared watch reports the metadata of a CustomResourceDefinition, so that its
// status is read after an event, and at no other time.
func TestStatusIsReadAfterAnEvent(t *testing.T) {
	t.Parallel()
	w := newSharedWorld(t)
	w.state.Settle(Left{Live: map[object.Key]*unstructured.Unstructured{w.key: definitionAt(10, "False")}}, Certificates{}, unreadNoon)
	if got := w.available(); got != metav1.ConditionFalse {
		t.Fatalf("available is %s before any event", got)
	}
	w.report(10) // of what the operation has read
	if w.woken != 0 || w.isToRead(unreadNoon) {
		t.Errorf("an event of what was read woke the extension %d times", w.woken)
	}
	w.report(11)
	if w.woken != 1 || !w.isToRead(unreadNoon) {
		t.Fatalf("a newer version woke the extension %d times, and is not read", w.woken)
	}
	if w.read(11, "True"); w.available() != metav1.ConditionTrue || w.isToRead(unreadNoon) {
		t.Errorf("available is %s after it was read", w.available())
	}
	w.report(9)
	if w.woken != 1 || w.isToRead(unreadNoon) {
		t.Errorf("an older event woke the extension")
	}
	w.report(12)
	if w.isToRead(unreadNoon); w.woken != 2 {
		t.Errorf("enqueued %d times, want 2", w.woken)
	}
	if w.read(11, "True"); !w.isToRead(unreadNoon) {
		t.Errorf("a read of an older version counts as one of a newer one")
	}
}

// TestBusyStatusIsReadSeldom: a client may write a status every second.
func TestBusyStatusIsReadSeldom(t *testing.T) {
	t.Parallel()
	w := newSharedWorld(t)
	w.state.Settle(Left{Live: map[object.Key]*unstructured.Unstructured{w.key: definitionAt(1, "True")}}, Certificates{}, unreadNoon)
	reads := 0
	for second := range 3600 {
		now := unreadNoon.Add(time.Duration(second) * time.Second)
		w.report(10 + second)
		if keys := w.state.TakeUnread(now); len(keys) == 1 {
			w.read(10+second, "True")
			reads++
		} else if next := w.state.NextRead(); !next.After(now) || next.Sub(now) > maxReadPause {
			t.Fatalf("it is read at %s, now it is %s", next, now)
		}
	}
	if reads < 5 || reads > 20 {
		t.Errorf("%d reads in an hour in which nothing happened", reads)
	}
	if w.woken > 2*reads {
		t.Errorf("enqueued %d times for %d reads", w.woken, reads)
	}
}

// TestBusyMessageIsReadSeldom is F1: a client may write another message every second, such as the time.
func TestBusyMessageIsReadSeldom(t *testing.T) {
	t.Parallel()
	w := newSharedWorld(t)
	w.state.Settle(Left{Live: map[object.Key]*unstructured.Unstructured{w.key: definitionAt(1, "False")}}, Certificates{}, unreadNoon)
	reads := 0
	for second := range 600 {
		w.report(10 + second)
		if keys := w.state.TakeUnread(unreadNoon.Add(time.Duration(second) * time.Second)); len(keys) == 1 {
			live := definitionAt(10+second, "False")
			conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
			conditions[0].(map[string]any)["message"] = fmt.Sprint("checked at second ", second)
			if err := unstructured.SetNestedSlice(live.Object, conditions, "status", "conditions"); err != nil {
				t.Fatal(err)
			}
			w.state.NoteStatus(w.key, live)
			reads++
		}
	}
	if most := 600 / int(minReadPause.Seconds()); reads < most/2 || reads > most {
		t.Errorf("%d reads in ten minutes, want at most %d", reads, most)
	}
	w.report(1000)
	w.state.TakeUnread(unreadNoon.Add(700 * time.Second))
	if w.read(1000, "True"); w.available() != metav1.ConditionTrue {
		t.Errorf("available is %s", w.available())
	}
}

// TestStatusThatCannotBeRead is asked for again, ever more seldom.
func TestStatusThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newSharedWorld(t)
	w.state.Settle(Left{Live: map[object.Key]*unstructured.Unstructured{w.key: definitionAt(1, "True")}}, Certificates{}, unreadNoon)
	w.report(2)
	tries := 0
	for second := range 3600 {
		if keys := w.state.TakeUnread(unreadNoon.Add(time.Duration(second) * time.Second)); len(keys) == 1 {
			w.state.NoteStatus(w.key, nil)
			tries++
		}
	}
	if tries < 5 || tries > 20 {
		t.Errorf("%d tries in an hour", tries)
	}
}

// TestStatusAfterARestart: a process that starts reads a status only if its predecessor reported a problem.
func TestStatusAfterARestart(t *testing.T) {
	t.Parallel()
	for _, doubtful := range []bool{false, true} {
		w := newSharedWorld(t)
		fingerprint := object.FingerprintOf(object.DefinitionKind, definitionAt(1, "False"))
		w.state.BeginInitialSync(map[object.Key]object.Fingerprint{w.key: fingerprint}, doubtful)
		w.report(5)
		w.state.EndInitialSync(unreadNoon)
		if got := w.isToRead(unreadNoon); got != doubtful || w.woken > 0 {
			t.Errorf("doubtful %t: it is read: %t, enqueued %d times", doubtful, got, w.woken)
		}
		w.report(6)
		if !w.isToRead(unreadNoon) {
			t.Errorf("doubtful %t: a later event is not read", doubtful)
		}
	}
}

// TestStatusDuringAnOperation: an event arrives before the end of the operation that has added the object.
func TestStatusDuringAnOperation(t *testing.T) {
	t.Parallel()
	w := newSharedWorld(t)
	w.report(11)
	changed := w.state.Settle(Left{Live: map[object.Key]*unstructured.Unstructured{w.key: definitionAt(10, "False")}}, Certificates{}, unreadNoon)
	if !changed || !w.isToRead(unreadNoon) {
		t.Errorf("the event is lost: changed %t", changed)
	}
}

// TestConditionsComeAndGo is F1: a custom resource counts from its first condition on, and as long as it has one.
func TestConditionsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newSharedWorld(t)
	w.key = object.Key{GroupKind: object.CertificateKind, Namespace: "ns", Name: "c"}
	at := func(version, status string) *unstructured.Unstructured {
		live := &unstructured.Unstructured{}
		text := `{"metadata": {"name": "c", "namespace": "ns", "uid": "u", "generation": 1, "resourceVersion": "` + version +
			`", "labels": {"` + object.LabelOwnerName + `": "x"}}, "status": ` + status + `}`
		if err := json.Unmarshal([]byte(text), &live.Object); err != nil {
			t.Fatal(err)
		}
		return live
	}
	report := func(version, status string) {
		data, err := json.Marshal(at(version, status))
		if err != nil {
			t.Fatal(err)
		}
		seen, err := (&stream{kind: w.key.GroupKind}).eventOf(apiwatch.Modified, data)
		if err != nil {
			t.Fatal(err)
		}
		w.watches.handle(seen)
	}
	fresh := at("1", "{}")
	fresh.SetGeneration(1)
	w.state.Settle(Left{Live: map[object.Key]*unstructured.Unstructured{w.key: fresh}}, Certificates{}, unreadNoon)
	report("1", "{}")
	if found := w.state.Workloads(); len(found) > 0 || w.woken > 0 {
		t.Fatalf("without conditions: %+v, enqueued %d times", found, w.woken)
	}
	report("2", `{"conditions": [{"type": "Ready", "status": "False", "reason": "NoIssuer"}]}`)
	if w.woken != 1 || w.available() != metav1.ConditionFalse || w.isToRead(unreadNoon) {
		t.Errorf("available is %s, enqueued %d times", w.available(), w.woken)
	}
	report("3", "{}")
	if found := w.state.Workloads(); len(found) > 0 || w.woken != 2 {
		t.Errorf("without conditions again: %+v, enqueued %d times", found, w.woken)
	}
}
