package applier

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// DeleteWorkloads deletes what an extension owns that runs something, and names what is
// not gone yet, with its pods and replicas. It reads and deletes as the ServiceAccount. It
// fails with [object.ErrOwnerGone] if the content is to stay by now.
func (a *Applier) DeleteWorkloads(ctx context.Context, owner object.Owner) (left []string, err error) {
	if err := a.confirm(ctx, owner); err != nil {
		return nil, err
	}
	client, err := impersonation.As(a.clients, owner.Account(), metadata.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	content, err := a.recordedContent(ctx, owner)
	if err != nil {
		return nil, err
	}
	content = slices.DeleteFunc(content, func(one deletable) bool { return !health.RunsPods(one.key.GroupKind) })
	return deleteOwned(ctx, client, owner, content)
}

// DeleteContent deletes all that an extension owns of what it has installed, and names what is not
// gone yet. What has other owners stays. It reads and deletes as the ServiceAccount. It fails with
// [object.ErrOwnerGone] if the content is to stay by now.
func (a *Applier) DeleteContent(ctx context.Context, owner object.Owner) (left []string, err error) {
	history, err := a.histories.AsIs(ctx, owner)
	if err != nil {
		return nil, err
	}
	items, err := a.itemsIn(ctx, owner, history)
	if err != nil {
		return nil, err
	}
	if err := a.confirm(ctx, owner); err != nil {
		return nil, err
	}
	if err := history.NoteContentGoes(ctx); err != nil {
		return nil, err
	}
	client, err := impersonation.As(a.clients, owner.Account(), metadata.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	left, err = deleteOwned(ctx, client, owner, deletablesOf(items))
	return left, object.AsRightsError(err)
}

// deleteOwned names what is not gone yet.
func deleteOwned(ctx context.Context, client metadata.Interface, owner object.Owner, content []deletable) (left []string, err error) {
	for _, one := range withoutKept(content) {
		found, err := deleteOne(ctx, client, owner, one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.key, err)
		}
		if found != nil {
			left = append(left, found.String())
		}
	}
	return left, nil
}

// deleteOne is nil for what is gone, or belongs to others as well.
func deleteOne(ctx context.Context, client metadata.Interface, owner object.Owner, one deletable) (*remainingObject, error) {
	live, err := one.read(ctx, client)
	if apierrors.IsNotFound(err) || err == nil && (!owner.IsOwnerOf(live) || owner.SharesWithOthers(live)) {
		return nil, nil
	}
	if err == nil && live.DeletionTimestamp == nil {
		err = client.Resource(one.resource).Namespace(one.key.Namespace).Delete(ctx, one.key.Name, object.InForeground(live))
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &remainingObject{Key: one.key, Finalizers: usage.TheirFinalizers(live)}, nil
}
