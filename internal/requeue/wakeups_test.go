package requeue_test

import (
	"slices"
	"testing"

	"k8s.io/client-go/util/workqueue"
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
