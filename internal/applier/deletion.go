package applier

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// deletable is an object of a release that is deleted with its extension.
type deletable struct {
	key      object.Key
	resource schema.GroupVersionResource

	// isKept is set if it is not deleted with the extension, see [object.IsKept].
	isKept bool

	// defines and kind are what a CustomResourceDefinition defines.
	defines schema.GroupVersionResource
	kind    string

	// converts is set for a CRD with a conversion webhook.
	converts bool
}

// remainingObject is an object that is not deleted yet.
type remainingObject struct {
	Key object.Key

	// Finalizers are what it waits for, besides those by which the cluster waits for
	// what the object owns. Held are custom resources that have some, if the object is
	// their definition.
	Finalizers []string
	Held       []heldObject

	// Waits is why its deletion fails, in the words of the API server.
	Waits string

	// Err says that it could not be read.
	Err error
}

// heldObject is a custom resource that has finalizers.
type heldObject struct {
	Key        object.Key
	Finalizers []string
}

// maxHeld is how many custom resources of a definition are looked at for finalizers.
const maxHeld = 50

// BeginDeletion says what is going to be deleted with an extension, and what is not. It is
// called while all of it is still there. It reads as the ServiceAccount.
func (a *Applier) BeginDeletion(ctx context.Context, owner object.Owner) (installation.Deletion, error) {
	client, err := impersonation.As(a.clients, owner.Account(), metadata.NewForConfigAndClient)
	if err != nil {
		return installation.Deletion{}, err
	}
	var deletion installation.Deletion
	known := a.memory(owner)
	leaving := known.content
	if leaving == nil {
		if leaving, err = a.recordedContent(ctx, owner); err != nil {
			return installation.Deletion{}, err
		}
		leaving, deletion.Staying = ownedOf(ctx, client, owner, without(known.unclaimed, withoutKept(leaving)))
	}
	leaving = without(known.unclaimed, withoutKept(leaving))
	known.remaining, deletion.Objects = leaving, len(leaving)
	for _, object := range leaving {
		if !object.defines.Empty() {
			counted, isCounted := known.counted[object.key.Name]
			if !isCounted {
				counted = customResourcesOf(ctx, client, object)
			}
			deletion.CustomResources = append(deletion.CustomResources, counted)
		}
	}
	return deletion, nil
}

func withoutKept(content []deletable) []deletable {
	return slices.DeleteFunc(slices.Clone(content), func(one deletable) bool { return one.isKept })
}

func without(keys []object.Key, content []deletable) []deletable {
	left := make(map[object.Key]bool, len(keys))
	for _, key := range keys {
		left[key] = true
	}
	return slices.DeleteFunc(slices.Clone(content), func(one deletable) bool { return left[one.key] })
}

// ownedOf leaves out objects that are there and that an extension does not own. What
// cannot be read is taken to be owned.
func ownedOf(ctx context.Context, client metadata.Interface, owner object.Owner, content []deletable) (owned []deletable, others []object.Key) {
	for _, object := range content {
		live, err := object.read(ctx, client)
		if err == nil && !owner.IsOwnerOf(live) {
			others = append(others, object.key)
			continue
		}
		owned = append(owned, object)
	}
	return owned, others
}

func (d deletable) read(ctx context.Context, client metadata.Interface) (*metav1.PartialObjectMetadata, error) {
	return client.Resource(d.resource).Namespace(d.key.Namespace).Get(ctx, d.key.Name, metav1.GetOptions{})
}

// recordedContent is for an extension that this process has not looked at. The records
// may be gone already: the garbage collector does not wait for anybody.
func (a *Applier) recordedContent(ctx context.Context, owner object.Owner) ([]deletable, error) {
	history, err := a.histories.AsIs(ctx, owner)
	if err != nil {
		return nil, err
	}
	items, err := a.itemsIn(ctx, owner, history)
	return deletablesOf(items), err
}

// itemsIn returns the objects in release records, without kinds that the cluster does not serve.
func (a *Applier) itemsIn(ctx context.Context, owner object.Owner, history *release.History) ([]object.Item, error) {
	objects, err := history.Objects(ctx, release.None)
	if err != nil {
		return nil, err
	}
	known, err := object.Known(a.config.Mapper, owner, objects)
	return slices.Collect(maps.Values(known)), err
}

// deletablesOf are sorted by their keys.
func deletablesOf(items []object.Item) []deletable {
	content := make([]deletable, 0, len(items))
	for _, item := range items {
		defines, kind := object.DefinedBy(item.Object)
		content = append(content, deletable{
			key: item.Key, resource: item.Mapping.Resource, isKept: object.IsKept(item.Object),
			defines: defines, kind: kind, converts: object.IsConverted(item.Object),
		})
	}
	slices.SortFunc(content, func(a, b deletable) int { return a.key.Compare(b.key) })
	return content
}

func customResourcesOf(ctx context.Context, client metadata.Interface, definition deletable) installation.CustomResources {
	count, err := countOf(ctx, client, definition.defines)
	return installation.CustomResources{Definition: definition.key.Name, Count: count, Err: err}
}

// countOf asks for one object; the API server says how many more there are.
func countOf(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource) (int64, error) {
	list, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	count := int64(len(list.Items))
	if list.RemainingItemCount != nil {
		count += *list.RemainingItemCount
	}
	return count, nil
}

// Remaining names, for people, the objects that are not deleted yet of an extension that is
// being deleted, and what they wait for: first those of which that is known. Each is asked for
// until it is gone. It knows none if no [Applier.BeginDeletion] in this process has.
func (a *Applier) Remaining(ctx context.Context, owner object.Owner) ([]string, error) {
	client, err := impersonation.As(a.clients, owner.Account(), metadata.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	whole, err := impersonation.As(a.clients, owner.Account(), dynamic.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	known := a.memory(owner)
	var left []deletable
	var remaining []remainingObject
	for _, object := range known.remaining {
		found, err := remainingOf(ctx, client, owner, object)
		if err != nil {
			found = &remainingObject{Key: object.key, Err: err}
		}
		if found != nil && !object.defines.Empty() && len(found.Held) == 0 {
			found.Waits = failedDeletion(ctx, whole, object)
		}
		if found != nil {
			left, remaining = append(left, object), append(remaining, *found)
		}
	}
	known.remaining = left
	slices.SortStableFunc(remaining, func(a, b remainingObject) int { return cmp.Compare(a.rank(), b.rank()) })
	texts := make([]string, len(remaining))
	for i, object := range remaining {
		texts[i] = object.String()
	}
	return texts, nil
}

// failedDeletion returns the command that lets the deletion of a CRD go on whose conversion webhook does not answer. It
// is empty for other CRDs, and for a CRD that cannot be read.
func failedDeletion(ctx context.Context, client dynamic.Interface, definition deletable) string {
	live, err := client.Resource(usage.DefinitionResource).Get(ctx, definition.key.Name, metav1.GetOptions{})
	if err != nil || !object.IsConverted(live) || object.FailedDeletion(live) == "" {
		return ""
	}
	return "its conversion webhook does not answer: run " + object.EndConversion(definition.key.Name)
}

// remainingOf is nil for what is gone. What was made anew, or has another owner by
// now, stays.
func remainingOf(ctx context.Context, client metadata.Interface, owner object.Owner, object deletable) (*remainingObject, error) {
	live, err := object.read(ctx, client)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !owner.IsOwnerOf(live) {
		return nil, nil
	}
	found := &remainingObject{Key: object.key, Finalizers: usage.TheirFinalizers(live)}
	if live.DeletionTimestamp != nil && slices.Contains(found.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		found.Held = held(ctx, client, object)
	}
	return found, nil
}

// held are custom resources with finalizers, as far as they can be read.
func held(ctx context.Context, client metadata.Interface, definition deletable) []heldObject {
	if definition.defines.Empty() {
		return nil
	}
	list, err := client.Resource(definition.defines).List(ctx, metav1.ListOptions{Limit: maxHeld})
	if err != nil {
		return nil
	}
	var found []heldObject
	for i := range list.Items {
		if finalizers := usage.TheirFinalizers(&list.Items[i]); len(finalizers) > 0 {
			found = append(found, heldObject{
				Key: object.Key{
					GroupKind: schema.GroupKind{Group: definition.defines.Group, Kind: definition.kind},
					Namespace: list.Items[i].Namespace, Name: list.Items[i].Name,
				},
				Finalizers: finalizers,
			})
		}
	}
	return found
}

// rank is low for what tells most.
func (r remainingObject) rank() int {
	switch {
	case len(r.Held) > 0, r.Waits != "":
		return 0
	case len(r.Finalizers) > 0:
		return 1
	default:
		return 2
	}
}

// String is the object with what it waits for.
func (r remainingObject) String() string {
	switch {
	case apierrors.IsForbidden(r.Err):
		return fmt.Sprintf("%s, unless it is gone: the ServiceAccount may not get it", r.Key)
	case r.Err != nil:
		return fmt.Sprintf("%s, unless it is gone: %v", r.Key, r.Err)
	case len(r.Held) > 0:
		lines := make([]string, 0, len(r.Held))
		for _, held := range r.Held[:min(len(r.Held), maxNamedHeld)] {
			lines = append(lines, fmt.Sprintf("%s with finalizers [%s]", held.Key, strings.Join(held.Finalizers, " ")))
		}
		if more := len(r.Held) - len(lines); more > 0 {
			lines = append(lines, fmt.Sprintf("%d or more others", more))
		}
		return fmt.Sprintf("%s because of %s", r.Key, strings.Join(lines, ", "))
	case r.Waits != "":
		return fmt.Sprintf("%s: %s", r.Key, r.Waits)
	case len(r.Finalizers) > 0:
		return fmt.Sprintf("%s with finalizers [%s]", r.Key, strings.Join(r.Finalizers, " "))
	default:
		return r.Key.String()
	}
}

// maxNamedHeld is how many custom resources of a definition a message names.
const maxNamedHeld = 3
