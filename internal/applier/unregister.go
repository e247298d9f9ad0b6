package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// UnregisterAPIs deletes the API services of an extension that is being deleted, and its CRDs with a conversion
// webhook, see [Applier.deleteConverted]. It returns the names of the objects that are not gone yet. It makes no request if
// it is known that there are neither API services nor CRDs. It reads and deletes as the ServiceAccount, all of them
// even if some cannot be deleted: each that is gone cannot hold up others any more. It fails with
// [object.ErrOwnerGone] if the content is to stay by now.
func (a *Applier) UnregisterAPIs(ctx context.Context, owner object.Owner) (left []string, err error) {
	content := a.memory(owner).content
	if content == nil {
		if content, err = a.recordedContent(ctx, owner); err != nil {
			return nil, err
		}
	}
	registered := slices.DeleteFunc(withoutKept(content), func(one deletable) bool {
		return one.key.GroupKind != object.APIServiceKind && one.defines.Empty()
	})
	if len(registered) == 0 {
		return nil, nil
	}
	if err := a.confirm(ctx, owner); err != nil {
		return nil, err
	}
	client, err := impersonation.As(a.clients, owner.Account(), metadata.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	whole, err := impersonation.As(a.clients, owner.Account(), dynamic.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, one := range registered {
		remove := func() (*remainingObject, error) { return unregister(ctx, client, owner, one) }
		if !one.defines.Empty() {
			remove = func() (*remainingObject, error) { return a.deleteConverted(ctx, whole, client, owner, one) }
		}
		found, err := remove()
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", one.key, err))
		}
		if ctx.Err() != nil {
			break
		}
		if found != nil {
			left = append(left, found.String())
		}
	}
	return left, errors.Join(failures...)
}

// unregister is nil for what is gone, or belongs to others.
func unregister(ctx context.Context, client metadata.Interface, owner object.Owner, one deletable) (*remainingObject, error) {
	for range 2 { // once more to see that it is gone
		live, err := one.read(ctx, client)
		switch {
		case apierrors.IsNotFound(err), err == nil && !owner.IsOwnerOf(live):
			return nil, nil
		case err != nil:
			return nil, err
		case live.DeletionTimestamp != nil:
			return &remainingObject{Key: one.key, Finalizers: usage.TheirFinalizers(live)}, nil
		}
		err = client.Resource(one.resource).Delete(ctx, one.key.Name, metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(live.UID)),
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return &remainingObject{Key: one.key}, nil
}
