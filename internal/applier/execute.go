package applier

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Change says what became of one object.
type Change string

// What an operation can do to an object.
const (
	Created   Change = "created"
	Updated   Change = "updated"
	Unchanged Change = "unchanged"
	Deleted   Change = "deleted"
)

// outcome is what an execution did, as far as it came.
type outcome struct {
	// began says that something was written, or may have been.
	began bool

	changes map[object.Key]Change
	left    drift.Left
}

// executor writes what a plan says, as the ServiceAccount of one extension.
type executor struct {
	writer writer

	mu      sync.Mutex
	outcome outcome
}

func newExecutor(writer writer) *executor {
	return &executor{writer: writer, outcome: outcome{
		changes: map[object.Key]Change{},
		left: drift.Left{
			Live:      map[object.Key]*unstructured.Unstructured{},
			Untouched: map[object.Key]object.Fingerprint{},
		},
	}}
}

// execute writes wave by wave and stops after the wave in which anything went
// wrong. What the revision dropped is deleted last, when all else is in place.
func (e *executor) execute(ctx context.Context, plan *plan) error {
	for _, wave := range wavesOf(plan.steps) {
		if failures := eachStep(ctx, wave, e.write, "applying"); len(failures) > 0 {
			return newObjectsError(failures)
		}
	}
	prune := make([]*step, 0, len(plan.prune))
	for i := range plan.prune {
		prune = append(prune, &plan.prune[i])
	}
	return newObjectsError(eachStep(ctx, prune, e.remove, "deleting"))
}

// wavesOf expects the steps in the order of their waves.
func wavesOf(steps []step) [][]*step {
	var waves [][]*step
	for i := range steps {
		wave := object.WaveOf(steps[i].Key.GroupKind)
		if i == 0 || wave != object.WaveOf(steps[i-1].Key.GroupKind) {
			waves = append(waves, nil)
		}
		last := len(waves) - 1
		waves[last] = append(waves[last], &steps[i])
	}
	return slices.Clip(waves)
}

func (e *executor) write(ctx context.Context, s *step) error {
	if s.state == untouched {
		e.leave(s)
		return nil
	}
	live, err := e.writer.write(ctx, s)
	if err != nil {
		e.fail(err)
		return err
	}
	change := Updated
	switch {
	case s.state == absent:
		change = Created
	case live.GetResourceVersion() == s.live.GetResourceVersion():
		change = Unchanged
	}
	e.note(s.Key, change, live)
	return nil
}

func (e *executor) remove(ctx context.Context, s *step) error {
	deleted, err := e.writer.remove(ctx, s)
	if err != nil {
		e.fail(err)
		return err
	}
	if deleted {
		e.note(s.Key, Deleted, nil)
	}
	return nil
}

// fail takes for done what was not refused: answers get lost, and servers fail
// after the deed.
func (e *executor) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outcome.began = e.outcome.began || !isRefusal(err)
}

// isRefusal says that the API server has answered that the request is at fault, or
// was not asked.
func isRefusal(err error) bool {
	if errors.Is(err, object.ErrOwnerGone) {
		return true
	}
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError
}

func (e *executor) leave(s *step) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outcome.changes[s.Key] = Unchanged
	e.outcome.left.Untouched[s.Key] = s.lastApplied
}

func (e *executor) note(key object.Key, change Change, live *unstructured.Unstructured) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outcome.changes[key] = change
	e.outcome.began = e.outcome.began || change != Unchanged
	if live != nil {
		e.outcome.left.Live[key] = live
	}
}
