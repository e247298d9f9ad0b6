package storeddata

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// pageSize is how many objects are held at a time. A full page of objects
	// of usual size has a few MiB, and the API server answers it in one read.
	pageSize = 500
	// maxPasses is how often a survey begins. Pages are of one state of the
	// cluster, which the API server forgets after some minutes.
	maxPasses = 3
)

// Lister reads a page of the objects of one kind in all namespaces. A client for
// a dynamic resource is one.
type Lister interface {
	List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error)
}

// Survey checks all objects that the lister has. The lister reads the resource
// that [Validator.Resource] names. That objects cannot be listed is no error but
// a gap of the report. The error is that of the context; the report then has what
// was found so far.
func Survey(ctx context.Context, lister Lister, validator *Validator) (Report, error) {
	for passes := 1; ; passes++ {
		report, err := pass(ctx, lister, validator)
		switch {
		case ctx.Err() != nil:
			return report, ctx.Err()
		case err == nil:
			return report, nil
		case !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err), passes == maxPasses:
			report.gap(unreadable(validator.Resource().GroupResource(), err))
			return report, nil
		}
	}
}

// pass checks the objects page by page.
func pass(ctx context.Context, lister Lister, validator *Validator) (Report, error) {
	var report Report
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := lister.List(ctx, options)
		if err != nil {
			return report, err
		}
		problems := checkAll(ctx, validator, page.Items)
		// Checks that were interrupted have found nothing.
		if err := ctx.Err(); err != nil {
			return report, err
		}
		for i, object := range page.Items {
			report.add(object.GetNamespace(), object.GetName(), problems[i])
		}
		if page.GetContinue() == "" {
			return report, nil
		}
		options.Continue = page.GetContinue()
	}
}

// checkAll checks the objects of a page on all processors: the libraries of the
// API server take about a millisecond for an object.
func checkAll(ctx context.Context, validator *Validator, objects []unstructured.Unstructured) [][]Problem {
	problems := make([][]Problem, len(objects))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(objects) {
					return
				}
				problems[i] = validator.Check(ctx, &objects[i])
			}
		})
	}
	workers.Wait()
	return problems
}

// Inventory reports the objects that the lister has as deleted, as they would be
// together with their definition. It asks for the first few, and takes the number
// of the others from the API server. Errors are as for [Survey].
func Inventory(ctx context.Context, lister Lister, resource schema.GroupResource) (Report, error) {
	var report Report
	page, err := lister.List(ctx, metav1.ListOptions{Limit: maxOffenders})
	if ctx.Err() != nil {
		return report, ctx.Err()
	}
	if err != nil {
		report.gap(unreadable(resource, err))
		return report, nil
	}
	for i := range page.Items {
		report.add(page.Items[i].GetNamespace(), page.Items[i].GetName(),
			[]Problem{{Kind: Deleted, Detail: "object would be deleted"}})
	}
	if page.GetContinue() == "" {
		return report, nil
	}
	remaining := page.GetRemainingItemCount()
	if remaining == nil {
		report.gap(Gap{Reason: Unavailable, Detail: "there are more objects, but the API server does not say how many"})
		return report, nil
	}
	report.Objects += int(*remaining)
	report.Affected += int(*remaining)
	return report, nil
}

// unreadable says why the objects could not be listed.
func unreadable(resource schema.GroupResource, err error) Gap {
	if apierrors.IsForbidden(err) {
		return Gap{Reason: Forbidden, Detail: bounded(fmt.Sprintf(
			"needs the right to list %q of API group %q in all namespaces", resource.Resource, resource.Group))}
	}
	return Gap{Reason: Unavailable, Detail: bounded(fmt.Sprintf("cannot list %s: %v", resource, err))}
}
