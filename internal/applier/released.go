package applier

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// ReleaseKept removes the owner labels from the kept objects of an extension that is being deleted, and
// returns their keys, sorted. It reads and writes as the ServiceAccount, and sends no request if it is
// known that there are no such objects. After an error, objects may have labels; they are not deleted.
func (a *Applier) ReleaseKept(ctx context.Context, owner object.Owner) ([]object.Key, error) {
	kept, err := a.itemsWithoutReference(ctx, owner, func(item object.Item) bool { return object.IsKept(item.Object) })
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	planner, err := a.planner(owner)
	if err != nil {
		return nil, err
	}
	return planner.Release(ctx, kept)
}

// ClaimImported sets an extension that is being deleted as the owner of objects that were imported from
// Helm, so that they are deleted with it. With an error it returns the keys of the objects for which this
// failed, sorted; none if the release records cannot be read. It reads and writes as the ServiceAccount,
// and sends no request if it is known that there are no such objects.
func (a *Applier) ClaimImported(ctx context.Context, owner object.Owner) (unclaimed []object.Key, err error) {
	known := a.memory(owner)
	known.unclaimed = nil
	imported, err := a.itemsWithoutReference(ctx, owner, func(item object.Item) bool {
		return isUnlabelled(item) && !object.IsKept(item.Object)
	})
	if err != nil || len(imported) == 0 {
		return nil, err
	}
	planner, err := a.planner(owner)
	if err != nil {
		return nil, err
	}
	known.unclaimed, err = planner.Claim(ctx, imported)
	return known.unclaimed, err
}

// itemsWithoutReference returns the kept and imported objects that a function selects. They are known from the last
// repair, or from the release records.
func (a *Applier) itemsWithoutReference(ctx context.Context, owner object.Owner, selects func(object.Item) bool) ([]object.Item, error) {
	known := a.memory(owner)
	found := known.withoutReference
	if known.content == nil {
		history, err := a.histories.AsIs(ctx, owner)
		if err != nil {
			return nil, err
		}
		items, err := a.itemsIn(ctx, owner, history)
		if err != nil {
			return nil, err
		}
		found = withoutReference(items)
	}
	return slices.DeleteFunc(slices.Clone(found), func(item object.Item) bool { return !selects(item) }), nil
}

// withoutReference returns the items that have no owner reference to the extension, see
// [memory.withoutReference].
func withoutReference(items []object.Item) []object.Item {
	var found []object.Item
	for _, item := range items {
		if !object.IsKept(item.Object) && !isUnlabelled(item) {
			continue
		}
		manifest := &unstructured.Unstructured{Object: map[string]any{}}
		manifest.SetGroupVersionKind(item.Object.GroupVersionKind())
		manifest.SetNamespace(item.Object.GetNamespace())
		manifest.SetName(item.Object.GetName())
		manifest.SetLabels(item.Object.GetLabels())
		manifest.SetAnnotations(item.Object.GetAnnotations())
		item.Object = manifest
		found = append(found, item)
	}
	return found
}
