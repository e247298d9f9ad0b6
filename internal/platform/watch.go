package platform

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// watch signals every change of the resources until ctx ends. Running waits for that.
func (p *Platform) watch(ctx context.Context, running *sync.WaitGroup, resources []schema.GroupVersionResource, changes signal) {
	for _, resource := range resources {
		running.Go(func() { watch(ctx, p.metadata, resource, changes) })
	}
}

// watch signals every change of a resource until ctx ends. After an error it tries again,
// with growing pauses.
func watch(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, changes signal) {
	objects := client.Resource(resource)
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			return objects.Watch(ctx, options)
		},
	}, client)
	options := cache.ReflectorOptions{Name: "platform", TypeDescription: resource.String()}
	cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, changes, options).RunWithContext(ctx)
}

// signal is a store that keeps nothing: all that matters is that something has changed. It
// holds one signal, and drops others until that one is received.
type signal chan struct{}

var _ cache.TransformingStore = make(signal)

// Add signals a change.
func (s signal) Add(any) error { return s.send() }

// Update signals a change.
func (s signal) Update(any) error { return s.send() }

// Delete signals a change.
func (s signal) Delete(any) error { return s.send() }

// Replace signals a change: something may have changed while there was no watch.
func (s signal) Replace([]any, string) error { return s.send() }

// Resync does nothing.
func (signal) Resync() error { return nil }

// Transformer keeps all but names out of memory while a list is received:
// annotations can have a whole definition in them.
func (signal) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
			partial.ObjectMeta = metav1.ObjectMeta{Name: partial.Name, ResourceVersion: partial.ResourceVersion}
		}
		return object, nil
	}
}

func (s signal) send() error {
	select {
	case s <- struct{}{}:
	default:
	}
	return nil
}
