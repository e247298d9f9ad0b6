package applier_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/turn"
)

// queued is the context of a job that is not large yet, beside one that is, until that
// ends.
func queued(t *testing.T) (_ context.Context, end func()) {
	t.Helper()
	turns := turn.New(1, func(string) {})
	other, end := turns.Begin(t.Context(), "other", "others")
	if err := turn.Take(other); err != nil {
		t.Fatal(err)
	}
	ctx, endOwn := turns.Begin(t.Context(), "own", "us")
	t.Cleanup(endOwn)
	return ctx, end
}

// TestLargeRepairsTakeTurns: to look at everything, or to let go of it, is large work; to
// put one object back is not.
func TestLargeRepairsTakeTurns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "many")
	var objects []*unstructured.Unstructured
	for i := range 130 {
		objects = append(objects, configMap(fmt.Sprintf("many-%d", i), "1"))
	}
	f.apply(t, "1.0.0", objects...)
	f.settle(t)
	ctx, end := queued(t)
	if err := admin.Delete(t.Context(), f.live(t, "many-7")); err != nil {
		t.Fatal(err)
	}
	f.waitForChange(t)
	if _, err := f.applier.Repair(ctx, f.owner); err != nil || f.live(t, "many-7") == nil {
		t.Errorf("one object is not put back: %v", err)
	}

	for _, object := range objects {
		if err := admin.Delete(t.Context(), f.live(t, object.GetName())); err != nil {
			t.Fatal(err)
		}
	}
	f.restart(t)
	f.observe(t)
	if _, err := f.applier.Repair(ctx, f.owner); !errors.Is(err, turn.ErrWait) || f.live(t, "many-7") != nil {
		t.Errorf("beside another large job: %v", err)
	}
	end()
	if _, err := f.applier.Repair(ctx, f.owner); err != nil || f.live(t, "many-7") == nil {
		t.Errorf("in its turn: %v", err)
	}

	ctx, end = queued(t)
	if err := f.applier.Orphan(ctx, f.owner); !errors.Is(err, turn.ErrWait) {
		t.Errorf("beside another large job: %v", err)
	}
	end()
	if err := f.applier.Orphan(ctx, f.owner); err != nil || len(f.live(t, "many-7").OwnerReferences) > 0 {
		t.Errorf("in its turn: %v", err)
	}
}

// TestLargeRecordsTakeTurns: they are read one after the other, however small they are
// stored.
func TestLargeRecordsTakeTurns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "expands")
	var objects []*unstructured.Unstructured
	for i := range 6 {
		objects = append(objects, configMap(fmt.Sprintf("expands-%d", i), strings.Repeat("a", 900_000)))
	}
	f.apply(t, "1.0.0", objects...)
	f.restart(t)
	ctx, end := queued(t)
	if _, err := f.applier.Observe(ctx, f.owner); !errors.Is(err, turn.ErrWait) {
		t.Errorf("beside another large job: %v", err)
	}
	end()
	state, err := f.applier.Observe(ctx, f.owner)
	if err != nil || state.Installed == nil || state.Installed.Bundle.Version != "1.0.0" {
		t.Errorf("in its turn: %+v, %v", state, err)
	}
}
