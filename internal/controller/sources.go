package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/clusterextensions/operator-controller/internal/requeue"
)

// Sources are what wakes extensions besides objects of the API.
type Sources struct {
	Wakeups *requeue.Wakeups

	// Content wakes extensions of which installed content has drifted, or does otherwise.
	Content *requeue.Wakeups

	// APIs signals that the cluster serves other APIs than before.
	APIs Signal

	// Rights signals that somebody has more or fewer rights than before.
	Rights Signal

	// Policies signals that images are judged by other ImagePolicies than before.
	Policies Signal
}

// NewSources makes sources that nobody has written to.
func NewSources() Sources {
	// A second signal before the first was received would say no more.
	return Sources{Wakeups: &requeue.Wakeups{}, Content: &requeue.Wakeups{}, APIs: make(Signal, 1), Rights: make(Signal, 1), Policies: make(Signal, 1)}
}

// Signal says that something has changed, and not what.
type Signal chan event.TypedGenericEvent[struct{}]

// Send never waits.
func (s Signal) Send() {
	select {
	case s <- event.TypedGenericEvent[struct{}]{}:
	default:
	}
}
