package applier

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
)

// memory is all that this process remembers of one incarnation of an extension. One
// thing at a time is done for it; only watches tell of what they see beside that, and
// they tell drift, which has a lock of its own.
type memory struct {
	uid   types.UID
	drift *drift.State

	// history are the release records; nil until they were listed.
	history *release.History

	// recorded is what the release records say; nil until they were read.
	recorded *installation.State

	// size is that of the record of what is installed, in bytes.
	size int

	// content are the objects of the installed release, for when it goes; nil until
	// they were looked at.
	content []departing

	// departing are the objects that have not gone yet of an extension that is being
	// deleted.
	departing []departing
}

// memory belongs to one incarnation of an extension: one that was deleted and
// made again starts anew.
func (a *Applier) memory(owner object.Owner) *memory {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.memories[owner.Name]
	if !ok || known.uid != owner.UID {
		known = &memory{uid: owner.UID, drift: drift.NewState()}
		a.memories[owner.Name] = known
	}
	return known
}

// known is what is known of the objects of an extension; nil if nothing is.
func (a *Applier) known(extension string) *drift.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.memories[extension]; known != nil {
		return known.drift
	}
	return nil
}

// Forget drops everything held for an extension that is being deleted, but for what
// [Applier.Depart] has found out. Its content and records go with it, by the cluster's
// garbage collection.
func (a *Applier) Forget(extension string) {
	a.watches.Unfollow(extension)
	a.histories.Drop(extension)
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.memories[extension]; known != nil {
		a.memories[extension] = &memory{uid: known.uid, drift: drift.NewState(), departing: known.departing}
	}
}

// Departed drops what is left in memory of an extension that is gone.
func (a *Applier) Departed(extension string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.memories, extension)
}

// follow has the objects of an extension watched, and remembered for when they go.
func (a *Applier) follow(owner object.Owner, items []object.Item) (fresh bool) {
	a.memory(owner).content = departingItems(items)
	return a.watches.Follow(owner, items)
}

// history gives the release records of an extension. They are listed once, and from then
// on known by what this process itself writes: whoever leads is the only one to write
// records. Records that turn out to be wrong are listed again when next asked for.
func (a *Applier) history(ctx context.Context, owner object.Owner) (*release.History, error) {
	known := a.memory(owner)
	if known.history != nil {
		return known.history, nil
	}
	loaded, err := a.histories.Load(ctx, owner)
	if err != nil {
		return nil, err
	}
	known.history = loaded
	return loaded, nil
}

// unsettle is for the start of an operation, and for records that somebody else has
// written: neither what is installed nor any object is taken for known any more.
func (m *memory) unsettle() {
	m.recorded = nil
	m.drift.LookAtAll()
}

// undisturbed gives the fingerprints of the objects that are known to be as the
// installed revision left them. After one that was not finished there are none: repair
// leaves objects as the installed one wants them.
func (m *memory) undisturbed() map[object.Key]object.Fingerprint {
	if m.recorded == nil || m.recorded.Unfinished {
		return nil
	}
	return m.drift.Undisturbed()
}
