package mirrorset

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"go.podman.io/image/v5/pkg/sysregistriesv2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// group is that of the kinds, in their only version.
var group = schema.GroupVersion{Group: "config.openshift.io", Version: "v1"}

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	resources   = map[Kind]string{Digests: "imagedigestmirrorsets", Tags: "imagetagmirrorsets"}
)

// reasonNotUsed is that of events.
const reasonNotUsed = "MirrorsNotUsed"

// Config is what a Follower is made from. Every field is required.
type Config struct {
	// REST says where the API server is, and HTTPClient sends the requests.
	REST       *rest.Config
	HTTPClient *http.Client
	// Events are told what of a set is not used.
	Events record.EventRecorder
	// Elected is closed once this replica leads: the others tell no events.
	Elected <-chan struct{}
}

// Follower holds the sets of a cluster in memory. It is safe for concurrent use.
type Follower struct {
	client  dynamic.Interface
	events  record.EventRecorder
	elected <-chan struct{}
	kinds   map[Kind]*followed

	// news has one place: it says that something has changed since it was looked at.
	news chan struct{}
}

var (
	_ manager.Runnable               = &Follower{}
	_ manager.LeaderElectionRunnable = &Follower{}
)

// NewFollower returns one that knows nothing until it is started.
func NewFollower(config Config) (*Follower, error) {
	client, err := dynamic.NewForConfigAndClient(config.REST, config.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("setting up a client of mirror sets: %w", err)
	}
	return newFollower(client, config.Events, config.Elected), nil
}

func newFollower(client dynamic.Interface, events record.EventRecorder, elected <-chan struct{}) *Follower {
	f := &Follower{client: client, events: events, elected: elected, kinds: map[Kind]*followed{}, news: make(chan struct{}, 1)}
	for kind := range resources {
		f.kinds[kind] = &followed{
			kind: kind, known: make(chan struct{}), served: make(chan bool, 1), changed: f.notify,
		}
	}
	return f
}

// NeedLeaderElection is false: every replica pulls images.
func (*Follower) NeedLeaderElection() bool { return false }

// Start follows the sets until ctx ends. It returns no error.
func (f *Follower) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for _, one := range f.kinds {
		running.Go(func() { f.followDefinition(ctx, one) })
		running.Go(func() { f.followSets(ctx, one) })
	}
	running.Go(func() { f.tell(ctx) })
	running.Wait()
	return nil
}

// Sets returns those that there are. It waits until they are known, or known not to be
// readable, so that no image is pulled from where a set says not to because this process is
// young.
func (f *Follower) Sets(ctx context.Context) ([]Set, error) {
	for _, one := range f.kinds {
		select {
		case <-one.known:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return f.current(), nil
}

// current are the sets as they are now, sorted.
func (f *Follower) current() []Set {
	var sets []Set
	for _, kind := range slices.Sorted(maps.Keys(f.kinds)) {
		one := f.kinds[kind]
		one.mu.Lock()
		for _, name := range slices.Sorted(maps.Keys(one.sets)) {
			sets = append(sets, one.sets[name])
		}
		one.mu.Unlock()
	}
	return sets
}

func (f *Follower) notify() {
	select {
	case f.news <- struct{}{}:
	default: // as nobody has looked since
	}
}

// followDefinition watches whether the cluster serves the kind. There is one definition of
// its name, and nothing else is read.
func (f *Follower) followDefinition(ctx context.Context, one *followed) {
	follow(ctx, f.client, definitions, resources[one.kind]+"."+group.Group, &definition{one}, one.refused)
}

// followSets watches the sets while their kind is served.
func (f *Follower) followSets(ctx context.Context, one *followed) {
	var watching sync.WaitGroup
	defer watching.Wait()
	end := func() {}
	defer func() { end() }()
	is := false
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-one.served:
			if now == is {
				continue
			}
			end()
			watching.Wait()
			if is = now; !is {
				one.replace(nil)
				continue
			}
			watched, stop := context.WithCancel(ctx)
			end = stop
			watching.Go(func() {
				follow(watched, f.client, group.WithResource(resources[one.kind]), "", &objects{one}, one.refused)
			})
		}
	}
}

// followed are the sets of one kind.
type followed struct {
	kind    Kind
	changed func()

	// known is closed when it is known whether there are sets, and which.
	known chan struct{}
	once  sync.Once
	// served has one place, for the last answer.
	served chan bool

	mu   sync.Mutex
	sets map[string]Set
}

func (o *followed) nowKnown() { o.once.Do(func() { close(o.known) }) }

// setServed says whether the cluster serves the kind.
func (o *followed) setServed(is bool) {
	select {
	case <-o.served:
	default:
	}
	o.served <- is
	if !is {
		o.nowKnown()
	}
}

// refused goes on without what may not be read: an administrator who takes the right away
// wants just that, and images are pulled as the files say.
func (o *followed) refused(ctx context.Context, err error) {
	select {
	case <-o.known:
	default:
		ctrl.LoggerFrom(ctx).Error(err, "mirror sets are not used: give the controller the right to list and watch them, or mount a registries.conf", "kind", o.kind)
		o.nowKnown()
	}
}

// replace makes these all sets that there are.
func (o *followed) replace(sets map[string]Set) {
	o.mu.Lock()
	o.sets = sets
	o.mu.Unlock()
	o.nowKnown()
	o.changed()
}

// put adds a set, or takes it away.
func (o *followed) put(name string, set *Set) {
	o.mu.Lock()
	sets := maps.Clone(o.sets)
	if sets == nil {
		sets = map[string]Set{}
	}
	if delete(sets, name); set != nil {
		sets[name] = *set
	}
	o.sets = sets
	o.mu.Unlock()
	o.changed()
}

// tell says in the log which sets are in force and what of them is not, and of the latter,
// on the replica that leads, events.
func (f *Follower) tell(ctx context.Context) {
	logged, sent := map[string]string{}, map[string]string{}
	count := 0
	elected := f.elected
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.news:
		case <-elected:
			elected = nil
		}
		sets := f.current()
		_, problems, err := Registries(sets, func(string) (*sysregistriesv2.Registry, error) { return nil, nil })
		if err != nil {
			continue // it has only that of the function
		}
		logger := ctrl.LoggerFrom(ctx)
		if len(sets) > 0 || count > 0 {
			logger.Info("mirror sets have been read, and hold for the next pull", "sets", len(sets))
		}
		count = len(sets)
		logged = since(logged, problems, func(p Problem) {
			logger.Info("some of a mirror set is not used", "kind", p.Set.Kind, "name", p.Set.Name, "problems", p.Text)
		})
		if elected != nil {
			continue
		}
		sent = since(sent, problems, func(p Problem) {
			f.events.Event(&corev1.ObjectReference{
				APIVersion: group.String(), Kind: string(p.Set.Kind), Name: p.Set.Name, UID: p.Set.UID,
			}, corev1.EventTypeWarning, reasonNotUsed, "not used for images of extensions: "+p.Text)
		})
	}
}

// since calls do for the problems that differ from those before, and returns what was told.
func since(before map[string]string, problems []Problem, do func(Problem)) map[string]string {
	now := map[string]string{}
	for _, p := range problems {
		key := string(p.Set.Kind) + "/" + string(p.Set.UID)
		if now[key] = p.Text; before[key] != p.Text {
			do(p)
		}
	}
	return now
}

// isRefusal tells a lack of rights from an API server that is away.
func isRefusal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// isServed reads from a definition whether the API server answers requests for the version.
func isServed(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	has := func(list []any, field string, value any, also string, is any) bool {
		return slices.ContainsFunc(list, func(item any) bool {
			fields, _ := item.(map[string]any)
			return fields[field] == value && fields[also] == is
		})
	}
	return definition.GetDeletionTimestamp() == nil &&
		has(conditions, "type", "Established", "status", "True") && has(versions, "name", group.Version, "served", true)
}
