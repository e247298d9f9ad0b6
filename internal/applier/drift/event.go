package drift

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// event is what is kept of an event of a watch.
type event struct {
	kind        apiwatch.EventType
	key         object.Key
	owner       string // as its label says; empty if that was not read
	version     string
	fingerprint object.Fingerprint
	workload    *health.Workload // nil for what does not run anything
	endsList    bool             // of a bookmark: the initial sync is complete
	unknown     bool             // it is not known how the object is: it was too large; without a key, how some of the owner are
}

// eventOf decodes an event of a watch of the kind. An event of type ERROR is returned as an
// error.
func eventOf(kind schema.GroupKind, of apiwatch.EventType, obj json.RawMessage) (event, error) {
	if of == apiwatch.Error {
		status := metav1.Status{}
		if err := json.Unmarshal(obj, &status); err != nil {
			return event{}, fmt.Errorf("reading the error of a watch: %w", err)
		}
		return event{}, apierrors.FromObject(&status)
	}
	full, workloadAt, err := objectIn(kind, obj)
	if err != nil {
		return event{}, fmt.Errorf("reading an object of a watch: %w", err)
	}
	seen := event{
		kind:        of,
		key:         object.Key{GroupKind: kind, Namespace: full.Namespace, Name: full.Name},
		owner:       full.Labels[object.LabelOwnerName],
		version:     full.ResourceVersion,
		fingerprint: object.FingerprintOf(kind, full),
		endsList:    full.Annotations[metav1.InitialEventsAnnotationKey] == "true",
	}
	if workloadAt != nil {
		seen.workload = new(workloadAt(seen.key))
	}
	if of == apiwatch.Deleted {
		return seen.deleted(), nil
	}
	return seen, nil
}

// objectIn reads an object as far as it is there, which of most kinds is the metadata only.
// workloadAt is nil for what does not run anything.
func objectIn(kind schema.GroupKind, data json.RawMessage) (metadata *metav1.ObjectMeta, workloadAt func(object.Key) health.Workload, err error) {
	if health.HasStatus(kind) {
		return health.Decode(kind, data)
	}
	of := struct {
		metav1.ObjectMeta `json:"metadata"`
	}{}
	err = json.Unmarshal(data, &of)
	return &of.ObjectMeta, nil, err
}

// deleted is the event of an object that was reported, or should have been, and does
// not exist any more.
func (e event) deleted() event {
	e.fingerprint = object.Fingerprint{Deleted: true}
	switch isEnded := e.workload != nil && e.workload.Ended; {
	case health.HasConditions(e.key.GroupKind):
		e.workload = nil
	case health.HasStatus(e.key.GroupKind) && !isEnded:
		e.workload = new(health.Missing(e.key))
	}
	return e
}

// withoutStatus is an event of a watch that reports the metadata alone.
func (e event) withoutStatus() event {
	e.workload = nil
	return e
}

// isStatusUnread reports whether the status of the object counts and was not reported. An object that was deleted has
// none.
func (e event) isStatusUnread() bool {
	return e.workload == nil && !e.fingerprint.Deleted && health.HasConditions(e.key.GroupKind)
}

// jsonSpace is all that may stand between two events.
const jsonSpace = " \t\r\n"

// maxEvent is how many bytes an object in a list or an event of a watch may have as JSON.
// The API server takes 3 MiB and etcd 1.5 MiB, by default.
const maxEvent = 4 << 20

// errLargeEvent says that an event is larger than what is held of a watch.
var errLargeEvent = fmt.Errorf("an event has more than %d bytes", maxEvent)

// eventReader reads a stream of events. It has a buffer only while there is something
// to read.
type eventReader struct {
	body    io.LimitedReader // what may be read of one event
	first   [1]byte
	decoder *json.Decoder // nil while there is nothing
	behind  bytes.Reader  // what was read beyond an event that is too large, before the decoder takes it
}

func newEventReader(body io.Reader) *eventReader {
	return &eventReader{body: io.LimitedReader{R: body}}
}

// next reads the event that [eventReader.wait] has waited for. After one that fails with
// [errLargeEvent], [eventReader.skipLarge] goes on.
func (e *eventReader) next() (apiwatch.EventType, json.RawMessage, error) {
	var next struct {
		Type   apiwatch.EventType `json:"type"`
		Object json.RawMessage    `json:"object"`
	}
	e.body.N = maxEvent
	if err := e.decoder.Decode(&next); err != nil {
		if e.body.N <= 0 && errors.Is(err, io.ErrUnexpectedEOF) {
			err = errLargeEvent
		}
		return "", nil, fmt.Errorf("reading an event: %w", err)
	}
	return next.Type, next.Object, nil
}

// wait returns when there is something to read.
func (e *eventReader) wait() error {
	if e.hasMore() {
		return nil
	}
	e.decoder = nil
	e.behind.Reset(nil)
	for {
		e.body.N = 1
		if _, err := io.ReadFull(&e.body, e.first[:]); err != nil {
			return err
		}
		if len(bytes.TrimLeft(e.first[:], jsonSpace)) > 0 {
			break
		}
	}
	e.decoder = json.NewDecoder(io.MultiReader(bytes.NewReader(e.first[:]), &e.body))
	return nil
}

// hasMore says whether anything but space was read beyond the last event, by the decoder or
// before it.
func (e *eventReader) hasMore() bool {
	if e.decoder == nil {
		return false
	}
	behind := e.behind                                                     // so that the decoder can read it still
	rest, err := io.ReadAll(io.MultiReader(e.decoder.Buffered(), &behind)) // of bytes in memory
	return err == nil && len(bytes.TrimLeft(rest, jsonSpace)) > 0
}
