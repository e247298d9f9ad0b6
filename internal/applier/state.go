package applier

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
)

// state is what is known about one extension between passes. It spares the
// requests of a pass that has nothing to do, and is made anew from the cluster
// when the process starts.
type state struct {
	mu sync.Mutex

	uid types.UID

	// recorded is what the release records say; nil until they were read.
	recorded *release.State

	// size is that of the record of what is installed, in bytes.
	size int

	// settled holds a fingerprint of every object as it was found or left.
	settled map[object.Key]object.Fingerprint

	// workloads are those of the objects that run something, as seen last.
	workloads map[object.Key]health.Workload

	// sighted are workloads as watches saw them since the last operation was settled.
	sighted map[object.Key]sightedWorkload

	// drifted are objects of which something else was seen since: what was seen
	// last.
	drifted map[object.Key]object.Fingerprint

	// all says that every object is to be looked at; looked is when that was
	// done last.
	all    bool
	looked time.Time

	certificates certificates

	// content are the objects of the installed release, for when it goes; nil until
	// they were looked at.
	content []departing

	// rollCall is nil unless objects are awaited that only a record tells of.
	rollCall *rollCall

	// contests are about the objects that were repaired lately.
	contests contests
}

func newState(uid types.UID) *state {
	return &state{
		uid:       uid,
		all:       true,
		settled:   map[object.Key]object.Fingerprint{},
		workloads: map[object.Key]health.Workload{},
		sighted:   map[object.Key]sightedWorkload{},
		drifted:   map[object.Key]object.Fingerprint{},
		contests:  contests{},
	}
}

func (s *state) record() (release.State, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recorded == nil {
		return release.State{}, false
	}
	return *s.recorded, true
}

func (s *state) setRecord(recorded release.State, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded, s.size = &recorded, size
}

// recordSize is that of the installed revision; zero if it is not known.
func (s *state) recordSize() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// unsettle is for the start of an operation: until it succeeds, neither the
// record nor any object is taken for known.
func (s *state) unsettle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded, s.all = nil, true
}

// expect takes for known how a record says that the objects were left, and gives
// what is closed when there is nothing left to wait for: each of them was seen, or
// some cannot be.
func (s *state) expect(prints map[object.Key]object.Fingerprint) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled, s.rollCall = prints, newRollCall(prints)
	return s.rollCall.over
}

// failRollCall ends the wait of whoever waits, if anybody does, which is reported.
func (s *state) failRollCall() (waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rollCall == nil {
		return false
	}
	s.rollCall.fail()
	return true
}

// concludeRollCall ends the wait. If every object was seen, it is known which of
// them to look at; if not, all of them are.
func (s *state) concludeRollCall(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rollCall.isComplete() {
		s.all, s.looked = false, now
	}
	s.rollCall = nil
}

// settle takes over how an operation left the objects. Objects that it did not
// see are no longer part of the release.
func (s *state) settle(done outcome, kept certificates, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = done.fingerprints()
	maps.DeleteFunc(s.workloads, func(key object.Key, _ health.Workload) bool {
		_, untouched := done.left[key]
		return !untouched
	})
	maps.Copy(s.workloads, health.Of(done.live))
	s.catchUp()
	clear(s.sighted)
	s.certificates = kept
	s.looked = now
	s.all = false
	s.forgetSelfMade()
}

// undisturbed gives the fingerprints of the objects that are known to be as the
// revision before the next one left them. After one that was not finished there are
// none: repair leaves objects as the installed one wants them. What has to do with
// certificates changes with time and is not among them.
func (s *state) undisturbed() map[object.Key]object.Fingerprint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all || s.recorded == nil || s.recorded.Unfinished {
		return nil
	}
	prints := maps.Clone(s.settled)
	for key := range s.drifted {
		delete(prints, key)
	}
	for _, key := range s.certificates.keys {
		delete(prints, key)
	}
	return prints
}

func (s *state) setContent(content []departing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content = content
}

func (s *state) knownContent() []departing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.content
}

// lookedAt is when every object was looked at last.
func (s *state) lookedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looked
}

// settleSome takes over how a repair left single objects, and all of those that
// have to do with certificates if any of them was one.
func (s *state) settleSome(live map[object.Key]*unstructured.Unstructured, kept certificates) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.settled, fingerprints(live))
	maps.DeleteFunc(s.workloads, func(key object.Key, _ health.Workload) bool { return live[key] != nil })
	maps.Copy(s.workloads, health.Of(live))
	s.catchUp()
	for key := range live {
		delete(s.sighted, key)
	}
	if len(kept.keys) > 0 {
		s.certificates = kept
	}
	s.forgetSelfMade()
}

// forgetSelfMade drops suspicions that were raised by our own writes, whose
// events may come before the answers to them.
func (s *state) forgetSelfMade() {
	maps.DeleteFunc(s.drifted, func(key object.Key, seen object.Fingerprint) bool {
		settled, known := s.settled[key]
		return !known || seen == settled
	})
}

// see notes how an object looks now, and reports whether that is news.
func (s *state) see(key object.Key, fingerprint object.Fingerprint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rollCall != nil {
		defer s.rollCall.answer(key)
	}
	settled, known := s.settled[key]
	if !known || settled == fingerprint {
		delete(s.drifted, key)
		return false
	}
	s.drifted[key] = fingerprint
	return s.rollCall == nil // or else whoever waits for all will see
}

// maxSighted is how many workloads are remembered while it is not known whose they are.
const maxSighted = 1000

// sightedWorkload is a workload together with how its object looked.
type sightedWorkload struct {
	fingerprint object.Fingerprint
	workload    health.Workload
}

// catchUp takes what watches saw during an operation for newer than what the
// operation found or left: the cluster may have taken a change up before the
// operation was over, and does not say so again. If it is older after all, the watch
// has more to say.
func (s *state) catchUp() {
	for key := range s.workloads {
		if seen, ok := s.sighted[key]; ok && seen.fingerprint == s.settled[key] {
			s.workloads[key] = seen.workload
		}
	}
}

// seeWorkload notes how an object that runs something is doing, and reports
// whether that is news.
func (s *state) seeWorkload(workload health.Workload, fingerprint object.Fingerprint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ours := s.settled[workload.Key]
	// What an operation is about to make is not known to be ours before it has ended.
	// Anybody can make objects that look like it, and any number of them.
	if ours || s.all && len(s.sighted) < maxSighted {
		s.sighted[workload.Key] = sightedWorkload{fingerprint: fingerprint, workload: workload}
	}
	if !ours || s.workloads[workload.Key] == workload {
		return false
	}
	s.workloads[workload.Key] = workload
	return s.rollCall == nil // or else whoever waits for all will see
}

// knownWorkloads in the order of their names.
func (s *state) knownWorkloads() []health.Workload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return health.Sorted(s.workloads)
}

// suspects are the objects to look at; all means every one of the release. What
// has to do with certificates is looked at together, or not at all.
func (s *state) suspects(now time.Time) (keys []object.Key, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	suspect := make(map[object.Key]struct{}, len(s.drifted))
	for key := range s.drifted {
		suspect[key] = struct{}{}
	}
	s.contests.sift(suspect, now)
	isSuspect := func(key object.Key) bool {
		_, ok := suspect[key]
		return ok
	}
	if s.certificates.isDue(now) || slices.ContainsFunc(s.certificates.keys, isSuspect) {
		for _, key := range s.certificates.keys {
			suspect[key] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(suspect), object.Key.Compare), s.all
}

// noteRepairs takes over what a repair has done, as far as it came.
func (s *state) noteRepairs(steps []step, changes map[object.Key]Change, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contests.note(steps, changes, now)
}

// rest is for after a repair that succeeded.
func (s *state) rest(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contests.rest(now)
}

// contested are the objects that somebody else changes again and again, and when
// to look at one of them again.
func (s *state) contested(now time.Time) ([]Contested, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contests.contested(now)
}

// renewal is when certificates have to be looked at; zero for never.
func (s *state) renewal() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.certificates.renewal
}

func (s *state) settledKeys() []object.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.settled))
}
