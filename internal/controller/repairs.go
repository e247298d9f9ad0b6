package controller

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// eventRepaired tells of objects that were put back or changed back. Of those that are
// contested the condition Ready tells.
const eventRepaired = "Repaired"

// repairEvery is how often repairs of one extension are told. More events about one
// object than one in five minutes are held back in the long run, whatever they say.
const repairEvery = 5 * time.Minute

// repairs are those of one extension that have not been told yet.
type repairs struct {
	told    time.Time
	objects []string // each once, sorted
}

// with takes in more objects.
func (r repairs) with(objects []string) repairs {
	all := slices.Concat(r.objects, objects)
	slices.Sort(all)
	return repairs{told: r.told, objects: slices.Compact(all)}
}

// news is what to tell now, or else how long to wait with it; neither if there is
// nothing to tell.
func (r repairs) news(now time.Time) (_ repairs, _ *transition, wait time.Duration) {
	if len(r.objects) == 0 {
		return r, nil, 0
	}
	if wait := r.told.Add(repairEvery).Sub(now); wait > 0 {
		return r, nil, wait
	}
	note := "brought back to what is installed: " + excerpt.Of(r.objects, maxText/2)
	return repairs{told: now}, &transition{kind: corev1.EventTypeNormal, reason: eventRepaired, note: note}, 0
}

// repairLog has what is to be told of the repairs of each extension.
type repairLog struct {
	mu    sync.Mutex
	known map[string]repairs
}

// note takes in the objects that a pass has put back. It returns what [repairs.news]
// says.
func (l *repairLog) note(extension string, objects []string, now time.Time) (*transition, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	after, news, wait := l.known[extension].with(objects).news(now)
	switch {
	case len(after.objects) == 0 && now.Sub(after.told) >= repairEvery:
		delete(l.known, extension)
	case l.known == nil:
		l.known = map[string]repairs{extension: after}
	default:
		l.known[extension] = after
	}
	return news, wait
}

func (l *repairLog) forget(extension string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, extension)
}
