package policykeeper

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// write says of each policy whether it can be used, unless it says so already.
func (k *Keeper) write(ctx context.Context, policies []policyv1alpha1.ImagePolicy, set *imagepolicy.Set) error {
	var failed []error
	for i := range policies {
		policy := policies[i].DeepCopy()
		if !setReady(policy, set) {
			continue
		}
		// Another version than the one that was judged is judged in the next pass.
		patch := client.MergeFromWithOptions(&policies[i], client.MergeFromWithOptimisticLock{})
		err := k.cfg.Client.Status().Patch(ctx, policy, patch)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failed = append(failed, fmt.Errorf("writing the status of ImagePolicy %q: %w", policy.Name, err))
		}
	}
	return errors.Join(failed...)
}
