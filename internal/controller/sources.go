package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/clusterextensions/operator-controller/internal/requeue"
)

// Sources are what wakes extensions besides objects of the API.
type Sources struct {
	Wakeups *requeue.Wakeups

	// APIs has the news that the cluster serves other APIs than before.
	APIs News

	// Rights has the news that somebody may do more or less than before.
	Rights News
}

// NewSources makes sources that nobody has written to.
func NewSources() Sources {
	// Another piece of news before the first was heard would say no more.
	return Sources{Wakeups: &requeue.Wakeups{}, APIs: make(News, 1), Rights: make(News, 1)}
}

// News says that something has changed, and not what.
type News chan event.TypedGenericEvent[struct{}]

// Tell never waits.
func (n News) Tell() {
	select {
	case n <- event.TypedGenericEvent[struct{}]{}:
	default:
	}
}
