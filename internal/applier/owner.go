package applier

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// owners asks the API server, as the controller, whether extensions are still there.
type owners struct{ extensions metadata.ResourceInterface }

// confirm fails with [object.ErrOwnerGone] unless the extension is there and is to stay, or
// is held. A cache does not do: what it has not heard of yet is what matters.
func (o owners) confirm(ctx context.Context, owner object.Owner) error {
	found, err := o.extensions.Get(ctx, owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return object.ErrOwnerGone
	case err != nil:
		return fmt.Errorf("reading %s %q before writing for it: %w", object.OwnerKind, owner.Name, err)
	case owner.HeldBy != 0 && found.Generation != owner.HeldBy:
		return object.ErrOwnerGone // as far as this operation is about it
	case found.UID != owner.UID || !found.DeletionTimestamp.IsZero() && (!owner.Held || !isHeld(found)):
		return object.ErrOwnerGone
	}
	return nil
}

// isHeld says that the garbage collector neither deletes nor orphans the content of an
// extension that is being deleted. It does not begin to as long as the extension is there,
// unless it is told so by a finalizer of its own.
func isHeld(extension metav1.Object) bool {
	return !slices.ContainsFunc(extension.GetFinalizers(), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
}
