package follow

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Set follows objects of one kind, each by its name. It is a source of a
// controller that has one thing to do: every change asks for the same, empty
// request, and so does the start. It is safe for concurrent use.
type Set[T client.Object] struct {
	open    func(types.NamespacedName) toolscache.ListerWatcher
	example T
	// wanted has one place, since only the latest wish counts.
	wanted chan struct{}

	mu       sync.RWMutex
	keys     map[types.NamespacedName]bool
	followed map[types.NamespacedName]*followed
}

var _ source.Source = &Set[client.Object]{}

type followed struct {
	store  toolscache.Store
	synced func() bool
	stop   context.CancelFunc
}

// Secrets returns a Set of Secrets that is read with api. It follows nothing yet.
func Secrets(api kubernetes.Interface) *Set[*corev1.Secret] {
	return newSet(&corev1.Secret{}, func(key types.NamespacedName) toolscache.ListerWatcher {
		return listerWatcher(api, api.CoreV1().Secrets(key.Namespace), key.Name)
	})
}

// ServiceAccounts returns a Set of ServiceAccounts that is read with api. It
// follows nothing yet.
func ServiceAccounts(api kubernetes.Interface) *Set[*corev1.ServiceAccount] {
	return newSet(&corev1.ServiceAccount{}, func(key types.NamespacedName) toolscache.ListerWatcher {
		return listerWatcher(api, api.CoreV1().ServiceAccounts(key.Namespace), key.Name)
	})
}

func newSet[T client.Object](example T, open func(types.NamespacedName) toolscache.ListerWatcher) *Set[T] {
	return &Set[T]{
		open:     open,
		example:  example,
		wanted:   make(chan struct{}, 1),
		keys:     map[types.NamespacedName]bool{},
		followed: map[types.NamespacedName]*followed{},
	}
}

// reader is what the typed clients of client-go have in common.
type reader[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

func listerWatcher[L runtime.Object](api kubernetes.Interface, from reader[L], name string) toolscache.ListerWatcher {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return from.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return from.Watch(ctx, options)
		},
	}, api)
}

// Follow makes keys the objects that are followed, instead of those before.
func (s *Set[T]) Follow(keys ...types.NamespacedName) {
	wanted := make(map[types.NamespacedName]bool, len(keys))
	for _, key := range keys {
		wanted[key] = true
	}
	s.mu.Lock()
	s.keys = wanted
	s.mu.Unlock()
	select {
	case s.wanted <- struct{}{}:
	default:
	}
}

// Lookup returns an object as it was last seen, which is not to be changed. It
// is the zero T when there is none, and not known until it has been asked for.
func (s *Set[T]) Lookup(key types.NamespacedName) (object T, known bool) {
	s.mu.RLock()
	found := s.followed[key]
	s.mu.RUnlock()
	if found == nil || !found.synced() {
		return object, false
	}
	item, exists, err := found.store.GetByKey(key.String())
	if err != nil || !exists {
		return object, err == nil
	}
	object, known = item.(T)
	return object, known
}

// Start follows the objects in the background until ctx ends.
func (s *Set[T]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	changed := func() { queue.Add(reconcile.Request{}) }
	changed()
	go func() {
		for {
			s.adjust(ctx, changed)
			select {
			case <-ctx.Done():
				return
			case <-s.wanted:
			}
		}
	}()
	return nil
}

// adjust starts and stops watches so that there is one for each key.
func (s *Set[T]) adjust(ctx context.Context, changed func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, watched := range s.followed {
		if !s.keys[key] {
			watched.stop()
			delete(s.followed, key)
		}
	}
	for key := range s.keys {
		if s.followed[key] == nil {
			s.followed[key] = s.start(ctx, key, changed)
		}
	}
}

func (s *Set[T]) start(ctx context.Context, key types.NamespacedName, changed func()) *followed {
	ctx, stop := context.WithCancel(ctx)
	store, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: s.open(key),
		ObjectType:    s.example,
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed() },
			UpdateFunc: func(any, any) { changed() },
			DeleteFunc: func(any) { changed() },
		},
	})
	go informer.RunWithContext(ctx)
	go func() {
		// That there is no such object comes with no event.
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			changed()
		}
	}()
	return &followed{store: store, synced: informer.HasSynced, stop: stop}
}
