package environment

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/judge"
)

// statusManager is the name under which the API server knows what the controller writes.
const statusManager = "operator-controller"

// maxLies is how many are told: with more than these, one cause has them all.
const maxLies = 20

// lastWrites is how long may pass until writes are seen that were made before the end.
const lastWrites = 5 * time.Second

// statuses has each status that the controller writes judged, from a time on.
type statuses struct {
	objects dynamic.Interface
	end     context.CancelFunc
	watches sync.WaitGroup

	// isSettled says whether the watches have told of all that is there.
	isSettled func() bool

	mu     sync.Mutex
	last   map[string]*lastStatus
	judged int
	lies   []string
	err    error
}

// lastStatus is what was seen of an object last.
type lastStatus struct {
	reading judge.Reading
	version string // of the resource

	// hope is what it waits for since a time; it is told of once if that is too long.
	hope  string
	since time.Time
	told  bool
}

// watchStatuses begins with the next write: what is there already was written by others,
// where the cluster has begun with a snapshot.
func watchStatuses(ctx context.Context, config *rest.Config) (*statuses, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("watching statuses: %w", err)
	}
	// Where a test removes the definitions, each try to watch would be logged.
	watching, end := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	s := &statuses{objects: objects, end: end, last: map[string]*lastStatus{}}
	s.isSettled = func() bool {
		asking, asked := context.WithTimeout(watching, lastWrites)
		defer asked()
		return s.isUpToDate(asking)
	}
	for _, resource := range statusResources {
		if err := s.watch(ctx, watching, resource); err != nil {
			end()
			s.watches.Wait()
			return nil, fmt.Errorf("watching the statuses of %s: %w", resource, err)
		}
	}
	return s, nil
}

var statusResources = []string{"clusterextensions", "clustercatalogs"}

func (s *statuses) list(ctx context.Context, resource string) (*unstructured.UnstructuredList, error) {
	return s.objects.Resource(ocv1.GroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{})
}

// watch goes on where it was when a connection or the API server ends: no write is left out.
func (s *statuses) watch(ctx, watching context.Context, resource string) error {
	list, err := s.list(ctx, resource)
	if err != nil {
		return err
	}
	s.mu.Lock()
	for i := range list.Items {
		s.know(judge.Reading{Object: &list.Items[i]}, time.Now())
	}
	s.mu.Unlock()
	stream, err := watchtools.NewRetryWatcherWithContext(watching, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return s.objects.Resource(ocv1.GroupVersion.WithResource(resource)).Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	s.watches.Go(func() {
		defer stream.Stop()
		for event := range stream.ResultChan() {
			s.take(watching, event)
		}
		if watching.Err() == nil {
			s.fail(fmt.Errorf("the watch of the statuses of %s has ended", resource))
		}
	})
	return nil
}

func (s *statuses) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
}

func (s *statuses) take(ctx context.Context, event watch.Event) {
	object, ok := event.Object.(*unstructured.Unstructured)
	switch {
	case !ok:
		s.fail(fmt.Errorf("the watch of statuses tells of %s: %v", event.Type, event.Object))
		return
	case event.Type == watch.Deleted:
		s.mu.Lock()
		delete(s.last, statusKey(object))
		s.mu.Unlock()
		return
	}
	s.judge(ctx, object, time.Now())
}

// judge looks at a status unless it is the one from before.
func (s *statuses) judge(ctx context.Context, object *unstructured.Unstructured, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.last[statusKey(object)]
	if before != nil && before.tellsSame(object) {
		before.version = object.GetResourceVersion()
		return
	}
	reading, err := judge.Read(ctx, object)
	if err != nil {
		if ctx.Err() == nil {
			s.err = errors.Join(s.err, fmt.Errorf("what Argo CD says of %s: %w", statusKey(object), err))
		}
		return
	}
	s.know(reading, now)
	if !isWrittenByController(object) {
		return
	}
	s.judged++
	for _, lie := range judge.Status(reading) {
		s.lie(reading, lie)
	}
	// Who writes is alive, and could have given up hope elsewhere.
	for _, other := range s.last {
		if waits := now.Sub(other.since); other.hope != "" && !other.told && waits > judge.MaxHope {
			other.told = true
			s.lie(other.reading, fmt.Sprintf("it has waited in the same hope for %s, and nobody is told to act", waits.Round(time.Second)))
		}
	}
}

// know remembers a status. What it hopes for counts from when that was seen first.
func (s *statuses) know(reading judge.Reading, now time.Time) {
	next := &lastStatus{reading: reading, version: reading.Object.GetResourceVersion(), hope: reading.Hope(), since: now}
	if before := s.last[statusKey(reading.Object)]; before != nil && before.hope == next.hope {
		next.since, next.told = before.since, before.told
	}
	s.last[statusKey(reading.Object)] = next
}

func (s *statuses) lie(reading judge.Reading, lie string) {
	if len(s.lies) < maxLies {
		s.lies = append(s.lies, lie+"\n\t"+reading.String())
	}
}

// begin gives all hopes a new time: a controller that starts does not know how old they are.
func (s *statuses) begin(now time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, status := range s.last {
		status.since = now
	}
}

// tellsSame goes by all that readers look at.
func (l *lastStatus) tellsSame(object *unstructured.Unstructured) bool {
	before := l.reading.Object
	return before.GetUID() == object.GetUID() && before.GetGeneration() == object.GetGeneration() &&
		(before.GetDeletionTimestamp() == nil) == (object.GetDeletionTimestamp() == nil) &&
		reflect.DeepEqual(before.Object["status"], object.Object["status"])
}

// isWrittenByController says so of a status that has its defaults only, too.
func isWrittenByController(object *unstructured.Unstructured) bool {
	var latest *metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "status" && (latest == nil || latest.Time.Before(entry.Time)) {
			latest = &entry
		}
	}
	return latest == nil || latest.Manager == statusManager
}

func statusKey(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}

// stop waits for what was written last, and gives all lies as one error.
func (s *statuses) stop() error {
	if s == nil {
		return nil
	}
	for last := time.Now().Add(lastWrites); !s.isSettled() && time.Now().Before(last); {
		time.Sleep(lastWrites / 50)
	}
	s.end()
	s.watches.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lies) > 0 {
		slices.Sort(s.lies)
		s.err = errors.Join(s.err, fmt.Errorf("of %d statuses, some lead their readers astray (docs/status.md has what they are to say):\n%s",
			s.judged, strings.Join(s.lies, "\n")))
	}
	return s.err
}

// isUpToDate goes by what is there. An API server that has ended cannot be asked, and tells
// nothing more.
func (s *statuses) isUpToDate(ctx context.Context) bool {
	for _, resource := range statusResources {
		list, err := s.list(ctx, resource)
		if err != nil {
			return true
		}
		s.mu.Lock()
		behind := slices.ContainsFunc(list.Items, func(object unstructured.Unstructured) bool {
			last := s.last[statusKey(&object)]
			return last == nil || last.version != object.GetResourceVersion()
		})
		s.mu.Unlock()
		if behind {
			return false
		}
	}
	return true
}
