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

	// drifted is how watches have last reported each object that is not as it was last applied.
	// An empty fingerprint is that of one that was too large to be read.
	drifted map[object.Key]Known

	// early is how watches have reported, during an operation, objects that are not known yet:
	// it may be about to add them.
	early map[object.Key]Known

	// versions has the newest resource version that is known of each object whose fingerprint
	// has none. It is not compared: a change of its status is no drift.
	versions map[object.Key]string

	// unread are the objects whose status counts and was not reported, by a shared watch.
	unread map[object.Key]unreadStatus

	// doubtful is set if a process that has just started cannot take every status for good.
	doubtful bool

	// all says that every object is to be read; looked is when that was done last. again says
	// that an operation that has begun to read does not change that.
	all, again bool
	looked     time.Time

	// deferred maps objects that were not created or changed yet to the workloads that they wait for.
	deferred map[object.Key][]object.Key

	// confirmed is when an operation has read or written every object last.
	confirmed time.Time

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

	// Deferred maps objects that it has not created or changed yet to the workloads that they wait
	// for. Objects to be changed are also in Live.
	Deferred map[object.Key][]object.Key
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

	// End is when the first of the certificates ends; zero for none.
	End time.Time
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
		drifted:     map[object.Key]Known{},
		early:       map[object.Key]Known{},
		versions:    map[object.Key]string{},
		unread:      map[object.Key]unreadStatus{},
		deferred:    map[object.Key][]object.Key{},
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

// noteUnknown notes that it is not known of some objects how they are. An operation that runs may
// have read them before, so that they are to be read after it as well.
func (s *State) noteUnknown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.again = true, true
}

// BeginInitialSync takes over the last applied fingerprints of a release record. It gives a
// channel that is closed when the watches have reported every object. If doubtful is set, each status that a watch
// does not report is read; otherwise it is taken for good until a watch reports a change.
func (s *State) BeginInitialSync(lastApplied map[object.Key]object.Fingerprint, doubtful bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastApplied, s.initialSync, s.doubtful = lastApplied, newInitialSync(lastApplied), doubtful
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
// among them are not part of it any more. It reports whether one that it has added was changed
// since, or whether a deferred object can be written now: no event triggers a reconcile for that.
func (s *State) Settle(left Left, kept Certificates, now time.Time) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastApplied = left.LastApplied()
	s.noteVersions(left.Live)
	changed = s.noteEarly(left.Live)
	maps.DeleteFunc(s.workloads, func(key object.Key, last health.Workload) bool {
		untouched, isUntouched := left.Untouched[key]
		return !isUntouched && left.Live[key] == nil || untouched.Deleted && !last.HasFailed()
	})
	s.noteWorkloads(left.Live)
	clear(s.deferred)
	s.noteDeferred(left.Deferred)
	s.catchUp()
	clear(s.seen)
	s.certificates = kept
	s.looked = now
	if len(left.Untouched) == 0 {
		s.confirmed = now
	}
	s.all, s.again = s.again, false
	s.dropOwnEvents()
	return changed || len(s.nextToCreate()) > 0
}

// noteDeferred notes the objects that wait for workloads. Until such an object exists, it counts as a workload itself.
func (s *State) noteDeferred(deferred map[object.Key][]object.Key) {
	maps.Copy(s.deferred, deferred)
	for key, servers := range deferred {
		if _, isThere := s.lastApplied[key]; isThere {
			s.workloads[key] = s.workloads[key].Staying(key, servers)
		} else {
			s.workloads[key] = health.Deferred(key, servers)
		}
	}
}

// reported is a workload as a watch has reported it, with what is known of it besides.
func (s *State) reported(workload health.Workload) health.Workload {
	if servers, deferred := s.deferred[workload.Key]; deferred {
		return workload.Staying(workload.Key, servers)
	}
	return workload
}

// IsDeferred reports whether the last operation has deferred the write of an object.
func (s *State) IsDeferred(key object.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, deferred := s.deferred[key]
	return deferred
}

// nextToCreate returns the deferred objects whose servers are ready.
func (s *State) nextToCreate() []object.Key {
	var found []object.Key
	for key, servers := range s.deferred {
		if !slices.ContainsFunc(servers, func(server object.Key) bool { return !s.workloads[server].Serves() }) {
			found = append(found, key)
		}
	}
	return found
}

// AwaitsOthers reports whether an object was deferred for a server that is not part of the release, so that no
// watch reports it.
func (s *State) AwaitsOthers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.awaitingOthers()) > 0
}

// awaitingOthers are looked at whenever anything is.
func (s *State) awaitingOthers() []object.Key {
	var found []object.Key
	for key, servers := range s.deferred {
		if slices.ContainsFunc(servers, func(server object.Key) bool { return !health.HasStatus(server.GroupKind) }) {
			found = append(found, key)
		}
	}
	return found
}

// noteEarly takes over what watches have reported of objects that an operation was about to add,
// if it is newer than what the operation has left. It reports whether any has to be read again.
func (s *State) noteEarly(live map[object.Key]*unstructured.Unstructured) (changed bool) {
	for key, seen := range s.early {
		obj, added := live[key]
		switch {
		case !added || !isNewer(seen.Version, obj.GetResourceVersion()):
		case seen.Fingerprint != s.lastApplied[key]:
			s.drift(key, seen)
			changed = true
		case seen.StatusUnread:
			changed = s.noteUnread(key, seen.Version) || changed
		}
	}
	clear(s.early)
	return changed
}

// drift notes how an object is that is not as it was last applied. Who wrote over it at the
// version of a drift would take the drift for its own.
func (s *State) drift(key object.Key, seen Known) {
	delete(s.versions, key)
	s.drifted[key] = seen
}

// Known is how an object is, as far as that is known.
type Known struct {
	Fingerprint object.Fingerprint

	// Version is a resource version at which the object was so; empty if none is known.
	Version string

	// StatusUnread is set if the status of the object counts, and was not reported.
	StatusUnread bool
}

// NotDrifted gives the objects that are as they were last applied, and are to be; nil if every
// object is to be read. Objects with certificates are not among them: those are renewed as time
// passes.
func (s *State) NotDrifted() map[object.Key]Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = false // who asks reads the others after this
	if s.all {
		return nil
	}
	found := make(map[object.Key]Known, len(s.lastApplied))
	for key, left := range s.lastApplied {
		_, drifted := s.drifted[key]
		_, deferred := s.deferred[key]
		if !drifted && !deferred && !slices.Contains(s.certificates.Keys, key) {
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

// ConfirmedAt is when every object was read or written last, as the ServiceAccount; zero if this
// process has not done so. What watches report says nothing of its rights.
func (s *State) ConfirmedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.confirmed
}

// SettleSome notes how a repair has left single objects. If any of them has to do with
// certificates, kept are all of those. It reports what [State.Settle] does.
func (s *State) SettleSome(left Left, kept Certificates) (changed bool) {
	live := left.Live
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.lastApplied, left.LastApplied())
	s.noteVersions(live)
	changed = s.noteEarly(live)
	maps.DeleteFunc(s.workloads, func(key object.Key, last health.Workload) bool {
		return left.Untouched[key].Deleted && !last.HasFailed()
	})
	s.noteWorkloads(live)
	maps.DeleteFunc(s.deferred, func(key object.Key, _ []object.Key) bool { return live[key] != nil })
	for key := range left.Deferred {
		if live[key] == nil { // it was deleted
			delete(s.lastApplied, key)
		}
	}
	s.noteDeferred(left.Deferred)
	s.catchUp()
	for key := range live {
		delete(s.seen, key)
	}
	if len(kept.Keys) > 0 {
		s.certificates = kept
	}
	s.dropOwnEvents()
	return changed || len(s.nextToCreate()) > 0
}

// dropOwnEvents drops what watches have reported of our own writes: an event can come
// before the answer to the request that caused it. Of what was too large to be read, that is what
// is no newer than what the operation has left.
func (s *State) dropOwnEvents() {
	maps.DeleteFunc(s.drifted, func(key object.Key, seen Known) bool {
		last, known := s.lastApplied[key]
		return !known || seen.Fingerprint == last || s.isRead(key, seen)
	})
}

// isRead says of what was too large to be read that an operation has read or written the object
// at that version or a newer one.
func (s *State) isRead(key object.Key, seen Known) bool {
	return seen.Fingerprint == object.Fingerprint{} && !isNewer(seen.Version, cmp.Or(s.lastApplied[key].ResourceVersion, s.versions[key]))
}

// noteObject notes how a watch has reported an object; its fingerprint is empty if it was too large
// to be read. It reports whether the extension is to be woken.
func (s *State) noteObject(key object.Key, seen Known) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialSync != nil {
		defer s.initialSync.report(key)
	}
	last, known := s.lastApplied[key]
	switch {
	case !known:
		delete(s.drifted, key)
		// Anybody can make objects with the labels of the extension, and any number of them.
		if _, is := s.early[key]; s.mayBeAdded(key) && (is || len(s.early) < maxEarly) {
			s.early[key] = seen
		}
		return false
	case s.isRead(key, seen):
		return false
	case last == seen.Fingerprint:
		delete(s.drifted, key)
		if last.ResourceVersion == "" && isNewer(seen.Version, s.versions[key]) {
			s.versions[key] = seen.Version
			return seen.StatusUnread && s.noteUnread(key, seen.Version)
		}
		return false
	}
	s.drift(key, seen)
	return s.initialSync == nil // a pass that waits for the initial sync needs no other one
}

// mayBeAdded says that an operation may be about to create an object.
func (s *State) mayBeAdded(key object.Key) bool {
	_, deferred := s.deferred[key]
	return s.all || deferred
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

// maxEarly is how many objects, and how many workloads, are remembered before it is known whose
// they are.
const maxEarly = 1000

// seenWorkload is a workload with the fingerprint of its object.
type seenWorkload struct {
	fingerprint object.Fingerprint
	workload    health.Workload
}

// catchUp takes over the workloads that watches have reported during an operation. They are
// taken for newer than what the operation has read: the status may have changed before the
// operation was over, and there is no other event for that. If they are older after all,
// another event follows. The status of a deleted Job counts only if the Job has failed.
func (s *State) catchUp() {
	for key, seen := range s.seen {
		isDone := seen.fingerprint.Deleted && !seen.workload.HasFailed()
		if last, ours := s.lastApplied[key]; ours && seen.fingerprint == last && !isDone {
			s.replaceWorkload(s.reported(seen.workload))
		}
	}
}

// replaceWorkload forgets a custom resource that has no conditions any more.
func (s *State) replaceWorkload(now health.Workload) {
	if s.workloads[now.Key] = now; !now.Counts() {
		delete(s.workloads, now.Key)
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
	if ours || s.all && len(s.seen) < maxEarly {
		s.seen[workload.Key] = seenWorkload{fingerprint: fingerprint, workload: workload}
	}
	now := s.reported(workload)
	if !ours || s.workloads[workload.Key] == now || !workload.Counts() && !s.workloads[workload.Key].Counts() {
		return false
	}
	s.replaceWorkload(now)
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
	s.again = false // who asks reads them after this
	found := make(map[object.Key]struct{}, len(s.drifted))
	for key := range s.drifted {
		found[key] = struct{}{}
	}
	s.repairs.holdBack(found, now)
	for _, key := range append(s.nextToCreate(), s.awaitingOthers()...) {
		found[key] = struct{}{}
	}
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

// Certificates are as the last operation that concerned them has left them.
func (s *State) Certificates() Certificates {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.certificates
}

// IsRenewalDue says that certificates are to be renewed.
func (s *State) IsRenewalDue(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.certificates.isDue(now)
}

// NoteCertificates notes how a renewal has left certificates. It says nothing of whether their
// objects have drifted.
func (s *State) NoteCertificates(kept Certificates) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.certificates = kept
}

func (s *State) keys() []object.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.lastApplied))
}

// Newest is the newest fingerprint that is known of an object, be it one that has drifted;
// false if it is not known how the object is.
func (s *State) Newest(key object.Key) (object.Fingerprint, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest, known := s.lastApplied[key]
	if seen, drifted := s.drifted[key]; drifted {
		newest, known = seen.Fingerprint, seen.Fingerprint != object.Fingerprint{}
	}
	return newest, known && !s.all
}
