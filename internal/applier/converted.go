package applier

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
)

// conversionPatience bounds the deletion of a CRD while its conversion is kept. After that the controller ends the
// conversion.
const conversionPatience = 30 * time.Second

// deleteConverted deletes a CRD with a conversion webhook while the operator runs: to delete the custom resources, the
// API server lists them, which may need the webhook. If the webhook does not answer, or the deletion takes long, it
// ends the conversion, so that the deletion needs no webhook. It returns nil for a CRD that is gone, that has no
// conversion webhook, or that has another owner, and for a CRD that it may not read if the bundle has no webhook for it.
func (a *Applier) deleteConverted(ctx context.Context, client dynamic.Interface, reader metadata.Interface, owner object.Owner, one deletable) (*remainingObject, error) {
	definitions := client.Resource(usage.DefinitionResource)
	live, err := definitions.Get(ctx, one.key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err) && !one.converts:
		return nil, nil
	case err != nil:
		return nil, err
	case !owner.IsOwnerOf(live) || owner.SharesWithOthers(live) || object.IsKept(live):
		return nil, nil
	case !object.IsConverted(live):
		return afterConversion(one, live), nil
	case live.GetDeletionTimestamp() == nil:
		a.memory(owner).noteCount(customResourcesOf(ctx, reader, one))
		err = definitions.Delete(ctx, one.key.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(live.GetUID()))})
		if object.IsLackOfRights(err) { // the garbage collector deletes it, unless an admission rule protects it
			return nil, endConversion(ctx, definitions, live)
		}
	case needsEnd(live, a.config.Now()):
		err = endConversion(ctx, definitions, live)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return nil, err
	}
	return &remainingObject{Key: one.key, Waits: object.FailedDeletion(live)}, nil
}

// afterConversion waits for a CRD whose custom resources no webhook converts any more, unless these have finalizers.
func afterConversion(one deletable, live *unstructured.Unstructured) *remainingObject {
	if live.GetDeletionTimestamp() == nil || object.FailedDeletion(live) == "" {
		return nil
	}
	return &remainingObject{Key: one.key, Waits: object.FailedDeletion(live)}
}

// needsEnd reports whether the deletion of a CRD has failed, or takes long.
func needsEnd(live *unstructured.Unstructured, now time.Time) bool {
	return object.FailedDeletion(live) != "" || now.Sub(live.GetDeletionTimestamp().Time) >= conversionPatience
}

// endConversion changes exactly the CRD that was read. The error names the command for users who may do the same.
func endConversion(ctx context.Context, definitions dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"conversion":{"strategy":"None","webhook":null}}}`,
		live.GetUID(), live.GetResourceVersion())
	_, err := definitions.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: object.FieldManager})
	if err != nil {
		return fmt.Errorf("its conversion webhook is needed to delete custom resources, and cannot be switched off: run %s: %w", object.EndConversion(live.GetName()), err)
	}
	log.FromContext(ctx).Info("ended the conversion of a CRD that is being deleted", "object", object.KeyOf(live).Logged())
	return nil
}
