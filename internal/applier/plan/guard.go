package plan

import (
	"context"
	"sync"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Confirm fails with [object.ErrOwnerGone] unless an extension is there and is to stay.
type Confirm func(context.Context, object.Owner) error

// Guard asks whether the extension still exists before an operation writes for it. An
// operation can take minutes, and the extension can be deleted meanwhile.
type Guard struct {
	confirm Confirm
	owner   object.Owner

	mu        sync.Mutex
	confirmed bool
}

// Confirm is for an operation that has been told by the API server, just before its first
// write, that the extension is there and is to stay.
func (g *Guard) Confirm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.confirmed = true
}

// Ask asks once, at the first write of the operation.
func (g *Guard) Ask(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.confirmed {
		return nil
	}
	if err := g.confirm(ctx, g.owner); err != nil {
		return err
	}
	g.confirmed = true
	return nil
}

// askAgain asks before deletions, and before each write that makes the extension the owner
// of an object that exists. The objects must have been read before, and each request must be
// refused if its object was changed since.
//
// The reason is a deletion that orphans the content: the garbage collector removes the
// owner from each object. An owner that is written back after that would have the object
// deleted with the extension, and what is deleted does not come back. If the collector began
// before the object was read, the extension is being deleted by now, and askAgain fails. If
// it began later and has come to the object, the object was changed, and the request is
// refused.
func (g *Guard) askAgain(ctx context.Context) error {
	return g.confirm(ctx, g.owner)
}
