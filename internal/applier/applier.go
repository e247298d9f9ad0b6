package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Config is what an [Applier] needs. All fields are required.
type Config struct {
	// REST is the controller's own connection. It writes release records, and
	// carries the requests that are made as a ServiceAccount.
	REST *rest.Config

	// Mapper knows the kinds that the cluster serves.
	Mapper meta.RESTMapper

	// SystemNamespace holds the release records.
	SystemNamespace string

	// Changed is called when content of an extension no longer looks as it was
	// left. It must not block.
	Changed func(extension string)

	// Now is the clock.
	Now func() time.Time
}

// Applier applies, repairs and remembers the content of extensions. Its methods
// may be called at the same time for different extensions.
type Applier struct {
	config  Config
	secrets corev1client.SecretInterface
	clients *identityClients
	watches *watches

	mu     sync.Mutex
	states map[string]*state
}

// New returns an applier that has made no request yet.
func New(config Config) (*Applier, error) {
	if config.REST == nil || config.Mapper == nil || config.SystemNamespace == "" || config.Changed == nil || config.Now == nil {
		return nil, errors.New("applier: every field of the configuration is required")
	}
	core, err := corev1client.NewForConfig(config.REST)
	if err != nil {
		return nil, fmt.Errorf("building a client for release records: %w", err)
	}
	clients, err := newIdentityClients(config.REST)
	if err != nil {
		return nil, err
	}
	applier := &Applier{
		config:  config,
		secrets: core.Secrets(config.SystemNamespace),
		clients: clients,
		states:  map[string]*state{},
	}
	applier.watches = newWatches(clients, applier)
	return applier, nil
}

// State is what the records say about an extension.
type State struct {
	// Installed is the revision whose content is on the cluster; nil for none.
	Installed *Revision

	// Unfinished says that a revision after the installed one was begun and has
	// left the content somewhere between the two.
	Unfinished bool
}

// Desired is a revision with the objects it consists of.
type Desired struct {
	Revision Revision

	// Objects are not changed. They carry no marks of an owner.
	Objects []*unstructured.Unstructured

	// Annotations go into the release's chart metadata.
	Annotations map[string]string
}

// Result is what an operation did.
type Result struct {
	// Changes says what became of each object that was looked at.
	Changes map[ObjectKey]Change

	// Began says that the operation came as far as writing content.
	Began bool

	// Unwatched are kinds whose objects the ServiceAccount may not list and
	// watch, sorted. Changes to them are only found by looking again.
	Unwatched []string

	// RecheckAfter is when to look again; zero when everything is watched.
	RecheckAfter time.Duration
}

// recheckInterval is how long a change may go unnoticed that cannot be watched.
const recheckInterval = 2 * time.Minute

// Observe says what is installed. It asks the API server only when this process
// does not know it already.
func (a *Applier) Observe(ctx context.Context, owner Extension) (State, error) {
	known := a.state(owner)
	if state, ok := known.record(); ok {
		return state, nil
	}
	history, err := loadHistory(ctx, a.records(owner))
	if err != nil {
		return State{}, err
	}
	state, err := stateOf(ctx, history)
	if err != nil {
		return State{}, err
	}
	known.setRecord(state)
	return state, nil
}

func stateOf(ctx context.Context, history *history) (State, error) {
	installed, err := history.installed(ctx)
	if err != nil || installed == nil {
		return State{Unfinished: len(history.entries) > 0}, err
	}
	revision := revisionFrom(installed)
	last := history.entries[len(history.entries)-1]
	return State{
		Installed:  &revision,
		Unfinished: revisionOf(last.index) != installed.Version || last.status() != release.StatusDeployed,
	}, nil
}

// Apply makes a new revision: install or upgrade. It reads and checks every
// object first; errors before the first write leave Result.Began false.
//
// It fails with [*UnknownKindsError], [*ConflictError], [*ObjectsError] or
// [*RecordTooLargeError]; other errors are those of the API server.
func (a *Applier) Apply(ctx context.Context, owner Extension, desired Desired) (Result, error) {
	client, err := a.clients.dynamic(owner.account())
	if err != nil {
		return Result{}, err
	}
	history, err := loadHistory(ctx, a.records(owner))
	if err != nil {
		return Result{}, err
	}
	operation, err := a.prepare(ctx, planner{client: client, mapper: a.config.Mapper, owner: owner}, history, desired)
	if err != nil {
		return Result{}, err
	}
	known := a.state(owner)
	known.unsettle()
	if err := history.recover(ctx); err != nil {
		return Result{}, err
	}
	executor := newExecutor(client)
	if err := operation.run(ctx, executor); err != nil {
		return Result{Changes: executor.outcome.changes, Began: len(executor.outcome.changes) > 0}, err
	}
	known.setRecord(State{Installed: &desired.Revision})
	known.settle(fingerprints(executor.outcome.live), a.config.Now())
	a.watches.follow(ctx, owner, operation.plan.steps)
	return a.result(owner, executor.outcome.changes), nil
}

// result is that of an operation that succeeded.
func (a *Applier) result(owner Extension, changes map[ObjectKey]Change) Result {
	result := Result{Changes: changes, Began: len(changes) > 0, Unwatched: a.watches.denied(owner.Name)}
	if len(result.Unwatched) > 0 {
		result.RecheckAfter = recheckInterval
	}
	return result
}

func (a *Applier) prepare(ctx context.Context, planner planner, history *history, desired Desired) (*operation, error) {
	owned := make([]*unstructured.Unstructured, 0, len(desired.Objects))
	for _, object := range desired.Objects {
		owned = append(owned, own(planner.owner, object))
	}
	before, err := objectsBefore(ctx, history)
	if err != nil {
		return nil, err
	}
	plan, err := planner.plan(ctx, owned, before)
	if err != nil {
		return nil, err
	}
	chart, err := chartOf(owned, desired.Annotations)
	if err != nil {
		return nil, err
	}
	return &operation{
		owner:   planner.owner,
		history: history,
		plan:    plan,
		chart:   chart,
		labels:  labelsOf(desired.Revision),
	}, nil
}

func objectsBefore(ctx context.Context, history *history) ([]*unstructured.Unstructured, error) {
	manifests, err := history.manifests(ctx)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, manifest := range manifests {
		some, err := objectsOf(manifest)
		if err != nil {
			return nil, err
		}
		objects = append(objects, some...)
	}
	return objects, nil
}

// Repair brings objects of the installed revision back that are missing or
// differ. It asks nothing when none is under suspicion. Fields that others have
// set stay, as do objects that the extension no longer owns, which it reports
// as [*ConflictError].
func (a *Applier) Repair(ctx context.Context, owner Extension) (Result, error) {
	known := a.state(owner)
	suspects, all := known.suspects()
	if len(a.watches.denied(owner.Name)) > 0 && a.config.Now().Sub(known.lookedAt()) >= recheckInterval {
		all = true
	}
	if !all && len(suspects) == 0 {
		return a.result(owner, nil), nil
	}
	objects, err := a.installedObjects(ctx, owner)
	if err != nil {
		return Result{}, err
	}
	client, err := a.clients.dynamic(owner.account())
	if err != nil {
		return Result{}, err
	}
	planner := planner{client: client, mapper: a.config.Mapper, owner: owner}
	if !all {
		objects = only(planner.known(objects), suspects)
	}
	plan, err := planner.plan(ctx, objects, nil)
	if err != nil {
		return Result{}, err
	}
	executor := newExecutor(client)
	if err := executor.execute(ctx, plan); err != nil {
		return Result{Changes: executor.outcome.changes, Began: true}, err
	}
	if all {
		known.settle(fingerprints(executor.outcome.live), a.config.Now())
		a.watches.follow(ctx, owner, plan.steps)
	} else {
		known.settleSome(fingerprints(executor.outcome.live))
	}
	return a.result(owner, executor.outcome.changes), nil
}

func (a *Applier) installedObjects(ctx context.Context, owner Extension) ([]*unstructured.Unstructured, error) {
	history, err := loadHistory(ctx, a.records(owner))
	if err != nil {
		return nil, err
	}
	installed, err := history.installed(ctx)
	if err != nil {
		return nil, err
	}
	if installed == nil {
		return nil, fmt.Errorf("nothing is recorded as installed for %q", owner.Name)
	}
	return objectsOf(installed.Manifest)
}

func only(known map[ObjectKey]item, keys []ObjectKey) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for key, item := range known {
		if slices.Contains(keys, key) {
			objects = append(objects, item.object)
		}
	}
	return objects
}

// Forget drops everything held for an extension that is being deleted. Its
// content and records go with it, by the cluster's garbage collection.
func (a *Applier) Forget(extension string) {
	a.watches.unfollow(extension)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.states, extension)
}

func (a *Applier) records(owner Extension) *records {
	return &records{secrets: a.secrets, owner: owner, now: a.config.Now}
}

// state belongs to one incarnation of an extension: one that was deleted and
// made again starts anew.
func (a *Applier) state(owner Extension) *state {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.states[owner.Name]
	if !ok || known.uid != owner.UID {
		known = newState(owner.UID)
		a.states[owner.Name] = known
	}
	return known
}

// see is told by the watches how an object looks.
func (a *Applier) see(extension string, key ObjectKey, fingerprint string) {
	a.mu.Lock()
	known := a.states[extension]
	a.mu.Unlock()
	if known != nil && known.see(key, fingerprint) {
		a.config.Changed(extension)
	}
}

// blind is told by the watches when one is not allowed.
func (a *Applier) blind(extension string) { a.config.Changed(extension) }

// settledKeys are the objects that a watch should find.
func (a *Applier) settledKeys(extension string) []ObjectKey {
	a.mu.Lock()
	known := a.states[extension]
	a.mu.Unlock()
	if known == nil {
		return nil
	}
	return known.settledKeys()
}

func fingerprints(live map[ObjectKey]*unstructured.Unstructured) map[ObjectKey]string {
	prints := make(map[ObjectKey]string, len(live))
	for key, object := range live {
		prints[key] = fingerprint(object)
	}
	return prints
}
