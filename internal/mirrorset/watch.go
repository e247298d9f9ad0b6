package mirrorset

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// follow keeps a store as the API server has the objects of a resource, or the one of a name,
// until ctx ends. After an error it tries again, with growing pauses; refused hears of those
// that rights are the reason of.
func follow(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, name string, to cache.ReflectorStore, refused func(context.Context, error)) {
	from, selector := client.Resource(resource), ""
	if name != "" {
		selector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
	judged := func(err error) {
		if isRefusal(err) {
			refused(ctx, err)
		}
	}
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			list, err := from.List(ctx, options)
			judged(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			watched, err := from.Watch(ctx, options)
			judged(err)
			return watched, err
		},
	}, client)
	options := cache.ReflectorOptions{Name: "mirrorset"}
	cache.NewReflectorWithOptions(source, &unstructured.Unstructured{}, to, options).RunWithContext(ctx)
}

// definition is a store that keeps nothing of the definition of a kind but whether it is
// served.
type definition struct{ *followed }

// Add looks at the definition.
func (d *definition) Add(object any) error {
	if found, ok := object.(*unstructured.Unstructured); ok {
		d.setServed(isServed(found))
	}
	return nil
}

// Update looks at the definition.
func (d *definition) Update(object any) error { return d.Add(object) }

// Delete says that the kind is gone.
func (d *definition) Delete(any) error {
	d.setServed(false)
	return nil
}

// Replace looks at the definition, if it is there.
func (d *definition) Replace(list []any, _ string) error {
	if len(list) == 0 {
		return d.Delete(nil)
	}
	return d.Add(list[0])
}

// Resync does nothing.
func (*definition) Resync() error { return nil }

// objects is a store that keeps of sets what can be used.
type objects struct{ *followed }

// Add reads a set.
func (o *objects) Add(object any) error {
	if found, ok := object.(*unstructured.Unstructured); ok {
		set := setOf(o.kind, found)
		o.put(set.Name, &set)
	}
	return nil
}

// Update reads a set anew.
func (o *objects) Update(object any) error { return o.Add(object) }

// Delete forgets a set.
func (o *objects) Delete(object any) error {
	if found, ok := object.(*unstructured.Unstructured); ok {
		o.put(found.GetName(), nil)
	}
	return nil
}

// Replace reads all sets.
func (o *objects) Replace(list []any, _ string) error {
	sets := make(map[string]Set, len(list))
	for _, object := range list {
		if found, ok := object.(*unstructured.Unstructured); ok {
			set := setOf(o.kind, found)
			sets[set.Name] = set
		}
	}
	o.replace(sets)
	return nil
}

// Resync does nothing.
func (*objects) Resync() error { return nil }
