package requeue_test

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterextensions/operator-controller/internal/requeue"
)

// TestQueueTellsWhoAsks: for some passes somebody asks, and others come in time.
func TestQueueTellsWhoAsks(t *testing.T) {
	t.Parallel()
	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Millisecond)
	tests := map[string]struct {
		add  func(queue priorityqueue.PriorityQueue[reconcile.Request])
		want []string
	}{
		"an event":  {func(q priorityqueue.PriorityQueue[reconcile.Request]) { q.Add(request("x")) }, []string{"x"}},
		"a wake-up": {func(q priorityqueue.PriorityQueue[reconcile.Request]) { requeue.Add(q, "x", requeue.Later) }, []string{"x"}},
		"several": {func(q priorityqueue.PriorityQueue[reconcile.Request]) {
			q.AddWithOpts(priorityqueue.AddOpts{}, request("x"), request("y"))
		}, []string{"x", "y"}},
		"at once": {func(q priorityqueue.PriorityQueue[reconcile.Request]) { q.AddAfter(request("x"), 0) }, []string{"x"}},
		"in time": {func(q priorityqueue.PriorityQueue[reconcile.Request]) { q.AddAfter(request("x"), time.Millisecond) }, nil},
		"in time, by controller": {func(q priorityqueue.PriorityQueue[reconcile.Request]) {
			q.AddWithOpts(priorityqueue.AddOpts{After: time.Millisecond}, request("x"))
		}, nil},
		"an error": {func(q priorityqueue.PriorityQueue[reconcile.Request]) { q.AddRateLimited(request("x")) }, nil},
		"one of a controller": {func(q priorityqueue.PriorityQueue[reconcile.Request]) {
			q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request("x"))
		}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			made := requeue.NewQueue(func(object string) { asked = append(asked, object) })(name, limiter)
			defer made.ShutDown()
			queue, ok := made.(priorityqueue.PriorityQueue[reconcile.Request])
			if !ok {
				t.Fatal("it has no priorities")
			}
			tc.add(queue)
			if !slices.Equal(asked, tc.want) {
				t.Errorf("asked for are %v, want %v", asked, tc.want)
			}
			if got, _ := queue.Get(); got.Name != "x" {
				t.Errorf("it gives %q", got.Name)
			}
		})
	}
}

// TestSourcesTellOthers: who is told of the passes that a source asks for is not told of
// those that others ask for.
func TestSourcesTellOthers(t *testing.T) {
	t.Parallel()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Millisecond)
	var asked, told []string
	queue := requeue.NewQueue(func(object string) { asked = append(asked, object) })(t.Name(), limiter)
	defer queue.ShutDown()
	from := &requeue.Wakeups{}
	from.Wake("early")
	if err := requeue.Telling(func(object string) { told = append(told, object) }, from).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	from.Wake("late")
	requeue.Add(queue, "other", requeue.Now)
	if want := []string{"early", "late"}; !slices.Equal(told, want) {
		t.Errorf("told of %v, want %v", told, want)
	}
	if want := []string{"other"}; !slices.Equal(asked, want) {
		t.Errorf("asked for are %v, want %v", asked, want)
	}
	for range 3 {
		request, _ := queue.Get()
		queue.Done(request)
	}
}

// TestQueueEnds has work come in while a queue ends, with workers that wait for work and
// others that have just done some. One that stays keeps a replica from letting go of its
// lease, and all others from acting: with controller-runtime 0.24.1 this fails
// within the first few rounds.
func TestQueueEnds(t *testing.T) {
	t.Parallel()
	for range 200 {
		queue := priorityqueue.New[string]("")
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for {
					item, ended := queue.Get()
					if ended {
						return
					}
					queue.Done(item)
				}
			})
		}
		for i := range 20 {
			queue.Add(strconv.Itoa(i))
		}
		queue.ShutDown()
		ended := make(chan struct{})
		go func() {
			workers.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatal("a worker of a queue that was shut down does not end")
		}
	}
}
