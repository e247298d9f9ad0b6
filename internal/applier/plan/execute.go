package plan

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Progress is what an executor has done so far.
type Progress struct {
	// Began says that something was written, or may have been.
	Began bool

	Changes map[object.Key]object.Change
	Left    drift.Left

	// Written are the objects that were written, but for those that were deleted, with what
	// was changed of them.
	Written map[object.Key]object.Difference

	// Certified are the objects to which was written what no revision says, with what each
	// request has changed.
	Certified map[object.Key][]object.Difference

	// Void are the objects of which a request to change them has changed nothing, with what
	// it was to change.
	Void map[object.Key]object.Difference
}

// Executor carries out a plan, as the ServiceAccount of one extension.
type Executor struct {
	writer writer

	// Introduce gives an object as it is to be created, or an API service as it is to be led to
	// another Service, where that takes more than the revision has of it. It may be nil: then
	// objects are created as the revision has them.
	Introduce func(wanted *unstructured.Unstructured) (*unstructured.Unstructured, error)

	// failed are the objects that [Executor.Restore] could not write.
	failed []*Step

	plan      *Plan      // the plan of [Executor.Execute]; nil before, and in a repair
	removing  sync.Mutex // held by [Executor.removeFirst]
	unblocked time.Time  // when that has last deleted anything

	mu       sync.Mutex
	Progress Progress
}

func newExecutor(writer writer) *Executor {
	return &Executor{writer: writer, Progress: Progress{
		Changes:   map[object.Key]object.Change{},
		Written:   map[object.Key]object.Difference{},
		Certified: map[object.Key][]object.Difference{},
		Void:      map[object.Key]object.Difference{},
		Left: drift.Left{
			Live:      map[object.Key]*unstructured.Unstructured{},
			Untouched: map[object.Key]object.Fingerprint{},
			Deferred:  map[object.Key][]object.Key{},
		},
	}}
}

// Execute writes wave by wave. It stops after a wave in which a write has failed. It continues if the API server
// refuses an object that the installed revision has with the same manifest: see [Plan.Installed]. It deletes dropped
// objects last, or earlier if they block a write. Callers whose servers may not be ready yet are left to
// [Executor.Register].
func (e *Executor) Execute(ctx context.Context, plan *Plan) error {
	e.plan = plan
	for _, wave := range wavesOf(plan.Steps) {
		failures := e.awaitKinds(ctx, wave)
		if len(failures) == 0 {
			failures = eachStep(ctx, wave, e.write, "applying")
		}
		if failures, err := plan.toleratedApart(ctx, failures); err != nil || len(failures) > 0 {
			return errors.Join(newObjectsError(failures), err)
		}
	}
	return e.prune(ctx, plan)
}

// prune deletes the objects that the revision has dropped, and releases kept objects. It asks the
// guard once for each batch of objects that are deleted at the same time. This is enough, because their
// versions were known before: see [Guard.askAgain]. API services are deleted before the objects that may
// serve them.
func (e *Executor) prune(ctx context.Context, plan *Plan) error {
	var kept, registrations, others []*Step
	for i := range plan.prune {
		switch s := &plan.prune[i]; {
		case s.removed:
		case s.isKept():
			kept = append(kept, s)
		case s.Key.GroupKind == object.APIServiceKind:
			registrations = append(registrations, s)
		default:
			others = append(others, s)
		}
	}
	if err := e.dropAll(ctx, kept, e.release, "releasing"); err != nil {
		return err
	}
	if err := e.dropAll(ctx, registrations, e.remove, "deleting"); err != nil {
		return err
	}
	return e.dropAll(ctx, others, e.remove, "deleting")
}

func (e *Executor) dropAll(ctx context.Context, dropped []*Step, drop func(context.Context, *Step) error, action string) error {
	var failures []ObjectFailure
	for batch := range slices.Chunk(dropped, parallel) {
		if err := e.writer.askAgain(ctx); err != nil {
			return errors.Join(newObjectsError(failures), err)
		}
		failures = append(failures, eachStep(ctx, batch, drop, action)...)
	}
	return newObjectsError(failures)
}

// wavesOf expects the steps in the order of their waves.
func wavesOf(steps []Step) [][]*Step {
	var waves [][]*Step
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

func (e *Executor) write(ctx context.Context, s *Step) error {
	switch {
	case s.isLeft():
		return nil
	case s.state == untouched:
		e.leave(s)
		return nil
	case s.isDone():
		e.leaveDone(s)
		return nil
	case s.awaitsServer():
		return e.leaveToRegister(ctx, s)
	case s.state == absent && s.definition != nil:
		return e.writeServed(ctx, s)
	case s.state == absent:
		return e.introduce(ctx, s)
	default:
		return e.writeNow(ctx, s)
	}
}

// introduce writes an object as [Executor.Introduce] has it. That of the revision stays as it is: what is
// added is not recorded.
func (e *Executor) introduce(ctx context.Context, s *Step) error {
	if e.Introduce == nil {
		return e.writeNow(ctx, s)
	}
	made, err := e.Introduce(s.Object)
	if err != nil {
		return err
	}
	introduced := *s
	introduced.Object = made
	err = e.writeNow(ctx, &introduced)
	s.state, s.Live, s.written = introduced.state, introduced.Live, introduced.written
	return err
}

// leaveToRegister notes an API service as it is, if there is one: how it is may be known from
// the last revision alone. A CRD is written without its conversion.
func (e *Executor) leaveToRegister(ctx context.Context, s *Step) error {
	if s.Key.GroupKind == object.DefinitionKind {
		return e.writeBeforeSwitch(ctx, s)
	}
	if s.state == cached {
		if err := e.writer.reread(ctx, s); err != nil {
			return err
		}
	}
	if s.state != absent {
		e.note(s.Key, object.Unchanged, s.Live)
	}
	return nil
}

// writeBeforeSwitch writes a CRD as [object.BeforeSwitch] returns it.
func (e *Executor) writeBeforeSwitch(ctx context.Context, s *Step) error {
	before := *s
	before.Object = object.BeforeSwitch(s.Object, s.Live)
	err := e.writeNow(ctx, &before)
	if err == nil {
		s.Live = e.LiveOf([]*Step{s})[0]
	}
	return err
}

func (e *Executor) writeNow(ctx context.Context, s *Step) error {
	live, err := e.writer.write(ctx, s)
	if err != nil {
		live, err = e.writeUnblocked(ctx, s, err)
	}
	if err != nil {
		e.fail(err)
		return err
	}
	change := object.Updated
	switch {
	case s.state == absent:
		change = object.Created
	case live.GetResourceVersion() == s.Live.GetResourceVersion():
		change = object.Unchanged
	}
	e.note(s.Key, change, live)
	e.noteWritten(s, change)
	return nil
}

// noteWritten notes what was sent for an object.
func (e *Executor) noteWritten(s *Step, change object.Change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case s.written == nil:
	case change == object.Unchanged:
		e.Progress.Void[s.Key] = *s.written
	default:
		e.Progress.Written[s.Key] = *s.written
	}
}

func (e *Executor) remove(ctx context.Context, s *Step) error {
	deleted, err := e.writer.remove(ctx, s)
	if err != nil {
		e.fail(err)
		return err
	}
	if deleted {
		e.note(s.Key, object.Deleted, nil)
	}
	return nil
}

// release also notes objects to which nothing was written: objects that were imported from Helm have no
// labels, and neither have objects that an earlier attempt released.
func (e *Executor) release(ctx context.Context, s *Step) error {
	if err := e.writer.mark(ctx, s, e.writer.owner.ReleasePatch); err != nil {
		e.fail(err)
		return err
	}
	if !s.isOurs(e.writer.owner) {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Progress.Changes[s.Key] = object.Released
	e.Progress.Began = e.Progress.Began || s.written != nil
	return nil
}

// fail notes a failed request. Unless the API server has refused it, it may have been
// carried out: answers get lost, and servers fail after they have stored an object.
func (e *Executor) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Progress.Began = e.Progress.Began || !isRefusal(err)
}

// isRefusal says that the API server has answered with a status 4xx, or was not asked.
func isRefusal(err error) bool {
	if errors.Is(err, object.ErrOwnerGone) {
		return true
	}
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError
}

// Leave notes the objects of a plan as they were read, and writes nothing. It reports whether
// all of them are there, except the objects that [Executor.Register] creates.
func (e *Executor) Leave(plan *Plan) (all bool) {
	all = true
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if s.state == absent {
			all = all && (s.awaitsServer() || s.isDone())
			continue
		}
		e.note(s.Key, object.Unchanged, s.Live)
	}
	return all
}

func (e *Executor) leave(s *Step) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Progress.Changes[s.Key] = object.Unchanged
	e.Progress.Left.Untouched[s.Key] = s.lastApplied
}

func (e *Executor) note(key object.Key, change object.Change, live *unstructured.Unstructured) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Progress.Changes[key] = change
	e.Progress.Began = e.Progress.Began || change != object.Unchanged
	if live != nil {
		e.Progress.Left.Live[key] = live
	}
}

// LiveOf gives the objects as the execution found or left them; nil for what there is not.
func (e *Executor) LiveOf(steps []*Step) []*unstructured.Unstructured {
	e.mu.Lock()
	defer e.mu.Unlock()
	live := make([]*unstructured.Unstructured, len(steps))
	for i, s := range steps {
		live[i] = e.Progress.Left.Live[s.Key]
	}
	return live
}

// LiveThat gives the objects that are there and that a function selects, as the execution found or
// left them.
func (e *Executor) LiveThat(selects func(*unstructured.Unstructured) bool) []*unstructured.Unstructured {
	e.mu.Lock()
	defer e.mu.Unlock()
	var live []*unstructured.Unstructured
	for _, object := range e.Progress.Left.Live {
		if selects(object) {
			live = append(live, object)
		}
	}
	return live
}

// PatchEach writes patches. Parts have a name, for messages, and the patch of each step.
func (e *Executor) PatchEach(ctx context.Context, parts map[string]map[*Step][]byte) error {
	var failures []ObjectFailure
	for part, patches := range parts {
		failures = append(failures, eachStep(ctx, slices.Collect(maps.Keys(patches)), func(ctx context.Context, s *Step) error {
			patch := object.Patch{Kind: types.StrategicMergePatchType, Data: patches[s]}
			live, err := e.writer.patch(ctx, s, patch)
			if err != nil {
				return err
			}
			e.complete(s.Key, live, patch)
			return nil
		}, "writing "+part+" into")...)
	}
	return newObjectsError(failures)
}

// complete notes an object to which more was written after the plan was executed.
func (e *Executor) complete(key object.Key, live *unstructured.Unstructured, patch object.Patch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.Progress.Left.Live[key]
	written := patch.Difference(before)
	if before.GetResourceVersion() == live.GetResourceVersion() {
		e.Progress.Void[key] = written
		return
	}
	e.Progress.Certified[key] = append(e.Progress.Certified[key], written)
	if e.Progress.Changes[key] == object.Unchanged {
		e.Progress.Changes[key] = object.Updated
	}
	e.Progress.Left.Live[key] = live
}

// Repaired returns the objects that were created or changed, with the differences that were found.
// Due is set for objects that were deferred before. The difference is empty for objects to which
// only certificates were written. A missing owner counts as a difference unless isFirst is set: in
// the first repair of this process, the object may not have belonged to the extension before.
func (e *Executor) Repaired(isFirst bool, wasDeferred func(object.Key) bool) map[object.Key]object.Difference {
	found := map[object.Key]object.Difference{}
	for key, change := range e.Progress.Changes {
		if change == object.Created || change == object.Updated {
			difference := e.Progress.Written[key]
			difference.OnlyOwners = difference.OnlyOwners && isFirst
			difference.Due = wasDeferred(key)
			found[key] = difference
		}
	}
	return found
}
