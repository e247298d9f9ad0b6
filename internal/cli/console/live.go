package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/console"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/leadership"
)

// live follows the extensions and the catalogs of a cluster, by a watch each.
type live struct {
	extensions, catalogs *followed

	mu      sync.Mutex
	absence string
	count   uint64
	next    chan struct{}
}

// leaderInterval is the time between two reads of the lease of the controller.
const leaderInterval = 10 * time.Second

var _ console.Live = &live{}

// followed are the objects of one kind.
type followed struct {
	store cache.Store

	mu                sync.Mutex
	listErr, watchErr error
}

// follow begins to follow, until ctx ends. It waits until each kind has been listed, or may
// not be.
func follow(ctx context.Context, config *rest.Config) (*live, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	lasting := rest.CopyConfig(config)
	lasting.Timeout = 0                     // it would end watches
	kinds := meta.NewDefaultRESTMapper(nil) // so that nobody needs to be asked for them
	kinds.Add(ocv1.GroupVersion.WithKind("ClusterExtension"), meta.RESTScopeRoot)
	kinds.Add(ocv1.GroupVersion.WithKind("ClusterCatalog"), meta.RESTScopeRoot)
	api, err := client.NewWithWatch(lasting, client.Options{Scheme: scheme, Mapper: kinds})
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	l := &live{next: make(chan struct{})}
	l.extensions = l.start(ctx, api, &ocv1.ClusterExtension{}, func() client.ObjectList { return &ocv1.ClusterExtensionList{} })
	l.catalogs = l.start(ctx, api, &ocv1.ClusterCatalog{}, func() client.ObjectList { return &ocv1.ClusterCatalogList{} })
	return l, nil
}

// followLeader reads the lease of the controller, until ctx ends.
func (l *live) followLeader(ctx context.Context, leader leadership.Watcher) {
	for {
		absence := leader.Absence(ctx)
		l.mu.Lock()
		isNews := (l.absence == "") != (absence == "")
		l.absence = absence
		l.mu.Unlock()
		if isNews {
			l.touch()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(leaderInterval):
		}
	}
}

// Absence returns why no controller is running, as of the last read of the lease; empty if one is running.
func (l *live) Absence() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.absence
}

// start follows one kind.
func (l *live) start(ctx context.Context, api client.WithWatch, kind client.Object, newList func() client.ObjectList) *followed {
	f := &followed{}
	tried := make(chan struct{})
	var once sync.Once
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := newList()
			err := api.List(ctx, list, &client.ListOptions{Raw: &options})
			l.failed(&f.mu, &f.listErr, err)
			if err != nil {
				once.Do(func() { close(tried) })
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := api.Watch(ctx, newList(), &client.ListOptions{Raw: &options})
			l.failed(&f.mu, &f.watchErr, err)
			return events, err
		},
	}
	informer := cache.NewSharedInformer(cache.ToListWatcherWithWatchListSemantics(source, listsFirst{}), kind, 0)
	f.store = informer.GetStore()
	// These fail only once an informer runs.
	_ = informer.SetTransform(withoutManagers)
	_ = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}) // pages say it
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { l.touch() },
		UpdateFunc: func(any, any) { l.touch() },
		DeleteFunc: func(any) { l.touch() },
	})
	go informer.RunWithContext(ctx)
	go func() {
		cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
		once.Do(func() { close(tried) })
	}()
	select {
	case <-tried:
	case <-ctx.Done():
	}
	return f
}

// listsFirst keeps a reflector from streaming the list: whoever may list may not have the
// right to watch, and is to see what there is all the same.
type listsFirst struct{}

// IsWatchListSemanticsUnSupported says so.
func (listsFirst) IsWatchListSemanticsUnSupported() bool { return true }

// withoutManagers drops what nobody sees and what takes much room.
func withoutManagers(object any) (any, error) {
	if has, ok := object.(metav1.Object); ok {
		has.SetManagedFields(nil)
	}
	return object, nil
}

// failed notes why something failed, or that it no longer does.
func (l *live) failed(mu *sync.Mutex, at *error, err error) {
	mu.Lock()
	changed := (*at == nil) != (err == nil)
	*at = err
	mu.Unlock()
	if changed {
		l.touch()
	}
}

// touch says that something has changed.
func (l *live) touch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	close(l.next)
	l.next = make(chan struct{})
}

// News counts the changes, and gives what is closed with the next one.
func (l *live) News() (count uint64, next <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count, l.next
}

// Extensions are those that were last seen.
func (l *live) Extensions() console.Seen[ocv1.ClusterExtension] {
	return seen[ocv1.ClusterExtension](l.extensions, func(ext *ocv1.ClusterExtension) string { return ext.Name })
}

// Catalogs are those that were last seen.
func (l *live) Catalogs() console.Seen[ocv1.ClusterCatalog] {
	return seen[ocv1.ClusterCatalog](l.catalogs, func(catalog *ocv1.ClusterCatalog) string { return catalog.Name })
}

func seen[T any](f *followed, name func(*T) string) console.Seen[T] {
	var found console.Seen[T]
	for _, stored := range f.store.List() {
		if item, ok := stored.(*T); ok {
			found.Items = append(found.Items, item)
		}
	}
	slices.SortFunc(found.Items, func(a, b *T) int { return cmp.Compare(name(a), name(b)) })
	f.mu.Lock()
	defer f.mu.Unlock()
	found.Err = cmp.Or(f.listErr, f.watchErr)
	return found
}
