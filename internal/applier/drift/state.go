package drift

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// State is what is known about the objects of one extension between passes. It spares
// the requests of a pass that has nothing to do, and is made anew from the cluster
// when the process starts.
type State struct {
	mu sync.Mutex

	// lastApplied holds a fingerprint of every object as it was found or left.
	lastApplied map[object.Key]object.Fingerprint

	// workloads are those of the objects that run something, as seen last.
	workloads map[object.Key]health.Workload

	// seen are workloads as watches saw them since the last operation was settled.
	seen map[object.Key]seenWorkload

	// drifted are objects of which something else was seen since: what was seen
	// last.
	drifted map[object.Key]object.Fingerprint

	// all says that every object is to be looked at; looked is when that was
	// done last.
	all    bool
	looked time.Time

	certificates Certificates

	// initialSync is nil unless objects are awaited that only a record tells of.
	initialSync *initialSync

	// repairs are those of the objects that were repaired lately.
	repairs repairs
}

// Left is how an operation found or left objects.
type Left struct {
	// Live are the objects that it has read or written.
	Live map[object.Key]*unstructured.Unstructured

	// Untouched are the fingerprints of those that it did not look at.
	Untouched map[object.Key]object.Fingerprint
}

// LastApplied are the fingerprints of all objects.
func (l Left) LastApplied() map[object.Key]object.Fingerprint {
	prints := make(map[object.Key]object.Fingerprint, len(l.Live)+len(l.Untouched))
	for key, obj := range l.Live {
		prints[key] = object.FingerprintOf(key.GroupKind, obj)
	}
	maps.Copy(prints, l.Untouched)
	return prints
}

// Certificates are the objects of a release that [webhookcert] looks after.
type Certificates struct {
	Keys []object.Key

	// Renewal is when to look at them again; zero for never.
	Renewal time.Time
}

func (c Certificates) isDue(now time.Time) bool {
	return !c.Renewal.IsZero() && !now.Before(c.Renewal)
}

// NewState knows nothing: every object is to be looked at.
func NewState() *State {
	return &State{
		all:         true,
		lastApplied: map[object.Key]object.Fingerprint{},
		workloads:   map[object.Key]health.Workload{},
		seen:        map[object.Key]seenWorkload{},
		drifted:     map[object.Key]object.Fingerprint{},
		repairs:     repairs{},
	}
}

// LookAtAll is for the start of an operation: until it succeeds, no object is taken for
// known.
func (s *State) LookAtAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = true
}

// Expect takes for known how a record says that the objects were left. It gives what
// is closed at the end of the initial sync.
func (s *State) Expect(lastApplied map[object.Key]object.Fingerprint) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastApplied, s.initialSync = lastApplied, newInitialSync(lastApplied)
	return s.initialSync.done
}

// failInitialSync ends the wait of whoever waits, if anybody does, which is reported.
func (s *State) failInitialSync() (waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialSync == nil {
		return false
	}
	s.initialSync.fail()
	return true
}

// EndInitialSync ends the wait. If every object was reported, it is known which of
// them to look at; if not, all of them are.
func (s *State) EndInitialSync(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialSync.isComplete() {
		s.all, s.looked = false, now
	}
	s.initialSync = nil
}

// Settle takes over how an operation left the objects. Objects that it did not
// see are no longer part of the release.
func (s *State) Settle(left Left, kept Certificates, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastApplied = left.LastApplied()
	maps.DeleteFunc(s.workloads, func(key object.Key, _ health.Workload) bool {
		_, untouched := left.Untouched[key]
		return !untouched
	})
	maps.Copy(s.workloads, health.Of(left.Live))
	s.catchUp()
	clear(s.seen)
	s.certificates = kept
	s.looked = now
	s.all = false
	s.dropOwnEvents()
}

// Undisturbed gives the fingerprints of the objects that are known to be as they were
// last applied; nil if that is not known of all. What has to do with certificates
// changes with time and is not among them.
func (s *State) Undisturbed() map[object.Key]object.Fingerprint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all {
		return nil
	}
	prints := maps.Clone(s.lastApplied)
	for key := range s.drifted {
		delete(prints, key)
	}
	for _, key := range s.certificates.Keys {
		delete(prints, key)
	}
	return prints
}

// LookedAt is when every object was looked at last.
func (s *State) LookedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looked
}

// SettleSome takes over how a repair left single objects, and all of those that
// have to do with certificates if any of them was one.
func (s *State) SettleSome(live map[object.Key]*unstructured.Unstructured, kept Certificates) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.lastApplied, Left{Live: live}.LastApplied())
	maps.DeleteFunc(s.workloads, func(key object.Key, _ health.Workload) bool { return live[key] != nil })
	maps.Copy(s.workloads, health.Of(live))
	s.catchUp()
	for key := range live {
		delete(s.seen, key)
	}
	if len(kept.Keys) > 0 {
		s.certificates = kept
	}
	s.dropOwnEvents()
}

// dropOwnEvents drops what was seen of our own writes, whose
// events may come before the answers to them.
func (s *State) dropOwnEvents() {
	maps.DeleteFunc(s.drifted, func(key object.Key, seen object.Fingerprint) bool {
		last, known := s.lastApplied[key]
		return !known || seen == last
	})
}

// see notes how an object looks now, and reports whether that is news.
func (s *State) see(key object.Key, fingerprint object.Fingerprint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialSync != nil {
		defer s.initialSync.report(key)
	}
	last, known := s.lastApplied[key]
	if !known || last == fingerprint {
		delete(s.drifted, key)
		return false
	}
	s.drifted[key] = fingerprint
	return s.initialSync == nil // or else whoever waits for all will see
}

// maxSeenWorkloads is how many workloads are remembered while it is not known whose they are.
const maxSeenWorkloads = 1000

// seenWorkload is a workload together with how its object looked.
type seenWorkload struct {
	fingerprint object.Fingerprint
	workload    health.Workload
}

// catchUp takes what watches saw during an operation for newer than what the
// operation found or left: the cluster may have taken a change up before the
// operation was over, and does not say so again. If it is older after all, the watch
// has more to say.
func (s *State) catchUp() {
	for key := range s.workloads {
		if seen, ok := s.seen[key]; ok && seen.fingerprint == s.lastApplied[key] {
			s.workloads[key] = seen.workload
		}
	}
}

// seeWorkload notes how an object that runs something is doing, and reports
// whether that is news.
func (s *State) seeWorkload(workload health.Workload, fingerprint object.Fingerprint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ours := s.lastApplied[workload.Key]
	// What an operation is about to make is not known to be ours before it has ended.
	// Anybody can make objects that look like it, and any number of them.
	if ours || s.all && len(s.seen) < maxSeenWorkloads {
		s.seen[workload.Key] = seenWorkload{fingerprint: fingerprint, workload: workload}
	}
	if !ours || s.workloads[workload.Key] == workload {
		return false
	}
	s.workloads[workload.Key] = workload
	return s.initialSync == nil // or else whoever waits for all will see
}

// Workloads in the order of their names.
func (s *State) Workloads() []health.Workload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return health.Sorted(s.workloads)
}

// ToLookAt are the objects that may have drifted; all means every one of the release.
// What has to do with certificates is looked at together, or not at all.
func (s *State) ToLookAt(now time.Time) (keys []object.Key, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make(map[object.Key]struct{}, len(s.drifted))
	for key := range s.drifted {
		found[key] = struct{}{}
	}
	s.repairs.holdBack(found, now)
	isOne := func(key object.Key) bool {
		_, ok := found[key]
		return ok
	}
	if s.certificates.isDue(now) || slices.ContainsFunc(s.certificates.Keys, isOne) {
		for _, key := range s.certificates.Keys {
			found[key] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(found), object.Key.Compare), s.all
}

// NoteRepairs is for after a repair, however far it came. Repaired are the objects that
// it has put back, with what was not as it should be.
func (s *State) NoteRepairs(repaired map[object.Key]object.Difference, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repairs.note(repaired, now)
}

// Rest is for after a repair that succeeded.
func (s *State) Rest(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repairs.rest(now)
}

// Flapping are the objects that somebody else changes again and again, and when
// to look at one of them again.
func (s *State) Flapping(now time.Time) ([]object.Flapping, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repairs.flapping(now)
}

// Renewal is when certificates have to be looked at; zero for never.
func (s *State) Renewal() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.certificates.Renewal
}

func (s *State) keys() []object.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.lastApplied))
}
