package applier

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

// parallel is how many requests one operation has under way at a time. It keeps
// one large bundle from taking the API server's whole share of an identity.
const parallel = 16

// parallelLarge is parallel for who has taken a turn. There are many of them, and other
// extensions send theirs to the same API server.
const parallelLarge = 4

// step is what is to be done about one object.
type step struct {
	object.Item

	// state says what is known of the object on the cluster.
	state stepState

	// live is the object that was read, or the one that is cached; nil otherwise.
	live *unstructured.Unstructured

	// lastApplied is of an object that is untouched.
	lastApplied object.Fingerprint

	// before is the object as the last revision had it, which tells a field
	// that the bundle dropped from one that somebody else added. It is nil when
	// there is no such revision.
	before *unstructured.Unstructured

	// fixed are fields that cannot be changed, for which the object is deleted and
	// created again. It is nil for most objects.
	fixed []string

	// legacy is the Certificate of an earlier revision for which cert-manager keeps
	// its certificates in this Secret. It is empty for all else.
	legacy string

	// dryRun says that the API server was asked whether it would create the object.
	dryRun bool
}

// stepState is what is known of an object on the cluster.
type stepState int

const (
	// unread: nothing is known yet.
	unread stepState = iota

	// read: the object was read.
	read

	// absent: there is no such object.
	absent

	// cached: the object is taken for what the last revision wanted, in the version that
	// watches told of.
	cached

	// untouched: the object is known to be as the last revision left it, and the new one
	// wants it to be the same. It is neither read nor written.
	untouched
)

func (s *step) threeWay() object.ThreeWay {
	return object.ThreeWay{Wanted: s.Object, Before: s.before, Live: s.live}
}

// plan is made without a write. It is whole: an operation that starts to write
// has seen every object or knows it, and whatever could be tried would be allowed.
type plan struct {
	owner object.Owner
	steps []step
	prune []step // dropped by the new revision and still there

	ground groundwork
}

// items are the objects of the revision.
func (p *plan) items() []object.Item {
	items := make([]object.Item, 0, len(p.steps))
	for i := range p.steps {
		items = append(items, p.steps[i].Item)
	}
	return items
}

// planner makes plans as the ServiceAccount of one extension.
type planner struct {
	client dynamic.Interface
	mapper meta.RESTMapper
	owner  object.Owner
	guard  *guard
}

// writer carries out what was planned.
func (p *planner) writer() writer { return writer{client: p.client, owner: p.owner, guard: p.guard} }

// survey holds an outline against the cluster. It fails with [*object.ConflictError] or
// [*ObjectsError], each of which names every object concerned.
func (p *planner) survey(ctx context.Context, plan *plan) error {
	if err := p.look(ctx, plan); err != nil {
		return err
	}
	return p.checkOwnership(plan)
}

// review is outline and survey for objects of the revision that is installed. What
// later revisions have added to them goes; objects that only those have stay. It
// tries nothing: each object that is put back is a step ahead, whatever becomes of
// the others.
func (p *planner) review(ctx context.Context, installed, tried []*unstructured.Unstructured) (*plan, error) {
	plan, err := p.outline(installed, tried)
	if err != nil {
		return nil, err
	}
	plan.prune = nil
	steps := make([]*step, 0, len(plan.steps))
	for i := range plan.steps {
		steps = append(steps, &plan.steps[i])
	}
	if err := newObjectsError(eachStep(ctx, steps, p.read, "reading")); err != nil {
		return nil, err
	}
	return plan, p.checkOwnership(plan)
}

// outline holds the objects of a new revision against those of the ones before it,
// and asks the cluster nothing but its kinds. It fails with [*object.UnknownKindsError].
func (p *planner) outline(wanted, before []*unstructured.Unstructured) (*plan, error) {
	items, err := object.Items(p.mapper, p.owner, wanted)
	if err != nil {
		return nil, err
	}
	old, err := p.known(before)
	if err != nil {
		return nil, err
	}
	left := legacies(p.owner, before)
	result := &plan{owner: p.owner}
	for _, item := range items {
		p.owner.Stamp(item.Object)
		result.steps = append(result.steps, step{Item: item, before: old[item.Key].Object, legacy: left[item.Key]})
		delete(old, item.Key)
	}
	for _, item := range old {
		result.prune = append(result.prune, step{Item: item})
	}
	slices.SortFunc(result.prune, func(a, b step) int { return a.Key.Compare(b.Key) })
	result.ground = groundworkOf(result.steps)
	return result, nil
}

// known maps the objects of earlier revisions. Later revisions win; kinds that
// the cluster no longer serves have no objects left. Where that cannot be found out it
// fails: an object that is left out is in no record any more.
func (p *planner) known(objects []*unstructured.Unstructured) (map[object.Key]object.Item, error) {
	known := map[object.Key]object.Item{}
	for _, obj := range objects {
		items, err := object.Items(p.mapper, p.owner, []*unstructured.Unstructured{obj})
		if _, unserved := errors.AsType[*object.UnknownKindsError](err); unserved {
			continue
		}
		if err != nil {
			return nil, err
		}
		known[items[0].Key] = items[0]
	}
	return known, nil
}

func (p *planner) read(ctx context.Context, s *step) error { return s.read(ctx, p.client) }

// read finds out whether there is such an object.
func (s *step) read(ctx context.Context, client dynamic.Interface) error {
	live, err := resourceOf(client, s.Item).Get(ctx, s.Key.Name, metav1.GetOptions{})
	s.state, s.live = read, live
	if apierrors.IsNotFound(err) {
		s.state, s.live, err = absent, nil, nil
	}
	return err
}

// eachStep runs act on every step, some at a time, and gives all failures.
func eachStep(ctx context.Context, steps []*step, act func(context.Context, *step) error, action string) []ObjectFailure {
	errs := make([]error, len(steps))
	var group errgroup.Group
	group.SetLimit(parallel)
	if turn.Taken(ctx) {
		group.SetLimit(parallelLarge)
	}
	for i, s := range steps {
		group.Go(func() error {
			errs[i] = act(ctx, s)
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

// checkOwnership refuses objects that are not the extension's own, and leaves
// dropped objects alone that are gone, or that somebody else has taken over.
func (p *planner) checkOwnership(plan *plan) error {
	var conflicts []object.Conflict
	for _, s := range plan.steps {
		if s.live != nil && !p.owner.Owns(s.live) && !s.inherits() {
			conflicts = append(conflicts, object.Conflict{Object: s.Key, Holder: object.HolderOf(s.live)})
		}
	}
	plan.prune = slices.DeleteFunc(plan.prune, func(s step) bool { return s.live == nil || !p.owner.Owns(s.live) })
	if len(conflicts) == 0 {
		return nil
	}
	slices.SortFunc(conflicts, func(a, b object.Conflict) int { return a.Object.Compare(b.Object) })
	return &object.ConflictError{Claimant: p.owner, Conflicts: conflicts}
}

func resourceOf(client dynamic.Interface, i object.Item) dynamic.ResourceInterface {
	resource := client.Resource(i.Mapping.Resource)
	if i.Key.Namespace == "" {
		return resource
	}
	return resource.Namespace(i.Key.Namespace)
}
