package applier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// stream reads what becomes of the objects of one watch and keeps nothing of
// it. There can be thousands, so one is one goroutine, which holds neither a
// client nor a buffer while it waits.
type stream struct {
	clients  *identityClients
	key      watchKey
	kind     schema.GroupKind
	selector string

	// see is told of every object that is there, and of every change.
	see func(sighting)

	// listed is told, each time the stream begins anew, what is there.
	listed func(map[ObjectKey]struct{})

	// version is where to go on after an interruption; empty to begin anew.
	version string

	// plain says that the API server does not stream lists.
	plain bool
}

// streamSpan is the least time after which a stream is opened again, so that one
// that has died unnoticed on the way is not waited for. It can be twice as long.
const streamSpan = 10 * time.Minute

// newStreamPauses are those between two attempts. The first one spreads what was
// cut off at the same time.
func newStreamPauses() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Steps: 10, Cap: 30 * time.Second}
}

// run reads until ctx ends or the ServiceAccount may not, which is returned.
// Whatever else is in the way is tried again.
func (s *stream) run(ctx context.Context) (denied bool) {
	pauses := newStreamPauses()
	for ctx.Err() == nil {
		progress, err := s.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case apierrors.IsForbidden(err):
			return true
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			s.version = ""
		case apierrors.IsInvalid(err) && s.version == "" && !s.plain:
			s.plain = true
			continue
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			utilruntime.HandleErrorWithContext(ctx, err, "Failed to watch", "resource", s.key.resource, "user", s.key.account.User())
		}
		if progress {
			pauses = newStreamPauses()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauses.Step()):
		}
	}
	return false
}

// follow opens the stream once and reads it to its end, which is always an error.
// It reports whether anything was read.
func (s *stream) follow(ctx context.Context) (progress bool, err error) {
	if s.version == "" && s.plain {
		if err := s.list(ctx); err != nil {
			return false, err
		}
	}
	found := map[ObjectKey]struct{}{}
	if s.version != "" {
		found = nil
	}
	body, err := s.clients.open(ctx, s.key, s.kind, s.watchOptions())
	if err != nil {
		return false, err
	}
	defer body.Close()
	for events := newEvents(body); ; progress = true {
		kind, object, err := events.next()
		if err != nil {
			return progress, err
		}
		seen, err := sightingOf(s.kind, kind, object)
		if err != nil {
			return progress, err
		}
		found = s.take(seen, found)
	}
}

// take passes on one event. found is what the list has so far; nil after it.
func (s *stream) take(seen sighting, found map[ObjectKey]struct{}) map[ObjectKey]struct{} {
	if seen.event == apiwatch.Bookmark {
		if found != nil && !seen.endsList {
			return found
		}
		if found != nil {
			s.listed(found)
		}
		s.version = seen.version
		return nil
	}
	if found == nil {
		s.version = seen.version
	} else if seen.event != apiwatch.Deleted {
		found[seen.key] = struct{}{}
	}
	s.see(seen)
	return found
}

// watchOptions ask for a list first, unless the stream goes on.
func (s *stream) watchOptions() metav1.ListOptions {
	seconds := int64((streamSpan + rand.N(streamSpan)).Seconds()) //nolint:gosec // spreads load
	options := metav1.ListOptions{
		LabelSelector:       s.selector,
		ResourceVersion:     s.version,
		AllowWatchBookmarks: true,
		TimeoutSeconds:      &seconds,
		Watch:               true,
	}
	if s.version == "" {
		options.SendInitialEvents = new(true)
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	return options
}

// list is for API servers that do not stream lists.
func (s *stream) list(ctx context.Context) error {
	body, err := s.clients.open(ctx, s.key, s.kind, metav1.ListOptions{LabelSelector: s.selector})
	if err != nil {
		return err
	}
	defer body.Close()
	objects, version, err := decodeList(body)
	if err != nil {
		return fmt.Errorf("reading the list of %s: %w", s.key.resource, err)
	}
	found := map[ObjectKey]struct{}{}
	for _, object := range objects {
		seen, err := sightingOf(s.kind, apiwatch.Added, object)
		if err != nil {
			return err
		}
		found[seen.key] = struct{}{}
		s.see(seen)
	}
	s.listed(found)
	s.version = version
	return nil
}
