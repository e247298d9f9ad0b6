package drift

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/objectlist"
)

// stream reads the events of one watch and passes them on. There can be thousands, so each
// is one goroutine that holds neither a client nor a buffer while it waits. See
// docs/adr/0019-what-stays-by-hand.md for why it is no Reflector.
type stream struct {
	clients  *impersonation.Clients
	key      watchKey
	kind     schema.GroupKind
	selected selection

	// began, if set, is called before each initial sync.
	began func()

	// handle is called with every object of the initial sync, and with every change. It reports
	// whether the end of the initial sync is to tell that the object exists.
	handle func(event) (counts bool)

	// synced is called at the end of each initial sync, with all objects that exist and count,
	// and the resource version at which they do.
	synced func(found map[object.Key]struct{}, version string)

	// reached, if set, is called with each resource version up to which everything was passed
	// on.
	reached func(version string)

	// version is the resource version from which to go on after an interruption; empty to
	// begin with an initial sync.
	version string

	// since is the resource version that an initial sync is no older than; empty for the
	// newest one, for which the API server has to ask its storage each time.
	since string

	// found are the objects of the initial sync so far that count; nil after it.
	found map[object.Key]struct{}

	// plain says that the API server does not stream lists.
	plain bool

	// patience is that with a shared watch.
	patience patience

	// now is the clock.
	now func() time.Time
}

// streamSpan is the least time after which a stream is opened again, so that one
// that has died unnoticed on the way is not waited for. It can be twice as long.
const streamSpan = 10 * time.Minute

// newStreamPauses are those between two attempts. The first one spreads what was
// cut off at the same time.
func newStreamPauses() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Steps: 10, Cap: 30 * time.Second}
}

// run reads until ctx ends, or until the watch is given up, of which it returns the cause: if
// whoever it reads as is denied, and a shared one also if [patience] with it is over. After any
// other error it tries again.
func (s *stream) run(ctx context.Context) error {
	pauses := newStreamPauses()
	for {
		progress, err := s.readOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was to end
		case s.asksForLess(err):
			continue
		case s.isOver(err):
			return err
		}
		s.interrupted(ctx, err)
		if progress && !errors.Is(err, errLargeEvent) {
			pauses = newStreamPauses()
		}
		pause(ctx, pauses.Step())
	}
}

func (s *stream) isOver(err error) bool {
	if s.key.shared {
		return s.patience.endsWith(err, s.now())
	}
	return apierrors.IsForbidden(err)
}

// pause returns after a while, or when ctx ends.
func pause(ctx context.Context, span time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(span):
	}
}

// asksForLess leaves out of the next request for an initial sync what a server does not know,
// if that is what an error is about. The servers of other APIs need not know of all of it.
func (s *stream) asksForLess(err error) bool {
	switch {
	case s.version != "":
		return false
	case apierrors.IsInvalid(err) && !s.plain:
		s.plain = true
	case s.since != "" && apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		// Versions of one kind say nothing of another that is stored elsewhere, and those
		// from before a restored backup say nothing at all.
		s.since = ""
	case s.selected.name != "" && apierrors.IsBadRequest(err):
		s.selected.name, s.since = "", ""
	default:
		return false
	}
	return true
}

// interrupted decides where to go on, and logs what was in the way.
func (s *stream) interrupted(ctx context.Context, err error) {
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		// It is too large after a backup was restored.
		s.version, s.since = "", ""
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
	case isOfConnection(err):
		// There can be thousands of streams, and all of them end with an API server.
		log.FromContext(ctx).V(1).Info("a watch was interrupted", "resource", s.key.resource, "user", s.key.user(), "reason", err.Error())
	default:
		s.since = "" // in case that this is what the server does not take
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to watch", "resource", s.key.resource, "user", s.key.user())
	}
}

// isOfConnection tells a connection that has ended, or cannot be had, from what the API
// server says.
func isOfConnection(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok || utilnet.IsHTTP2ConnectionLost(err) || strings.Contains(err.Error(), "server sent GOAWAY")
}

// readOnce opens the stream once and reads it to its end, which is always an error.
// It reports whether anything was read.
func (s *stream) readOnce(ctx context.Context) (progress bool, err error) {
	body, err := s.open(ctx)
	if err != nil {
		return false, err
	}
	defer body.Close()
	return s.read(newEventReader(body))
}

// open starts the watch where it was interrupted, or with an initial sync.
func (s *stream) open(ctx context.Context) (io.ReadCloser, error) {
	if s.version == "" && s.began != nil {
		s.began()
	}
	if s.version == "" && s.plain {
		if err := s.list(ctx); err != nil {
			return nil, err
		}
	}
	s.found = nil
	if s.version == "" {
		s.found = map[object.Key]struct{}{}
	}
	return open(ctx, s.clients, s.key, s.kind, s.watchOptions())
}

// read is where streams wait, nearly all of the time. What is on the stack then
// counts thousands of times, so it keeps nothing there.
func (s *stream) read(events *eventReader) (progress bool, err error) {
	for ; ; progress = true {
		if err := events.wait(); err != nil {
			return progress, err
		}
		if err := s.handleNext(events); err != nil {
			return progress, err
		}
	}
}

// handleNext reads one event and passes it on.
func (s *stream) handleNext(events *eventReader) error {
	seen, err := s.next(events)
	if err != nil {
		return err
	}
	if seen.kind == apiwatch.Bookmark {
		s.noteBookmark(seen)
		return nil
	}
	counts := s.handle(seen)
	if s.found == nil {
		s.reach(seen.version)
	} else if counts && seen.kind != apiwatch.Deleted {
		s.found[seen.key] = struct{}{}
	}
	return nil
}

// next reads one event, of one that is too large only which object it is of.
func (s *stream) next(events *eventReader) (event, error) {
	kind, data, err := events.next()
	switch {
	case errors.Is(err, errLargeEvent):
		return events.skipLarge(s.kind)
	case err != nil:
		return event{}, err
	default:
		return s.eventOf(kind, data)
	}
}

// eventOf decodes an event. A shared watch reports no status.
func (s *stream) eventOf(of apiwatch.EventType, data json.RawMessage) (event, error) {
	seen, err := eventOf(s.kind, of, data)
	if s.key.shared {
		seen = seen.withoutStatus()
	}
	return seen, err
}

// reach notes that everything up to a resource version was passed on.
func (s *stream) reach(version string) {
	s.version = version
	s.patience.advance()
	if s.reached != nil {
		s.reached(version)
	}
}

// noteBookmark remembers how far the stream has come.
func (s *stream) noteBookmark(bookmark event) {
	if s.found != nil && !bookmark.endsList {
		return
	}
	if s.found != nil {
		s.synced(s.found, bookmark.version)
	}
	s.found = nil
	s.reach(bookmark.version)
}

// watchOptions ask for a list first, unless the stream goes on.
func (s *stream) watchOptions() metav1.ListOptions {
	seconds := int64((streamSpan + rand.N(streamSpan)).Seconds()) //nolint:gosec // spreads load
	options := metav1.ListOptions{
		LabelSelector:       s.selected.labels,
		FieldSelector:       s.selected.fields(),
		ResourceVersion:     s.version,
		AllowWatchBookmarks: true,
		TimeoutSeconds:      &seconds,
		Watch:               true,
	}
	if s.version == "" {
		options.ResourceVersion = s.since
		options.SendInitialEvents = new(true)
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	return options
}

// pageSize is how many objects are asked for at a time.
const pageSize = 500

// list is for API servers that do not stream lists.
func (s *stream) list(ctx context.Context) error {
	found := map[object.Key]struct{}{}
	options := metav1.ListOptions{LabelSelector: s.selected.labels, FieldSelector: s.selected.fields(), Limit: pageSize}
	for {
		page, err := s.page(ctx, options, found)
		if err != nil {
			return fmt.Errorf("reading the list of %s: %w", s.key.resource, err)
		}
		if page.Continue == "" {
			s.synced(found, page.ResourceVersion)
			s.reach(page.ResourceVersion)
			return nil
		}
		options.Continue = page.Continue
	}
}

// page passes on the objects of a page as they come.
func (s *stream) page(ctx context.Context, options metav1.ListOptions, found map[object.Key]struct{}) (metav1.ListMeta, error) {
	body, err := open(ctx, s.clients, s.key, s.kind, options)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer body.Close()
	return s.readPage(body, found)
}

func (s *stream) readPage(body io.Reader, found map[object.Key]struct{}) (metav1.ListMeta, error) {
	left := int64(math.MaxInt64) // nothing of it stays
	return objectlist.Read(body, maxEvent, &left, func(data []byte) error {
		seen, err := s.eventOf(apiwatch.Added, data)
		if err != nil {
			return err
		}
		if s.handle(seen) {
			found[seen.key] = struct{}{}
		}
		return nil
	})
}
