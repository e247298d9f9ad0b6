package applier

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
)

// memory is all that this process remembers of one extension between passes. It belongs
// to one UID. Passes over an extension do not overlap, so memory needs no lock. Watches
// run beside them; they write only to drift, which has a lock of its own.
type memory struct {
	uid   types.UID
	drift *drift.State

	// confirmBy is by when the objects are read of an extension that this process has not read
	// yet; after that it is confirmPause after they were read last. See [confirmInterval].
	confirmBy    time.Time
	confirmPause time.Duration

	// renewing says that the objects of certificates were read since the extension was
	// suspended, or this process began.
	renewing bool

	// refused are the namespaces that were lacking when the last try of a revision failed for
	// them, and lacking those that were when all objects elsewhere were read: what is in them
	// is not known, and there is nothing to try until one of them is there.
	refused, lacking []string

	// counted contains the custom resources of CRDs that [Applier.deleteConverted] deletes, counted before the
	// deletion.
	counted map[string]installation.CustomResources

	// diagnoses are why workloads do not serve.
	diagnoses diagnoses

	// claims are those of the operator that is installed; nil until they were read.
	claims *claims

	// history are the release records; nil until they were listed.
	history *release.History

	// state is what the release records say; nil until they were read.
	state *installation.State

	// hooksBefore are those before the content of a revision that was begun, and hooksAfter those
	// after that of what is installed, as they were when one of them was to be waited for; nil if
	// they are to be read.
	hooksBefore *hooksBefore
	hooksAfter  *release.Hooks

	// noDeletionHooks says, where state does not, that there are no hooks for the deletion.
	noDeletionHooks bool

	// size is that of the record of what is installed, in bytes.
	size int

	// content are the objects of the installed release, for when the extension is
	// deleted; nil until they are watched.
	content []deletable

	// withoutReference are the objects among the content without an owner reference to the extension: kept,
	// or imported from Helm. The garbage collector does not delete them. They have the metadata of their
	// manifests alone. The records of an extension may be deleted before they are read again.
	withoutReference []object.Item

	// unclaimed are the imported objects for which [Applier.ClaimImported] failed last.
	unclaimed []object.Key

	// remaining are the objects of an extension that is being deleted which are not
	// deleted yet.
	remaining []deletable

	// uses are those of the definitions of an extension whose deletion they hold up.
	uses inUse
}

func newMemory(uid types.UID, now time.Time) *memory {
	jitter := rand.N(confirmInterval) //nolint:gosec // spreads load
	return &memory{
		uid: uid, drift: drift.NewState(), diagnoses: newDiagnoses(),
		confirmBy: now.Add(jitter), confirmPause: confirmInterval + jitter,
	}
}

// nextConfirm is when all objects are to be read, if only shared watches watch them.
func (m *memory) nextConfirm() time.Time {
	if confirmed := m.drift.ConfirmedAt(); !confirmed.IsZero() {
		return confirmed.Add(m.confirmPause)
	}
	return m.confirmBy
}

// memory gives what is remembered of an extension. One that was deleted and created again
// has another UID, and starts anew.
func (a *Applier) memory(owner object.Owner) *memory {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.memories[owner.Name]
	if !ok || known.uid != owner.UID {
		if ok {
			known.uses.forget()
		}
		known = newMemory(owner.UID, a.config.Now())
		a.memories[owner.Name] = known
	}
	return known
}

// known gives the drift of an extension; nil if nothing is remembered of it.
func (a *Applier) known(extension string) *drift.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.memories[extension]; known != nil {
		return known.drift
	}
	return nil
}

// Forget drops everything held for an extension that is being deleted, but for what
// [Applier.BeginDeletion] has found. The garbage collector deletes its content and records.
func (a *Applier) Forget(extension string) {
	a.watches.Unwatch(extension)
	a.histories.Drop(extension)
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.memories[extension]; known != nil {
		known.uses.forget()
		forgotten := newMemory(known.uid, a.config.Now())
		forgotten.remaining = known.remaining
		a.memories[extension] = forgotten
	}
}

// EndDeletion drops what is still remembered of an extension that does not exist any more.
func (a *Applier) EndDeletion(extension string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.memories[extension]; known != nil {
		known.uses.forget()
		delete(a.memories, extension)
	}
}

// watch has the objects of an extension watched, and remembers them for its deletion. It
// reports whether all of the watches begin with an initial sync.
func (a *Applier) watch(owner object.Owner, items []object.Item, since drift.Since) (fresh bool) {
	known := a.memory(owner)
	known.content, known.withoutReference = deletablesOf(items), withoutReference(items)
	if !known.hasUnlabelled() {
		return a.watches.Watch(owner, items, since)
	}
	a.watches.Watch(owner, slices.DeleteFunc(slices.Clone(items), isUnlabelled), since)
	return false
}

func isUnlabelled(item object.Item) bool { return !object.IsLabelled(item.Object) }

// hasUnlabelled reports whether objects were imported from Helm and have no labels yet. Watches select
// objects by labels, so these objects are read at intervals.
func (m *memory) hasUnlabelled() bool { return slices.ContainsFunc(m.withoutReference, isUnlabelled) }

// history gives the release records of an extension. They are listed once in the life of a
// process. After that the process knows them by what it writes itself: only the leader
// writes records. Records that were dropped as invalid are listed again.
func (a *Applier) history(ctx context.Context, owner object.Owner) (*release.History, error) {
	known := a.memory(owner)
	if known.history != nil {
		known.history.SetOwner(owner)
		return known.history, nil
	}
	loaded, err := a.histories.Load(ctx, owner)
	if err != nil {
		return nil, err
	}
	known.history = loaded
	return loaded, nil
}

// lackingErr says which namespaces were lacking when all objects elsewhere were read; nil for
// none.
func (m *memory) lackingErr() error {
	if len(m.lacking) == 0 {
		return nil
	}
	return &object.MissingNamespacesError{Namespaces: m.lacking}
}

// invalidate drops what is known of the release and of all objects. It is called before the
// first write of an operation, and when somebody else may have written records. The hooks after
// the content are those of a revision that may not be the installed one any more.
func (m *memory) invalidate() {
	m.state, m.lacking, m.hooksAfter = nil, nil, nil
	m.drift.LookAtAll()
}

// notDrifted gives the objects that are as they were last applied. It gives none after a revision that is unfinished: objects may be as that one left them.
func (m *memory) notDrifted() map[object.Key]drift.Known {
	if m.state == nil || m.state.Unfinished {
		return nil
	}
	return m.drift.NotDrifted()
}

func (m *memory) noteCount(counted installation.CustomResources) {
	if m.counted == nil {
		m.counted = map[string]installation.CustomResources{}
	}
	m.counted[counted.Definition] = counted
}
