package requeue_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

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
