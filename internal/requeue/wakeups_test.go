package requeue_test

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterextensions/operator-controller/internal/requeue"
)

// controller starts, and after it has, once each.
func TestWakeupsNeverWait(t *testing.T) {
	t.Parallel()
	w := &requeue.Wakeups{}
	for range 5000 {
		w.Wake("a")
		w.Wake("b")
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := w.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		w.Wake("b")
		w.Wake("c")
	}
	var woken []string
	for queue.Len() > 0 {
		request, _ := queue.Get()
		woken = append(woken, request.Name)
	}
	slices.Sort(woken)
	if want := []string{"a", "b", "c"}; !slices.Equal(woken, want) {
		t.Errorf("woken are %v, want %v", woken, want)
	}
}

// TestWakeupsHavePriorities before and after the controller starts. Of two, the higher one
// counts.
func TestWakeupsHavePriorities(t *testing.T) {
	t.Parallel()
	w := &requeue.Wakeups{}
	queue := priorityqueue.New[reconcile.Request](t.Name())
	defer queue.ShutDown()
	wake := func(suffix string) {
		w.WakeWith("later"+suffix, requeue.Later)
		w.WakeWith("raised"+suffix, requeue.Later)
		w.Wake("raised" + suffix)
		w.WakeWith("raised"+suffix, requeue.Later)
	}
	wake("-early")
	if err := w.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	wake("")
	got := map[string]int{}
	for range 4 {
		request, priority, _ := queue.GetWithPriority()
		got[request.Name] = priority
	}
	want := map[string]int{"later-early": requeue.Later, "later": requeue.Later, "raised-early": requeue.Now, "raised": requeue.Now}
	if !maps.Equal(got, want) || queue.Len() > 0 {
		t.Errorf("priorities are %v, want %v, and %d more", got, want, queue.Len())
	}
}
