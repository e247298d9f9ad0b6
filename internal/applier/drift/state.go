package drift

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// State is what is known about the objects of one extension between passes: how they were
// last applied, and what watches have reported since. A pass that finds nothing drifted
// makes no request.
type State struct {
	mu sync.Mutex

	// lastApplied has a fingerprint of every object as the last operation left it.
	lastApplied map[object.Key]object.Fingerprint

	// workloads is the latest status of the objects that run something.
	workloads map[object.Key]health.Workload

	// seen are workloads as watches have reported them since the last operation.
	seen map[object.Key]seenWorkload

	// drifted has the latest fingerprint of each object whose fingerprint is not the last
	// applied one.
	drifted map[object.Key]object.Fingerprint

	// versions has the newest resource version that is known of each object whose fingerprint
	// has none. It is not compared: a change of its status is no drift.
	versions map[object.Key]string

	// all says that every object is to be read; looked is when that was done last.
	all    bool
	looked time.Time

	certificates Certificates

	// initialSync is nil unless a process that has just started waits for it.
	initialSync *initialSync

	// repairs are those of the objects that were repaired lately.
	repairs repairs
}

// Left is how an operation left the objects.
type Left struct {
	// Live are the objects that it has read or written.
	Live map[object.Key]*unstructured.Unstructured

	// Untouched are the fingerprints of those that it has neither read nor written.
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

// Since gives the newest resource version of the objects of each kind: what is older than
// that is not how the operation has left them.
func (l Left) Since() Since {
	newest := map[schema.GroupKind]string{}
	for key, obj := range l.Live {
		if isNewer(obj.GetResourceVersion(), newest[key.GroupKind]) {
			newest[key.GroupKind] = obj.GetResourceVersion()
		}
	}
	return func(kind schema.GroupKind) string { return newest[kind] }
}

// isNewer is false for versions that cannot be compared.
func isNewer(version, than string) bool {
	if than == "" {
		return version != ""
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}

// Certificates are the objects of a release that [webhookcert] looks after.
type Certificates struct {
	Keys []object.Key

	// Renewal is when they are due; zero for never.
	Renewal time.Time
}

func (c Certificates) isDue(now time.Time) bool {
	return !c.Renewal.IsZero() && !now.Before(c.Renewal)
}

// NewState knows nothing: every object is to be read.
func NewState() *State {
	return &State{
		all:         true,
		lastApplied: map[object.Key]object.Fingerprint{},
		workloads:   map[object.Key]health.Workload{},
		seen:        map[object.Key]seenWorkload{},
		drifted:     map[object.Key]object.Fingerprint{},
		versions:    map[object.Key]string{},
		repairs:     repairs{},
	}
}

// LookAtAll is called at the start of an operation: until it succeeds, every object is to
// be read.
func (s *State) LookAtAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = true
}

// BeginInitialSync takes over the last applied fingerprints of a release record. It gives a
// channel that is closed when the watches have reported every object.
func (s *State) BeginInitialSync(lastApplied map[object.Key]object.Fingerprint) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastApplied, s.initialSync = lastApplied, newInitialSync(lastApplied)
	return s.initialSync.done
}

// failInitialSync ends the wait for the initial sync. It reports whether anybody waits.
func (s *State) failInitialSync() (waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialSync == nil {
		return false
	}
	s.initialSync.fail()
	return true
}

// EndInitialSync ends the wait. If every object was reported, only those that have drifted
// are to be read; otherwise all of them are.
func (s *State) EndInitialSync(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialSync.isComplete() {
		s.all, s.looked = false, now
	}
	s.initialSync = nil
}

// Settle notes how an operation has left all objects of the release. Objects that are not
// among them are not part of it any more.
func (s *State) Settle(left Left, kept Certificates, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastApplied = left.LastApplied()
	s.noteVersions(left.Live)
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

// Known is an object that has not drifted, as far as that is known.
type Known struct {
	Fingerprint object.Fingerprint

	// Version is a resource version at which the object was so; empty if none is known.
	Version string
}

// NotDrifted gives the objects that are as they were last applied; nil if every object is
// to be read. Objects with certificates are not among them: those are renewed as time
// passes.
func (s *State) NotDrifted() map[object.Key]Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all {
		return nil
	}
	found := make(map[object.Key]Known, len(s.lastApplied))
	for key, left := range s.lastApplied {
		if _, drifted := s.drifted[key]; !drifted && !slices.Contains(s.certificates.Keys, key) {
			found[key] = Known{Fingerprint: left, Version: cmp.Or(left.ResourceVersion, s.versions[key])}
		}
	}
	return found
}

// LookedAt is when every object was read last, or reported by watches.
func (s *State) LookedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looked
}

// SettleSome notes how a repair has left single objects. If any of them has to do with
// certificates, kept are all of those.
func (s *State) SettleSome(live map[object.Key]*unstructured.Unstructured, kept Certificates) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.lastApplied, Left{Live: live}.LastApplied())
	s.noteVersions(live)
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

// dropOwnEvents drops what watches have reported of our own writes: an event can come
// before the answer to the request that caused it.
func (s *State) dropOwnEvents() {
	maps.DeleteFunc(s.drifted, func(key object.Key, seen object.Fingerprint) bool {
		last, known := s.lastApplied[key]
		return !known || seen == last
	})
}

// noteObject notes the fingerprint and the resource version that a watch has reported. It
// reports whether the extension is to be woken.
func (s *State) noteObject(key object.Key, fingerprint object.Fingerprint, version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialSync != nil {
		defer s.initialSync.report(key)
	}
	last, known := s.lastApplied[key]
	if !known || last == fingerprint {
		delete(s.drifted, key)
		if known && last.ResourceVersion == "" && isNewer(version, s.versions[key]) {
			s.versions[key] = version
		}
		return false
	}
	// Who wrote over an object at the version of a drift would take the drift for its own.
	delete(s.versions, key)
	s.drifted[key] = fingerprint
	return s.initialSync == nil // a pass that waits for the initial sync needs no other one
}

// noteVersions notes those that an operation has left, unless a watch has reported newer
// ones: what runs an object writes its status meanwhile.
func (s *State) noteVersions(live map[object.Key]*unstructured.Unstructured) {
	maps.DeleteFunc(s.versions, func(key object.Key, _ string) bool {
		_, ours := s.lastApplied[key]
		return !ours
	})
	for key, obj := range live {
		if s.lastApplied[key].ResourceVersion != "" {
			continue
		}
		if isNewer(obj.GetResourceVersion(), s.versions[key]) {
			s.versions[key] = obj.GetResourceVersion()
		}
	}
}

// maxSeenWorkloads is how many workloads are remembered before it is known whose they are.
const maxSeenWorkloads = 1000

// seenWorkload is a workload with the fingerprint of its object.
type seenWorkload struct {
	fingerprint object.Fingerprint
	workload    health.Workload
}

// catchUp takes over the workloads that watches have reported during an operation. They are
// taken for newer than what the operation has read: the status may have changed before the
// operation was over, and there is no other event for that. If they are older after all,
// another event follows.
func (s *State) catchUp() {
	for key := range s.workloads {
		if seen, ok := s.seen[key]; ok && seen.fingerprint == s.lastApplied[key] {
			s.workloads[key] = seen.workload
		}
	}
}

// noteWorkload notes how a workload is doing. It reports whether the extension is to be
// woken.
func (s *State) noteWorkload(workload health.Workload, fingerprint object.Fingerprint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ours := s.lastApplied[workload.Key]
	// While an operation runs, it is not known which workloads it creates. Anybody can make
	// objects with the labels of the extension, and any number of them.
	if ours || s.all && len(s.seen) < maxSeenWorkloads {
		s.seen[workload.Key] = seenWorkload{fingerprint: fingerprint, workload: workload}
	}
	if !ours || s.workloads[workload.Key] == workload {
		return false
	}
	s.workloads[workload.Key] = workload
	return s.initialSync == nil // see noteObject
}

// Workloads gives the latest status of all workloads, sorted.
func (s *State) Workloads() []health.Workload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return health.Sorted(s.workloads)
}

// ToLookAt are the objects that a repair has to read; all means every object of the
// release. Objects with certificates are read all together, or not at all.
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

// NoteRepairs is called after a repair, however far it came. Repaired are the objects that
// it has put back, with what it changed.
func (s *State) NoteRepairs(repaired map[object.Key]object.Difference, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repairs.note(repaired, now)
}

// Rest is called after a repair that succeeded.
func (s *State) Rest(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repairs.rest(now)
}

// Flapping are the objects that somebody else changes again and again, and when the first
// of them is due.
func (s *State) Flapping(now time.Time) ([]object.Flapping, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repairs.flapping(now)
}

// Renewal is when certificates are due; zero for never.
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
