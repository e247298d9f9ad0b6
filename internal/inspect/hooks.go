package inspect

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

// addHookObstacles adds the objects that block the hooks that would run. Hooks after the content are not blocked by
// content of the installed version: what the new version drops is deleted before.
func addHookObstacles(ctx context.Context, api dynamic.Interface, plan Plan, facts *preview.Facts) {
	if plan.IsInstalled && plan.Progress == nil {
		return
	}
	installed, err := object.Known(plan.mapper, plan.Owner, plan.contentNow)
	if err != nil {
		return // the preview of the objects reports it
	}
	for i, due := range preview.DueHooks(*facts) {
		isOfThisRun := i == 0 && plan.Progress != nil
		items, err := object.Items(plan.mapper, plan.Owner, []*unstructured.Unstructured{due.Hook.Object})
		if err != nil || isOfThisRun {
			continue
		}
		key := items[0].Key
		live, err := api.Resource(items[0].Mapping.Resource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			facts.Unknown = append(facts.Unknown, fmt.Sprintf("whether an object blocks the %s hook %s: %v", due.Event, key, object.WithoutValues(key.GroupKind, err)))
		case !plan.Owner.Owns(live):
			conflict := &object.ConflictError{Claimant: plan.Owner, Conflicts: []object.Conflict{{Object: key, Holder: object.HolderOf(live)}}}
			facts.Obstacles = append(facts.Obstacles, fmt.Sprintf("the %s hook %s cannot run: %v", due.Event, key, conflict))
		default:
			_, isContent := installed[key]
			why := due.Hook.ObstacleIn(live, isContent, object.ContainsData(due.Hook.Object))
			if isAfter := due.Event == hook.PostInstall || due.Event == hook.PostUpgrade; why == "" || isAfter && why == hook.IsContent {
				continue
			}
			facts.Obstacles = append(facts.Obstacles, fmt.Sprintf("the %s hook %s cannot run: %s", due.Event, key, why))
		}
	}
}
