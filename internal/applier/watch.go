package applier

import (
	"context"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// watchKey is what one watch covers. Extensions with the same ServiceAccount
// share it.
type watchKey struct {
	account   ServiceAccount
	resource  schema.GroupVersionResource
	namespace string // empty for cluster-scoped kinds
}

// watch follows the metadata of one kind as one ServiceAccount.
type watch struct {
	kind   schema.GroupKind
	users  map[string]struct{} // extensions
	denied bool
	stop   context.CancelFunc
}

// observer is told what the watches see.
type observer interface {
	see(extension string, key ObjectKey, fingerprint string)
	blind(extension string)
	settledKeys(extension string) []ObjectKey
}

// watches are all that run in this process.
type watches struct {
	clients  *identityClients
	observer observer

	mu     sync.Mutex
	active map[watchKey]*watch
}

func newWatches(clients *identityClients, observer observer) *watches {
	return &watches{clients: clients, observer: observer, active: map[watchKey]*watch{}}
}

// follow makes the watches of an extension those of the given objects. It does
// not wait for them, and begins those anew that were denied before.
func (w *watches) follow(ctx context.Context, owner Extension, steps []step) {
	wanted := map[watchKey]schema.GroupKind{}
	for _, s := range steps {
		key := watchKey{account: owner.account(), resource: s.mapping.Resource, namespace: s.key.Namespace}
		wanted[key] = s.key.GroupKind
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release(owner.Name, func(key watchKey) bool {
		_, keep := wanted[key]
		return keep
	})
	for key, kind := range wanted {
		running, ok := w.active[key]
		if !ok {
			running = &watch{kind: kind, users: map[string]struct{}{}}
			w.active[key] = running
		}
		running.users[owner.Name] = struct{}{}
		if !ok || running.denied {
			w.start(ctx, key, running)
		}
	}
}

func (w *watches) unfollow(extension string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release(extension, func(watchKey) bool { return false })
}

func (w *watches) release(extension string, keep func(watchKey) bool) {
	maps.DeleteFunc(w.active, func(key watchKey, running *watch) bool {
		if keep(key) {
			return false
		}
		delete(running.users, extension)
		if len(running.users) > 0 {
			return false
		}
		running.stop()
		return true
	})
}

// denied names the kinds of an extension that its ServiceAccount may not watch,
// sorted.
func (w *watches) denied(extension string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := map[string]struct{}{}
	for _, running := range w.active {
		if _, used := running.users[extension]; used && running.denied {
			kinds[running.kind.String()] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// start runs a watch until it is stopped or denied, long after the pass that
// starts it.
func (w *watches) start(ctx context.Context, key watchKey, running *watch) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	running.stop, running.denied = cancel, false
	client, err := w.clients.metadata(key.account)
	if err != nil {
		running.denied = true
		return
	}
	selector := labels.Set{LabelOwnerKind: ownerKind}.String()
	informer := metadatainformer.NewFilteredMetadataInformer(client, key.resource, key.namespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = selector }).Informer()
	_ = informer.SetTransform(withoutManagedFields)
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if !apierrors.IsForbidden(err) {
			cache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		w.deny(running, cancel)
	})
	_, _ = informer.AddEventHandler(w.handler(running.kind))
	go informer.RunWithContext(ctx)
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.audit(key, running, informer.GetStore())
		}
	}()
}

// deny ends a watch. Its users get a pass that plans to look by itself.
func (w *watches) deny(running *watch, cancel context.CancelFunc) {
	w.mu.Lock()
	running.denied = true
	users := slices.Collect(maps.Keys(running.users))
	w.mu.Unlock()
	cancel()
	for _, extension := range users {
		w.observer.blind(extension)
	}
}

// withoutManagedFields keeps the largest part of the metadata out of memory.
func withoutManagedFields(object any) (any, error) {
	if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
		partial.ManagedFields = nil
	}
	return object, nil
}

func (w *watches) handler(kind schema.GroupKind) cache.ResourceEventHandler {
	see := func(object any, look func(metav1.Object) string) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		partial, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			return
		}
		key := ObjectKey{GroupKind: kind, Namespace: partial.Namespace, Name: partial.Name}
		w.observer.see(partial.Labels[LabelOwnerName], key, look(partial))
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { see(object, fingerprint) },
		UpdateFunc: func(_, object any) { see(object, fingerprint) },
		DeleteFunc: func(object any) { see(object, func(metav1.Object) string { return gone }) },
	}
}

// audit finds objects that went away before the watch began.
func (w *watches) audit(key watchKey, running *watch, store cache.Store) {
	w.mu.Lock()
	users := slices.Collect(maps.Keys(running.users))
	w.mu.Unlock()
	for _, extension := range users {
		for _, object := range w.observer.settledKeys(extension) {
			if object.GroupKind != running.kind || object.Namespace != key.namespace {
				continue
			}
			_, exists, err := store.GetByKey(cache.NewObjectName(object.Namespace, object.Name).String())
			if err == nil && !exists {
				w.observer.see(extension, object, gone)
			}
		}
	}
}
