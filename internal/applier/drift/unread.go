package drift

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// A status that changes all the time is not read after each event: a client may write it every second. The pause
// between two reads doubles while the reads find nothing new, and is the shortest one after a read that found only another text,
// which may contain the time. The first read waits, too: the API server writes the status of a CustomResourceDefinition
// twice within a moment.
const (
	readDelay    = time.Second
	minReadPause = 5 * time.Second
	maxReadPause = 10 * time.Minute
)

// unreadStatus describes an object whose status counts, and whose watch reports only the metadata.
type unreadStatus struct {
	// version is the newest resource version that the watch has reported and nothing has read; empty if the
	// status is known.
	version string

	// noticed is the time of the first [State.TakeUnread] after the event.
	noticed time.Time

	// read is the time of the last read after an event, and pause the minimum time until the next one.
	read  time.Time
	pause time.Duration
}

// due returns the time at which the status has to be read.
func (u unreadStatus) due() time.Time {
	if next := u.read.Add(u.pause); next.After(u.noticed.Add(readDelay)) {
		return next
	}
	return u.noticed.Add(readDelay)
}

// isDue reports whether the status has to be read.
func (u unreadStatus) isDue(now time.Time) bool {
	return u.version != "" && !u.noticed.IsZero() && !now.Before(u.due())
}

// after returns what is unread after the object was read at a version, by its workload before and now. A read that found
// nothing new makes the pause longer.
func (u unreadStatus) after(version string, last, now health.Workload) unreadStatus {
	if u.version == "" || isNewer(u.version, version) {
		return u
	}
	u.version, u.noticed = "", time.Time{}
	isSame := last == now
	last.Reason, now.Reason = "", ""
	switch {
	case isSame:
		u.pause = min(max(2*u.pause, minReadPause), maxReadPause)
	case last == now:
		u.pause = minReadPause
	default:
		u.pause = 0
	}
	return u
}

// noteUnread notes that a watch has reported an object without its status. It returns true if the extension has to be
// enqueued. During the initial sync, the status counts as unchanged, unless the previous process reported a problem.
func (s *State) noteUnread(key object.Key, version string) bool {
	if s.initialSync != nil && !s.doubtful {
		return false
	}
	found := s.unread[key]
	isFirst := found.version == ""
	found.version = version
	s.unread[key] = found
	return isFirst && s.initialSync == nil
}

// noteWorkloads replaces the workloads of objects that an operation has read or written.
func (s *State) noteWorkloads(live map[object.Key]*unstructured.Unstructured) {
	found := health.Of(live)
	for key, unread := range s.unread {
		if obj := live[key]; obj != nil {
			s.unread[key] = unread.after(obj.GetResourceVersion(), s.workloads[key], found[key])
		}
	}
	maps.DeleteFunc(s.unread, func(key object.Key, _ unreadStatus) bool {
		_, ours := s.lastApplied[key]
		return !ours
	})
	maps.DeleteFunc(s.workloads, func(key object.Key, _ health.Workload) bool { return live[key] != nil })
	maps.Copy(s.workloads, found)
}

// TakeUnread returns the objects whose status has to be read now, sorted.
func (s *State) TakeUnread(now time.Time) []object.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []object.Key
	for key, unread := range s.unread {
		switch {
		case unread.isDue(now):
			found = append(found, key)
			unread.read = now
		case unread.version != "" && unread.noticed.IsZero():
			unread.noticed = now
		}
		s.unread[key] = unread
	}
	slices.SortFunc(found, object.Key.Compare)
	return found
}

// NoteStatus notes an object that was read for its status; live is nil if the read failed. It does not check for
// drift: the watch reports that.
func (s *State) NoteStatus(key object.Key, live *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unread, isUnread := s.unread[key]
	switch last, ours := s.lastApplied[key]; {
	case !isUnread || !ours:
	case live != nil && object.FingerprintOf(key.GroupKind, live) == last:
		s.noteWorkloads(map[object.Key]*unstructured.Unstructured{key: live})
	default: // the read failed, or the object has drifted: then a repair reads it
		unread.pause = min(max(2*unread.pause, minReadPause), maxReadPause)
		s.unread[key] = unread
	}
}

// NextRead returns the time of the next read of a status; zero if none is unread.
func (s *State) NextRead() (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, unread := range s.unread {
		if !unread.noticed.IsZero() && (next.IsZero() || unread.due().Before(next)) {
			next = unread.due()
		}
	}
	return next
}
