package controller

import "sigs.k8s.io/controller-runtime/pkg/event"

// Sources are what wakes extensions besides objects of the API.
type Sources struct {
	Wakeups Wakeups

	// APIs has the news that the cluster serves other APIs than before.
	APIs News

	// Rights has the news that somebody may do more or less than before.
	Rights News
}

// NewSources makes sources that take so many wake-ups while nobody reads them.
func NewSources(wakeups int) Sources {
	// Another piece of news before the first was heard would say no more.
	return Sources{Wakeups: make(Wakeups, wakeups), APIs: make(News, 1), Rights: make(News, 1)}
}

// Wakeups carries the names of extensions to look at from those who notice that
// something has changed. It must be read for as long as it is written.
type Wakeups chan event.TypedGenericEvent[string]

// Wake asks for a pass over an extension.
func (w Wakeups) Wake(extension string) { w <- event.TypedGenericEvent[string]{Object: extension} }

// News says that something has changed, and not what.
type News chan event.TypedGenericEvent[struct{}]

// Tell never waits.
func (n News) Tell() {
	select {
	case n <- event.TypedGenericEvent[struct{}]{}:
	default:
	}
}
