package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestRepairsAreToldNowAndThen(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.mustReconcile(t)
	w.events = nil
	steps := []struct {
		does     string
		after    time.Duration
		restored []object.Key
		told     []string
		wait     time.Duration
	}{
		{does: "nothing", told: nil},
		{does: "the first", restored: []object.Key{keyOf("Service", "", "b"), keyOf("ConfigMap", "", "a")}, told: []string{
			`Normal Repaired: brought back to what is installed: ConfigMap "a", Service "b"`,
		}},
		{does: "another", after: time.Minute, restored: []object.Key{keyOf("Service", "", "b")}, wait: 4 * time.Minute},
		{does: "one more", after: time.Minute, restored: []object.Key{keyOf("Secret", "", "c")}, wait: 3 * time.Minute},
		{does: "they are told together", after: 3 * time.Minute, told: []string{
			`Normal Repaired: brought back to what is installed: Secret "c", Service "b"`,
		}},
		{does: "nothing more", after: time.Hour},
	}
	for _, step := range steps {
		w.passed += step.after
		w.repair = installation.Result{Changes: changesTo(step.restored...)}
		result, err := w.reconcile(t)
		if err != nil || result.RequeueAfter != step.wait {
			t.Errorf("%s: the next pass comes after %s (%v), want %s", step.does, result.RequeueAfter, err, step.wait)
		}
		if diff := cmp.Diff(step.told, w.events); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", step.does, diff)
		}
		w.events = nil
	}
	if len(w.reconciler.repairs.known) != 0 {
		t.Errorf("it remembers %v when nothing is left to tell", w.reconciler.repairs.known)
	}
}

func TestRepairsAreBounded(t *testing.T) {
	t.Parallel()
	var objects []string
	for i := range 50 {
		objects = append(objects, fmt.Sprintf("%02d %s", i, strings.Repeat("x", 97)))
	}
	_, event, _ := repairs{}.with(objects).event(time.Unix(1000, 0))
	if event == nil || len(event.note) > maxText || !strings.HasPrefix(event.note, "brought back to what is installed: 00 x") ||
		!strings.HasSuffix(event.note, " and 46 more") {
		t.Errorf("event %+v", event)
	}
}

func changesTo(keys ...object.Key) map[object.Key]object.Change {
	changes := map[object.Key]object.Change{}
	for _, key := range keys {
		changes[key] = object.Updated
	}
	return changes
}
