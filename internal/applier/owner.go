package applier

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// owners asks the API server, as the controller, whether extensions are still there.
type owners struct{ extensions metadata.ResourceInterface }

// confirm fails with [object.ErrOwnerGone] unless the extension is there and is to stay. A
// cache does not do: what it has not heard of yet is what matters.
func (o owners) confirm(ctx context.Context, owner object.Owner) error {
	found, err := o.extensions.Get(ctx, owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return object.ErrOwnerGone
	case err != nil:
		return fmt.Errorf("reading %s %q before writing for it: %w", object.OwnerKind, owner.Name, err)
	case found.UID != owner.UID || !found.DeletionTimestamp.IsZero():
		return object.ErrOwnerGone
	}
	return nil
}

// guard stands before the writes of one operation. An operation can take minutes,
// and its extension can be deleted in each of them.
type guard struct {
	confirm func(context.Context, object.Owner) error
	owner   object.Owner

	mu        sync.Mutex
	confirmed bool
}

// ask asks once, at the first write of the operation.
func (g *guard) ask(ctx context.Context) error {
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
// the owner of an object that exists. In the latter case the object must have been read before, and the write must be
// refused if it was changed since: whoever deletes an extension and keeps its
// content has the garbage collector take the owner off, and an owner that is put
// back then takes the object with it. If that had begun when the object was read,
// the extension says so now; if it began later, the object has changed.
func (g *guard) askAgain(ctx context.Context) error {
	return g.confirm(ctx, g.owner)
}

// guard is for one operation.
func (a *Applier) guard(owner object.Owner) *guard { return &guard{confirm: a.confirm, owner: owner} }
