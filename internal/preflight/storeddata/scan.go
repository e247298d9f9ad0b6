package storeddata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/objectlist"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

const (
	// firstPage is how many objects are asked for at first. What they have in bytes
	// says how many there are on the next page, at most pageSize, so that a page has
	// about pageBytes: the API server makes up the whole of it before it answers.
	firstPage = 20
	pageSize  = 500
	pageBytes = 8 << 20

	// maxObject is how many bytes an object may have as JSON. The API server takes 3
	// MiB and etcd 1.5 MiB, by default. It is also how much JSON is checked at a time:
	// decoded and copied, it has many times the size.
	maxObject = 4 << 20

	// maxStored is how many bytes are read of all objects. It is more than clusters have
	// of one kind, and takes some minutes.
	maxStored = 2 << 30

	// largeScan is after how many bytes a scan goes on only if it is its turn.
	largeScan = 64 << 20

	// maxPasses is how often a scan begins. Pages are of one state of the
	// cluster, which the API server forgets after some minutes.
	maxPasses = 3
)

// Lister reads a page of the objects of one kind in all namespaces, as JSON. The
// caller closes what it gives. Errors are those of the API server.
type Lister interface {
	List(ctx context.Context, options metav1.ListOptions) (io.ReadCloser, error)
}

// bounds are those of a scan in bytes; large is from how many on it waits for its turn.
type bounds struct{ object, stored, large int64 }

// Scan checks all objects that the lister has. The lister reads the resource
// that [Validator.Resource] names. That objects cannot be listed is no error but
// a gap of the report, and so is that there are more than can be checked. The error
// is that of the context; the report then has what was found so far. With
// [turn.ErrWait] there are many, and it is not their turn.
//
// However many objects there are, and however large, a few MiB of them are held at a
// time.
func Scan(ctx context.Context, lister Lister, validator *Validator) (Report, error) {
	return scanWithin(ctx, bounds{object: maxObject, stored: maxStored, large: largeScan}, lister, validator)
}

func scanWithin(ctx context.Context, within bounds, lister Lister, validator *Validator) (Report, error) {
	for passes := 1; ; passes++ {
		p := pass{lister: lister, validator: validator, bounds: within, free: semaphore.NewWeighted(within.object)}
		err := p.run(ctx)
		resource := validator.Resource().GroupResource()
		switch {
		case ctx.Err() != nil:
			return p.report, ctx.Err()
		case errors.Is(err, turn.ErrWait):
			return Report{}, err
		case err == nil:
		case errors.Is(err, objectlist.ErrLargeObject), errors.Is(err, objectlist.ErrManyBytes):
			p.report.gap(p.tooMuch(resource, err))
		case !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err), passes == maxPasses:
			p.report.gap(unreadable(resource, err))
		default:
			continue
		}
		p.report.sort()
		return p.report, nil
	}
}

// pass checks the objects page by page, and of a page object by object.
type pass struct {
	lister    Lister
	validator *Validator
	bounds    bounds

	// free are the bytes that may yet be checked at the same time.
	free *semaphore.Weighted

	mu     sync.Mutex
	report Report
}

func (p *pass) run(ctx context.Context) error {
	left := p.bounds.stored
	options := metav1.ListOptions{Limit: firstPage}
	for {
		if p.bounds.stored-left > p.bounds.large {
			if err := turn.Take(ctx); err != nil {
				return err
			}
		}
		page, err := p.page(ctx, options, &left)
		if err != nil {
			return err
		}
		if page.next == "" {
			return nil
		}
		options.Continue, options.Limit = page.next, page.limitAfter()
	}
}

// pageRead is what was read of a page.
type pageRead struct {
	next    string // token; empty at the end
	objects int
	bytes   int64
}

// limitAfter is how many objects like those of the page make up the next one.
func (r pageRead) limitAfter() int64 {
	return max(1, min(pageSize, pageBytes*int64(r.objects)/max(r.bytes, 1)))
}

// page takes what it reads off the bytes that are left.
func (p *pass) page(ctx context.Context, options metav1.ListOptions, left *int64) (pageRead, error) {
	body, err := p.lister.List(ctx, options)
	if err != nil {
		return pageRead{}, err
	}
	defer body.Close()
	before := *left
	// The libraries of the API server take about a millisecond for an object.
	var workers sync.WaitGroup
	var read pageRead
	meta, err := objectlist.Read(body, p.bounds.object, left, func(item []byte) error {
		weight := min(p.bounds.object, max(int64(len(item)), p.bounds.object/int64(runtime.GOMAXPROCS(0))))
		if err := p.free.Acquire(ctx, weight); err != nil {
			return err
		}
		read.objects++
		workers.Go(func() {
			defer p.free.Release(weight)
			p.check(ctx, item)
		})
		return nil
	})
	workers.Wait()
	read.next, read.bytes = meta.Continue, before-*left
	return read, err
}

// check adds one object to the report.
func (p *pass) check(ctx context.Context, item []byte) {
	object := &unstructured.Unstructured{}
	var problems []Problem
	if err := object.UnmarshalJSON(item); err != nil {
		problems = unknown(fmt.Sprintf("an object cannot be read: %v", err))
	} else {
		problems = p.validator.Check(ctx, object)
	}
	if ctx.Err() != nil {
		return // a check that was interrupted has found nothing
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.add(object.GetNamespace(), object.GetName(), problems)
}

// tooMuch says what of the objects is more than is read.
func (p *pass) tooMuch(resource schema.GroupResource, err error) Gap {
	if errors.Is(err, objectlist.ErrLargeObject) {
		return Gap{Reason: Unjudged, Detail: excerpt.Line(fmt.Sprintf(
			"one of %s has more than %d bytes, and neither it nor any after it was read", resource, p.bounds.object), maxText)}
	}
	return Gap{Reason: Unjudged, Detail: excerpt.Line(fmt.Sprintf(
		"%s have more than %d bytes, and none after the first %d was read", resource, p.bounds.stored, p.report.Objects), maxText)}
}

// Inventory reports the objects that the lister has as deleted, as they would be
// together with their definition. It asks for the first few, and takes the number
// of the others from the API server. Errors are as for [Scan].
func Inventory(ctx context.Context, lister Lister, resource schema.GroupResource) (Report, error) {
	report, meta, err := firstOf(ctx, lister)
	if ctx.Err() != nil {
		return report, ctx.Err()
	}
	if err != nil {
		report.gap(unreadable(resource, err))
		return report, nil
	}
	if meta.Continue == "" {
		return report, nil
	}
	if meta.RemainingItemCount == nil {
		report.gap(Gap{Reason: Unavailable, Detail: "there are more objects, but the API server does not say how many"})
		return report, nil
	}
	report.Objects += int(*meta.RemainingItemCount)
	report.Affected += int(*meta.RemainingItemCount)
	return report, nil
}

// firstOf reads the names of the first objects.
func firstOf(ctx context.Context, lister Lister) (Report, metav1.ListMeta, error) {
	var report Report
	body, err := lister.List(ctx, metav1.ListOptions{Limit: maxOffenders})
	if err != nil {
		return report, metav1.ListMeta{}, err
	}
	defer body.Close()
	left := int64(maxStored)
	meta, err := objectlist.Read(body, maxObject, &left, func(item []byte) error {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(item, &object); err != nil {
			return err
		}
		report.add(object.Namespace, object.Name, []Problem{{Kind: Deleted, Detail: "object would be deleted"}})
		return nil
	})
	return report, meta, err
}

// unreadable says why the objects could not be listed.
func unreadable(resource schema.GroupResource, err error) Gap {
	if apierrors.IsForbidden(err) {
		return Gap{Reason: Forbidden, Detail: excerpt.Line(fmt.Sprintf(
			"needs the right to list %q of API group %q in all namespaces", resource.Resource, resource.Group), maxText)}
	}
	return Gap{Reason: Unavailable, Detail: excerpt.Line(fmt.Sprintf("cannot list %s: %v", resource, err), maxText)}
}
