package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

// parallel is how many requests one operation has under way at a time: one large bundle
// must not use up what the API server grants to the identity of the controller.
const parallel = 16

// parallelLarge is parallel for a large extension. It has many requests, and those of other
// extensions go to the same API server.
const parallelLarge = 4

// Step is what is to be done about one object.
type Step struct {
	object.Item

	// state says what is known of the object on the cluster.
	state state

	// Live is the object that was read, or the one that is cached; nil otherwise.
	Live *unstructured.Unstructured

	// lastApplied is of an object that is untouched.
	lastApplied object.Fingerprint

	// before is the object as the last revision had it. It tells a field that the bundle
	// dropped from one that somebody else added. It is nil if no revision had the object.
	before *unstructured.Unstructured

	// definition is the CRD of the same revision that defines the kind of the object; nil for most.
	definition *Step

	// hasInstances is set for a CRD if the revision has objects of its kind.
	hasInstances bool

	// isHelmCRD is set for a CRD that an imported chart has in crds/, see [object.IsLeftByHelm].
	isHelmCRD bool

	// immutable are the fields that cannot be changed, because of which the object is
	// deleted and created again. It is nil for most objects.
	immutable []string

	// blockers are dropped objects that are deleted before this one is written, because the API server would
	// refuse it. It is nil for most objects.
	blockers []object.Key

	// removed is set for a dropped object that was deleted before another one was written.
	removed bool

	// legacy is the name of the Certificate of an earlier revision for which cert-manager
	// has made this Secret. It is empty for all other objects.
	legacy string

	// isHome is set for a dropped object that is never deleted, see [object.Owner.IsHome].
	isHome bool

	// ran is set for a Job that was created from the same spec and that the cluster deletes after it has finished.
	ran bool

	// dryRunDone says that the object was created in a dry run.
	dryRunDone bool

	// written is what was changed by the request that was sent; nil if there was none.
	written *object.Difference

	// blocked is set in a repair for an object that could not be read, or that belongs to another owner.
	blocked bool

	// adopts is set if no revision has the object, so that an earlier owner may have left it. leftovers describes the fields
	// of other writers that the adopted object keeps.
	adopts    bool
	leftovers string

	// succeeds is set for a webhook configuration that replaces a dropped one, see [Plan.noteSuccessors].
	succeeds bool

	// refusal is why the API server refuses an object that is left unchanged; nil for all others.
	refusal error
}

// state is what is known of an object on the cluster.
type state int

const (
	// unread: nothing is known yet.
	unread state = iota

	// read: the object was read.
	read

	// absent: there is no such object.
	absent

	// cached: the object has not drifted. It is taken for what the last revision wanted, in
	// the newest resource version that was seen.
	cached

	// untouched: the object has not drifted, and the new revision wants it to be the same.
	// It is neither read nor written.
	untouched
)

// isKept reports whether a dropped object is kept, because its manifest or the object on the cluster has
// the annotation, or because other objects are in it or depend on it.
func (s *Step) isKept() bool {
	return s.isHome || object.IsKept(s.Object) || s.Live != nil && object.IsKept(s.Live)
}

// removal returns the change to an object that the revision has dropped.
func (s *Step) removal() object.Change {
	if s.isKept() {
		return object.Released
	}
	return object.Deleted
}

func (s *Step) threeWay() object.ThreeWay {
	return object.ThreeWay{Wanted: s.wanted(), Before: s.before, Live: s.Live}
}

// Plan is what an operation does to each object. It is complete before the first write:
// the state of every object is known, and the dry runs have succeeded.
type Plan struct {
	Owner object.Owner
	Steps []Step
	prune []Step // dropped by the new revision and still there

	// Installed returns the objects of the installed revision. If it has an object like the new revision, and the API server
	// refuses to write the object, an upgrade leaves the object as it is: it does not touch it. It may be nil.
	Installed func(context.Context) ([]*unstructured.Unstructured, error)

	// conflicts names the objects of a repair that belong to another owner, and unread the objects that could not be
	// read. They are not written.
	conflicts error
	unread    []ObjectFailure

	prerequisites prerequisites
	mapper        meta.RESTMapper
}

// Items are the objects of the revision.
func (p *Plan) Items() []object.Item {
	items := make([]object.Item, 0, len(p.Steps))
	for i := range p.Steps {
		items = append(items, p.Steps[i].Item)
	}
	return items
}

// Planner makes plans as the ServiceAccount of one extension.
type Planner struct {
	Owner object.Owner

	// Guard is asked before whatever the planner and its executor write, but for the
	// removal of owners: see [Planner.Orphan].
	Guard *Guard

	client dynamic.Interface
	mapper meta.RESTMapper
}

// NewPlanner makes a planner for one operation.
func NewPlanner(client dynamic.Interface, mapper meta.RESTMapper, owner object.Owner, confirm Confirm) *Planner {
	return &Planner{client: client, mapper: mapper, Owner: owner, Guard: &Guard{confirm: confirm, owner: owner}}
}

// Executor makes an executor for the plan of the operation.
func (p *Planner) Executor() *Executor {
	return newExecutor(p.writer())
}

func (p *Planner) writer() writer { return writer{client: p.client, owner: p.Owner, guard: p.Guard} }

// Inspect finds out the state of the objects of a plan, and checks who owns them. It fails
// with [*object.ConflictError] or [*ObjectsError], each of which names every object
// concerned.
func (p *Planner) Inspect(ctx context.Context, plan *Plan) error {
	if err := p.readLive(ctx, plan); err != nil {
		return err
	}
	err := p.checkOwnership(plan)
	plan.noteSuccessors()
	return err
}

// PlanRepair plans the repair of objects of the installed revision, and reads them. Fields
// that later, failed revisions have added are removed; objects that only those have stay.
// It makes no dry run: each object that is put back is worth it, whether or not the others
// can be. For the same reason it goes on without objects that cannot be read or belong to another owner:
// see [Plan.Blocked].
func (p *Planner) PlanRepair(ctx context.Context, installed, tried []*unstructured.Unstructured) (*Plan, error) {
	plan, err := p.Plan(installed, tried, nil)
	if err != nil {
		return nil, err
	}
	plan.prune = nil
	steps := make([]*Step, 0, len(plan.Steps))
	for i := range plan.Steps {
		plan.Steps[i].adopts = false // what is installed was adopted before
		steps = append(steps, &plan.Steps[i])
	}
	plan.unread = eachStep(ctx, steps, p.read, "reading")
	for _, s := range steps {
		isUnread := slices.ContainsFunc(plan.unread, func(failure ObjectFailure) bool { return failure.Object == s.Key })
		s.blocked = isUnread || s.Live != nil && !s.mayHave(p.Owner)
	}
	plan.conflicts = p.checkOwnership(plan)
	return plan, nil
}

// Blocked is an error about each object of a repair that is not written, because it could not be read or belongs to
// another owner.
func (p *Plan) Blocked() error { return errors.Join(p.conflicts, newObjectsError(p.unread)) }

// Plan makes a step for each object of a new revision, and for each object of earlier
// revisions that the new one has dropped. helmCRDs are the names of CRDs of crds/ of an imported chart,
// which the new revision may adopt. It asks the cluster for its kinds only. It fails with
// [*object.UnknownKindsError].
func (p *Planner) Plan(wanted, before []*unstructured.Unstructured, helmCRDs []string) (*Plan, error) {
	items, err := object.Items(p.mapper, p.Owner, wanted)
	if err != nil {
		return nil, err
	}
	old, err := object.Known(p.mapper, p.Owner, before)
	if err != nil {
		return nil, err
	}
	left := legacies(p.Owner, before)
	result := &Plan{Owner: p.Owner, mapper: p.mapper}
	for _, item := range items {
		p.Owner.Stamp(item.Object)
		before := old[item.Key].Object
		result.Steps = append(result.Steps, Step{Item: item, before: before, adopts: before == nil, legacy: left[item.Key]})
		delete(old, item.Key)
	}
	for _, item := range old {
		result.prune = append(result.prune, Step{Item: item, isHome: p.Owner.IsHome(item.Key)})
	}
	slices.SortFunc(result.prune, func(a, b Step) int { return a.Key.Compare(b.Key) })
	result.prerequisites = prerequisitesOf(result.Steps)
	for i := range result.Steps {
		s := &result.Steps[i]
		s.isHelmCRD = s.Key.GroupKind == object.DefinitionKind && slices.Contains(helmCRDs, s.Key.Name)
		if s.definition = result.prerequisites.kinds[s.Key.GroupKind]; s.definition != nil {
			s.definition.hasInstances = true
		}
	}
	return result, nil
}

func (p *Planner) read(ctx context.Context, s *Step) error { return s.read(ctx, p.client, p.Owner) }

// read finds out whether there is such an object, and what a predecessor has set in it.
func (s *Step) read(ctx context.Context, client dynamic.Interface, owner object.Owner) error {
	live, err := resourceOf(client, s.Item).Get(ctx, s.Key.Name, metav1.GetOptions{})
	s.state, s.Live = read, live
	if apierrors.IsNotFound(err) {
		s.state, s.Live, err = absent, nil, nil
	}
	if err == nil {
		s.takeBefore(owner)
	}
	return err
}

// eachStep runs act on every step, some at a time, and gives all failures.
func eachStep(ctx context.Context, steps []*Step, act func(context.Context, *Step) error, action string) []ObjectFailure {
	errs := make([]error, len(steps))
	var group errgroup.Group
	group.SetLimit(parallel)
	if turn.Taken(ctx) {
		group.SetLimit(parallelLarge)
	}
	for i, s := range steps {
		group.Go(func() error {
			errs[i] = attempt(ctx, s, act)
			return nil
		})
	}
	_ = group.Wait()
	var failures []ObjectFailure
	for i, err := range errs {
		if err != nil {
			failures = append(failures, ObjectFailure{Action: action, Object: steps[i].Key, Err: err})
		}
	}
	return failures
}

// attempt makes an error of a panic, as it is for those of a pass: this runs beside it, and
// what is in an object is up to its author.
func attempt(ctx context.Context, s *Step, act func(context.Context, *Step) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			for _, handle := range utilruntime.PanicHandlers {
				handle(ctx, r)
			}
			err = fmt.Errorf("panic: %v [recovered]", r)
		}
	}()
	return act(ctx, s)
}

// checkOwnership fails for objects that the extension does not own. It removes dropped
// objects from the plan that do not exist, or that somebody else has adopted.
func (p *Planner) checkOwnership(plan *Plan) error {
	var conflicts []object.Conflict
	for _, s := range plan.Steps {
		if s.Live != nil && !s.mayHave(p.Owner) {
			conflicts = append(conflicts, object.Conflict{Object: s.Key, Holder: object.HolderOf(s.Live)})
		}
	}
	plan.prune = slices.DeleteFunc(plan.prune, func(s Step) bool { return s.Live == nil || !s.ownedBy(p.Owner) })
	if len(conflicts) == 0 {
		return nil
	}
	slices.SortFunc(conflicts, func(a, b object.Conflict) int { return a.Object.Compare(b.Object) })
	return &object.ConflictError{Claimant: p.Owner, Conflicts: conflicts}
}

func resourceOf(client dynamic.Interface, i object.Item) dynamic.ResourceInterface {
	resource := client.Resource(i.Mapping.Resource)
	if i.Key.Namespace == "" {
		return resource
	}
	return resource.Namespace(i.Key.Namespace)
}

// Only gives the objects of these keys.
func (p *Planner) Only(objects []*unstructured.Unstructured, keys []object.Key) ([]*unstructured.Unstructured, error) {
	known, err := object.Known(p.mapper, p.Owner, objects)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for key, item := range known {
		if slices.Contains(keys, key) {
			found = append(found, item.Object)
		}
	}
	return found, nil
}

// Changes are what the plan does to objects that exist or are to exist.
func (p *Plan) Changes() []preflight.Change {
	changes := make([]preflight.Change, 0, len(p.Steps)+len(p.prune))
	for _, s := range p.Steps {
		if s.state == untouched {
			continue
		}
		changes = append(changes, preflight.Change{Live: s.Live, Wanted: s.Object})
	}
	for _, s := range p.prune {
		if !s.isKept() {
			changes = append(changes, preflight.Change{Live: s.Live})
		}
	}
	return changes
}
