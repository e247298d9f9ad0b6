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

// watch rings news with every change of the resources until ctx ends, for which
// running waits.
func (p *Platform) watch(ctx context.Context, running *sync.WaitGroup, resources []schema.GroupVersionResource, news bell) {
	for _, resource := range resources {
		running.Go(func() { watch(ctx, p.metadata, resource, news) })
	}
}

// watch rings news with every change of a resource until ctx ends. Whatever is
// in the way is tried again with growing pauses.
func watch(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, news bell) {
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
	cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, news, options).RunWithContext(ctx)
}

// bell is a store that keeps nothing: what matters is that something changed. It
// has one place, and rings no more before it is taken.
type bell chan struct{}

var _ cache.TransformingStore = make(bell)

// Add rings.
func (b bell) Add(any) error { return b.ring() }

// Update rings.
func (b bell) Update(any) error { return b.ring() }

// Delete rings.
func (b bell) Delete(any) error { return b.ring() }

// Replace rings: something may have changed while there was no watch.
func (b bell) Replace([]any, string) error { return b.ring() }

// Resync does nothing.
func (bell) Resync() error { return nil }

// Transformer keeps all but names out of memory while a list is received:
// annotations can have a whole definition in them.
func (bell) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
			partial.ObjectMeta = metav1.ObjectMeta{Name: partial.Name, ResourceVersion: partial.ResourceVersion}
		}
		return object, nil
	}
}

func (b bell) ring() error {
	select {
	case b <- struct{}{}:
	default:
	}
	return nil
}
