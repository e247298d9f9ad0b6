package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// missing are objects of a kind that are not there.
type missing map[client.ObjectKey]bool

// watchReturns watches for objects that are gone. The function that it returns waits until
// all of them are there again, and gives the moments at which they were seen.
func (b *bench) watchReturns(ctx context.Context, gone []*unstructured.Unstructured) (wait func() ([]time.Time, error)) {
	kinds := map[schema.GroupVersionKind]missing{}
	for _, object := range gone {
		kind := object.GroupVersionKind()
		if kinds[kind] == nil {
			kinds[kind] = missing{}
		}
		kinds[kind][client.ObjectKeyFromObject(object)] = true
	}
	var mu sync.Mutex
	var times []time.Time
	seen := func() {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Now())
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	var group errgroup.Group
	for kind, objects := range kinds {
		group.Go(func() error { return b.watchKind(ctx, kind, objects, seen) })
	}
	return func() ([]time.Time, error) {
		defer cancel()
		return times, group.Wait()
	}
}

// watchKind takes out of missing what is there again, until nothing is left.
func (b *bench) watchKind(ctx context.Context, kind schema.GroupVersionKind, gone missing, seen func()) error {
	for len(gone) > 0 {
		// A watch begins with what there is, so none is missed when one ends.
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		watcher, err := b.client.Watch(ctx, list)
		if err != nil {
			return err
		}
		for event := range watcher.ResultChan() {
			object, ok := event.Object.(*metav1.PartialObjectMetadata)
			if !ok { // the API server ends the watch
				break
			}
			if key := client.ObjectKeyFromObject(object); gone[key] {
				delete(gone, key)
				seen()
			}
			if len(gone) == 0 {
				break
			}
		}
		watcher.Stop()
		if ctx.Err() != nil {
			return fmt.Errorf("%s not there again: %v: %w", kind.Kind, slices.Collect(maps.Keys(gone)), ctx.Err())
		}
	}
	return nil
}

// spread is when the first, the median and the last of several things happened.
type spread struct{ first, median, last time.Duration }

// spreadOf counts from a moment. There is at least one time.
func spreadOf(times []time.Time, since time.Time) spread {
	sorted := slices.SortedFunc(slices.Values(times), func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()) })
	return spread{
		first:  sorted[0].Sub(since),
		median: sorted[len(sorted)/2].Sub(since),
		last:   sorted[len(sorted)-1].Sub(since),
	}
}
