package applier

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// maxDeleted is how many custom resources of a definition one pass deletes. The next one
// goes on.
const maxDeleted = 500

// DeleteCustomResources deletes what there is of the kinds of the definitions that go with an
// extension, and does not wait for it. A definition that has other owners stays. It may leave some for the next call. It reads and
// deletes as the ServiceAccount. It fails with [object.ErrOwnerGone] if the content is to
// stay by now.
func (a *Applier) DeleteCustomResources(ctx context.Context, owner object.Owner) error {
	definitions, err := a.ownedDefinitions(ctx, owner)
	if err != nil {
		return err
	}
	client, err := impersonation.As(a.clients, owner.Account(), metadata.NewForConfigAndClient)
	if err != nil {
		return err
	}
	a.memory(owner).uses.forget() // they are told otherwise from now on
	var errs []error
	for _, one := range definitions {
		if one.Shared {
			continue
		}
		err := one.Err
		if err == nil {
			err = deleteAll(ctx, client, one.Resource, func() error { return a.confirm(ctx, owner) })
		}
		if errors.Is(err, object.ErrOwnerGone) {
			return err
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("custom resources of %s: %w", one.Name, err))
		}
	}
	return errors.Join(errs...)
}

// confirmEach is after how many deletions it is asked again whether they are still wanted.
const confirmEach = 20

// deleteAll deletes exactly the objects that it reads, up to [maxDeleted], as long as that is
// confirmed: first after they were read, which may have taken long.
func deleteAll(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, confirm func() error) error {
	found, err := undeleted(ctx, client, resource)
	for i := range found {
		if i%confirmEach == 0 {
			if err := confirm(); err != nil {
				return err
			}
		}
		if err := deleteCustomResource(ctx, client, resource, &found[i]); err != nil {
			return err
		}
	}
	return err
}

// undeleted are the first [maxDeleted] objects that are not being deleted yet, also those that
// were found before an error.
func undeleted(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource) (found []metav1.PartialObjectMetadata, err error) {
	options := metav1.ListOptions{Limit: usage.MaxListed}
	for range usage.MaxPages {
		list, err := client.Resource(resource).List(ctx, options)
		if err != nil {
			return found, err
		}
		for _, live := range list.Items {
			if live.DeletionTimestamp == nil {
				found = append(found, live)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" || len(found) >= maxDeleted {
			break
		}
	}
	return found[:min(len(found), maxDeleted)], nil
}

// deleteCustomResource succeeds if another one has taken its place, which the next pass reads.
func deleteCustomResource(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, live *metav1.PartialObjectMetadata) error {
	err := client.Resource(resource).Namespace(live.Namespace).Delete(ctx, live.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(live.UID)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
