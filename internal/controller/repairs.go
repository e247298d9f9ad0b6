package controller

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// eventRepaired names objects that were repaired. Those that are flapping are named by the
// condition Ready.
const eventRepaired = "Repaired"

// repairEvery is the least time between two events about repairs of one extension. Event
// recorders hold back more than one event in five minutes about one object.
const repairEvery = 5 * time.Minute

// repairs are those of one extension that no event has named yet.
type repairs struct {
	emitted time.Time
	objects []string // each once, sorted
}

// with takes in more objects.
func (r repairs) with(objects []string) repairs {
	all := slices.Concat(r.objects, objects)
	slices.Sort(all)
	return repairs{emitted: r.emitted, objects: slices.Compact(all)}
}

// event is the event to emit now, or else how long to wait with it; neither if there is
// nothing to name.
func (r repairs) event(now time.Time) (_ repairs, _ *transition, wait time.Duration) {
	if len(r.objects) == 0 {
		return r, nil, 0
	}
	if wait := r.emitted.Add(repairEvery).Sub(now); wait > 0 {
		return r, nil, wait
	}
	note := "brought back to what is installed: " + excerpt.Of(r.objects, maxText/2)
	return repairs{emitted: now}, &transition{kind: corev1.EventTypeNormal, reason: eventRepaired, note: note}, 0
}

// repairLog has the repairs of each extension that an event is to name.
type repairLog struct {
	mu    sync.Mutex
	known map[string]repairs
}

// note takes in the objects that a pass has put back. It returns what [repairs.event]
// says.
func (l *repairLog) note(extension string, objects []string, now time.Time) (*transition, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	after, event, wait := l.known[extension].with(objects).event(now)
	switch {
	case len(after.objects) == 0 && now.Sub(after.emitted) >= repairEvery:
		delete(l.known, extension)
	case l.known == nil:
		l.known = map[string]repairs{extension: after}
	default:
		l.known[extension] = after
	}
	return event, wait
}

func (l *repairLog) forget(extension string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, extension)
}
