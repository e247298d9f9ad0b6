package fromhelm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/migration/helmstore"
)

// Finish ends the move of a release. It adds the labels and the owner reference of the extension to the
// objects, and deletes the records of Helm. After that, [Cluster.Rollback] is not possible.
func (c *Cluster) Finish(ctx context.Context, name helmstore.Name, run Run) error {
	ext, err := c.extension(ctx, name.Name)
	switch {
	case err != nil:
		return err
	case ext == nil:
		return fmt.Errorf("there is no ClusterExtension %q: first move the release with `kubectl extension migrate helm %s -n %s`", name.Name, name.Name, name.Namespace)
	case ext.DeletionTimestamp != nil:
		return fmt.Errorf("ClusterExtension %q is being deleted", name.Name)
	case !isOf(ext, name):
		return c.isFinished(ctx, name, run)
	}
	if err := requireReady(ext, name); err != nil {
		return err
	}
	history, err := c.movedHistory(ctx, name)
	if err != nil {
		return err
	}
	recorded, err := c.inspect.Records(ctx, ext)
	if err != nil {
		return err
	}
	owner := controller.OwnerOf(ext)
	run.Say(fmt.Sprintf("%s: labelling its objects", name))
	claim := func(live *unstructured.Unstructured) (object.Patch, error) {
		patch, err := owner.ClaimPatch(live)
		if err != nil || patch.IsEmpty() {
			return patch, err
		}
		// The garbage collector deletes objects that refer to an owner which is gone.
		return patch, c.isThere(ctx, ext)
	}
	if err := c.patchEach(ctx, owner, recorded.Objects, claim); err != nil {
		return err
	}
	if err := c.inspect.LabelRecords(ctx, ext); err != nil {
		return err
	}
	if err := c.isThere(ctx, ext); err != nil {
		return err
	}
	run.Say(fmt.Sprintf("%s: deleting %d revisions of Helm's records", name, len(history)))
	if err := c.releases.Delete(ctx, history...); err != nil {
		return err
	}
	if err := c.annotate(ctx, ext); err != nil {
		return err
	}
	run.Say(fmt.Sprintf("%s: Helm no longer has records of it", name))
	return nil
}

// requireReady fails if the extension is not ready: Helm's records are the way back.
func requireReady(ext *ocv1.ClusterExtension, name helmstore.Name) error {
	ready := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReady)
	if isReady(ext, ready) {
		return nil
	}
	text := messageOf(ready)
	if ready != nil && !isCurrent(ext, ready) {
		text = ": the controller has not reconciled its last change yet"
	}
	return fmt.Errorf("ClusterExtension %q is not ready, and nothing was changed%s: wait until it is ready, or run `kubectl extension migrate helm rollback %s -n %s`",
		ext.Name, text, name.Name, name.Namespace)
}

// isReady reports whether a version is installed and ready, by a condition of the present spec.
func isReady(ext *ocv1.ClusterExtension, ready *metav1.Condition) bool {
	return ext.Status.Install != nil && ready != nil && ready.Status == metav1.ConditionTrue && isCurrent(ext, ready)
}

// isCurrent reports whether a condition is about the present spec.
func isCurrent(ext *ocv1.ClusterExtension, condition *metav1.Condition) bool {
	return condition.ObservedGeneration == ext.Generation
}

// messageOf returns the message of a condition behind a colon; empty if there is none.
func messageOf(condition *metav1.Condition) string {
	if condition == nil || condition.Message == "" {
		return ""
	}
	return ": " + excerpt.Line(condition.Message, maxMessage)
}

// maxMessage bounds a message in an error, in bytes.
const maxMessage = 512

// movedHistory returns Helm's records of a release that was moved, which end with the marker; nil if they were deleted.
func (c *Cluster) movedHistory(ctx context.Context, name helmstore.Name) ([]helmstore.Revision, error) {
	history, err := c.releases.History(ctx, name)
	if _, isGone := errors.AsType[*helmstore.NotFoundError](err); isGone {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// The marker is deleted last, so that it is the last revision at each repetition, too.
	if last := history[len(history)-1]; !last.IsMarker() {
		return nil, fmt.Errorf("release %q has revision %d, which Helm created after the move, and nothing was changed now: compare `helm history %s -n %s` with the extension; `kubectl extension migrate helm rollback %[3]s -n %[4]s` ends the move",
			name, last.Version, name.Name, name.Namespace)
	}
	return history, nil
}

// isThere fails if the extension was deleted after it was read, or is being deleted.
func (c *Cluster) isThere(ctx context.Context, ext *ocv1.ClusterExtension) error {
	live, err := c.extension(ctx, ext.Name)
	if err == nil && (live == nil || live.UID != ext.UID || live.DeletionTimestamp != nil) {
		err = fmt.Errorf("ClusterExtension %q was deleted meanwhile", ext.Name)
	}
	return err
}

// isFinished returns nil if Helm has no records of the release.
func (c *Cluster) isFinished(ctx context.Context, name helmstore.Name, run Run) error {
	_, err := c.releases.History(ctx, name)
	if _, isGone := errors.AsType[*helmstore.NotFoundError](err); isGone {
		run.Say(fmt.Sprintf("%s: nothing to finish: Helm has no records of it", name))
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("ClusterExtension %q was not created from release %q", name.Name, name)
}

// annotate removes the annotation of the move from the extension.
func (c *Cluster) annotate(ctx context.Context, ext *ocv1.ClusterExtension) error {
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": ext.UID, "annotations": map[string]any{ocv1.MigratedFromHelmReleaseAnnotation: nil},
	}})
	if err != nil {
		return err
	}
	_, err = c.api.Resource(extensions).Patch(ctx, ext.Name, types.MergePatchType, change, metav1.PatchOptions{FieldManager: inspect.FieldManager})
	if err != nil {
		return fmt.Errorf("removing the annotation of ClusterExtension %q: %w", ext.Name, err)
	}
	return nil
}

// maxTries bounds the retries after a conflict.
const maxTries = 5

// patchEach patches the recorded objects that exist and that the extension owns.
func (c *Cluster) patchEach(ctx context.Context, owner object.Owner, recorded []*unstructured.Unstructured, patchOf func(live *unstructured.Unstructured) (object.Patch, error)) error {
	items, err := object.Known(c.mapper, owner, recorded)
	if err != nil {
		return err
	}
	for key, item := range items {
		if err := c.patch(ctx, owner, item, patchOf); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func (c *Cluster) patch(ctx context.Context, owner object.Owner, item object.Item, patchOf func(live *unstructured.Unstructured) (object.Patch, error)) error {
	resource := c.api.Resource(item.Mapping.Resource).Namespace(item.Key.Namespace)
	for range maxTries {
		live, err := resource.Get(ctx, item.Key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && !owner.OwnsAs(item.Object, live) {
			return nil
		}
		if err != nil {
			return err
		}
		patch, err := patchOf(live)
		if err != nil || patch.IsEmpty() {
			return err
		}
		_, err = resource.Patch(ctx, item.Key.Name, patch.Kind, patch.Data, metav1.PatchOptions{FieldManager: inspect.FieldManager})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return errors.New("the object was changed during each of several patches: try again")
}
