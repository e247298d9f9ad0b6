package plan

import (
	"context"
	"sync"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Confirm fails with [object.ErrOwnerGone] unless an extension is there and is to stay.
type Confirm func(context.Context, object.Owner) error

// Guard stands before the writes of one operation. An operation can take minutes,
// and its extension can be deleted in each of them.
type Guard struct {
	confirm Confirm
	owner   object.Owner

	mu        sync.Mutex
	confirmed bool
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

// askAgain asks before each deletion, and before each write that makes the extension
// the owner of an object that exists. In the latter case the object must have been read
// before, and the write must be refused if it was changed since: whoever deletes an extension and keeps its
// content has the garbage collector take the owner off, and an owner that is put
// back then takes the object with it. If that had begun when the object was read,
// the extension says so now; if it began later, the object has changed.
func (g *Guard) askAgain(ctx context.Context) error {
	return g.confirm(ctx, g.owner)
}
