package applier

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// fieldManager is that of the reference implementation, so that its objects
// change hands without a trace.
const fieldManager = "operator-controller"

// writer writes single objects, or has the API server say what it would make of
// that.
type writer struct {
	client dynamic.Interface

	// dryRun is that of the requests' options: nothing to write.
	dryRun []string
}

// write brings one object to what a revision wants, and gives the object after it.
// It sends nothing when there is nothing to change.
func (w writer) write(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	if s.live == nil {
		return w.create(ctx, s)
	}
	patch, err := patchOf(s)
	if err != nil {
		return nil, err
	}
	if patch.isEmpty() {
		return s.live, nil
	}
	live, err := w.patch(ctx, s, patch)
	if apierrors.IsInvalid(err) && patch.kind == types.StrategicMergePatchType {
		// An entry of a list whose key somebody changed looks like one that they
		// have added, and can clash with ours.
		if patch, err = listReplacingPatchOf(s); err == nil {
			live, err = w.patch(ctx, s, patch)
		}
	}
	return live, err
}

func (w writer) patch(ctx context.Context, s *step, patch patch) (*unstructured.Unstructured, error) {
	options := metav1.PatchOptions{FieldManager: fieldManager, DryRun: w.dryRun}
	return resourceOf(w.client, s.item).Patch(ctx, s.key.Name, patch.kind, patch.data, options)
}

// create lets an object that appeared since the plan be: the next pass sees it
// and decides whose it is.
func (w writer) create(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	options := metav1.CreateOptions{FieldManager: fieldManager, DryRun: w.dryRun}
	return resourceOf(w.client, s.item).Create(ctx, s.object, options)
}
