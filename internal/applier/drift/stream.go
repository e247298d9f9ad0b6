package drift

import (
	"context"
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

	// handle is called with every object of the initial sync, and with every change.
	handle func(event)

	// synced is called at the end of each initial sync, with all objects that exist.
	synced func(map[object.Key]struct{})

	// version is the resource version from which to go on after an interruption; empty to
	// begin with an initial sync.
	version string

	// since is the resource version that an initial sync is no older than; empty for the
	// newest one, for which the API server has to ask its storage each time.
	since string

	// found are the objects of the initial sync so far; nil after it.
	found map[object.Key]struct{}

	// plain says that the API server does not stream lists.
	plain bool
}

// streamSpan is the least time after which a stream is opened again, so that one
// that has died unnoticed on the way is not waited for. It can be twice as long.
const streamSpan = 10 * time.Minute

// newStreamPauses are those between two attempts. The first one spreads what was
// cut off at the same time.
func newStreamPauses() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Steps: 10, Cap: 30 * time.Second}
}

// run reads until ctx ends, or until the ServiceAccount is denied, which it reports. After
// any other error it tries again.
func (s *stream) run(ctx context.Context) (denied bool) {
	pauses := newStreamPauses()
	for {
		progress, err := s.readOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case apierrors.IsForbidden(err):
			return true
		case s.asksForLess(err):
			continue
		}
		s.interrupted(ctx, err)
		if progress && !errors.Is(err, errLargeEvent) {
			pauses = newStreamPauses()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauses.Step()):
		}
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
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		s.version, s.since = "", ""
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
	case isOfConnection(err):
		// There can be thousands of streams, and all of them end with an API server.
		log.FromContext(ctx).V(1).Info("a watch was interrupted", "resource", s.key.resource, "user", impersonation.User(s.key.account), "reason", err.Error())
	default:
		s.since = "" // in case that this is what the server does not take
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to watch", "resource", s.key.resource, "user", impersonation.User(s.key.account))
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
	kind, object, err := events.next()
	if err != nil {
		return err
	}
	seen, err := eventOf(s.kind, kind, object)
	if err != nil {
		return err
	}
	if seen.kind == apiwatch.Bookmark {
		s.noteBookmark(seen)
		return nil
	}
	if s.found == nil {
		s.version = seen.version
	} else if seen.kind != apiwatch.Deleted {
		s.found[seen.key] = struct{}{}
	}
	s.handle(seen)
	return nil
}

// noteBookmark remembers how far the stream has come.
func (s *stream) noteBookmark(bookmark event) {
	if s.found != nil && !bookmark.endsList {
		return
	}
	if s.found != nil {
		s.synced(s.found)
	}
	s.found, s.version = nil, bookmark.version
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
			s.synced(found)
			s.version = page.ResourceVersion
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
	return objectlist.Read(body, maxEvent, &left, func(object []byte) error {
		seen, err := eventOf(s.kind, apiwatch.Added, object)
		if err != nil {
			return err
		}
		found[seen.key] = struct{}{}
		s.handle(seen)
		return nil
	})
}
