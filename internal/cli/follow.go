package cli

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

const (
	// pageSize is how many extensions one request lists, and maxPages how many requests
	// there are at the most.
	pageSize = 500
	maxPages = 40
)

// List reads all, or the named one. Version is from where a watch goes on. With the name, it
// takes the right to read that one alone.
func (e *Extensions) List(ctx context.Context, name string) (found []ocv1.ClusterExtension, version string, err error) {
	if name != "" {
		ext, err := e.Get(ctx, name)
		if err != nil {
			return nil, "", err
		}
		return []ocv1.ClusterExtension{*ext}, ext.ResourceVersion, nil
	}
	options := metav1.ListOptions{Limit: pageSize}
	for range maxPages {
		page, err := e.api.List(ctx, options)
		if err != nil {
			return nil, "", fmt.Errorf("listing ClusterExtensions: %w", err)
		}
		for i := range page.Items {
			ext, err := typed(&page.Items[i])
			if err != nil {
				return nil, "", err
			}
			found = append(found, *ext)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return found, page.GetResourceVersion(), nil
		}
	}
	return nil, "", fmt.Errorf("there are more than %d ClusterExtensions: give the name of one", pageSize*maxPages)
}

// Follow hands over what List gives, and then what becomes of each, by a watch, until next says
// that it is enough or fails. With deleted, the extension is gone. What happened meanwhile may
// be left out where a watch is interrupted, and the end of it is handed over.
func (e *Extensions) Follow(ctx context.Context, name string, next func(ext *ocv1.ClusterExtension, deleted bool) (done bool, err error)) error {
	for {
		found, version, err := e.List(ctx, name)
		if err != nil {
			return err
		}
		for i := range found {
			if done, err := next(&found[i], false); done || err != nil {
				return err
			}
		}
		done, err := e.follow(ctx, name, version, next)
		if done || err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return err
		}
	}
}

// follow watches from a version on.
func (e *Extensions) follow(ctx context.Context, name, version string, next func(*ocv1.ClusterExtension, bool) (bool, error)) (bool, error) {
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, &watches{api: e.watches, name: name})
	if err != nil {
		return false, fmt.Errorf("watching ClusterExtensions: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return false, fmt.Errorf("watching ClusterExtensions: %w", apierrors.FromObject(event.Object))
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Bookmark {
			continue
		}
		ext, err := typed(object)
		if err != nil {
			return false, err
		}
		if done, err := next(ext, event.Type == watch.Deleted); done || err != nil {
			return done, err
		}
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return false, errors.New("watching ClusterExtensions: the API server refuses it, which takes the right to watch them")
}

// watches starts watches of all extensions, or of the named one.
type watches struct {
	api  dynamic.ResourceInterface
	name string
}

var _ cache.WatcherWithContext = &watches{}

func (w *watches) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if w.name != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, w.name).String()
	}
	watcher, err := w.api.Watch(ctx, options)
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
		// It would be tried again and again, though nothing but a new list helps.
		gone := watch.NewFakeWithChanSize(1, false)
		gone.Error(&status.ErrStatus)
		return gone, nil
	}
	return watcher, err
}
