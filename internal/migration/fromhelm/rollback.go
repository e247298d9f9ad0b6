package fromhelm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/migration/helmstore"
)

// Rollback returns a release to Helm in its installed version. If the extension was upgraded after the move,
// Helm gets a new revision. Rollback can be called again after an interruption.
func (c *Cluster) Rollback(ctx context.Context, name helmstore.Name, run Run) error {
	history, err := c.releases.History(ctx, name)
	if err != nil {
		return err
	}
	ext, err := c.extension(ctx, name.Name)
	if err != nil {
		return err
	}
	last := history[len(history)-1]
	isMarked := slices.ContainsFunc(history, helmstore.Revision.IsMarker)
	if ext != nil && !isOf(ext, name) {
		if !isMarked {
			return fmt.Errorf("ClusterExtension %q was not created from release %q, or the move was finished", name.Name, name)
		}
		return c.completeRecords(ctx, name, run) // the move ended before the extension was created
	}
	if ext == nil && !isMarked && last.Info.Description != givenBack {
		run.Say(fmt.Sprintf("%s: nothing to roll back", name))
		return nil
	}
	return c.rollback(ctx, name, last, ext, run)
}

// rollback returns a release to Helm. The extension exists, or is nil if an interrupted rollback has deleted it.
func (c *Cluster) rollback(ctx context.Context, name helmstore.Name, last helmstore.Revision, ext *ocv1.ClusterExtension, run Run) error {
	if ext != nil && last.IsMarker() {
		if err := c.recordForHelm(ctx, name, last, ext, run); err != nil {
			return err
		}
	}
	if ext != nil {
		if err := c.deleteExtension(ctx, ext, run); err != nil {
			return err
		}
	}
	if err := c.forget(ctx, name, run); err != nil {
		return err
	}
	if err := c.completeRecords(ctx, name, run); err != nil {
		return err
	}
	run.Say(fmt.Sprintf("%s is a release of Helm again; the ServiceAccount of the extension and its permissions are kept", name))
	return nil
}

// completeRecords deletes the marker, unless it was replaced, and sets the revisions before a replaced
// marker to superseded.
func (c *Cluster) completeRecords(ctx context.Context, name helmstore.Name, run Run) error {
	history, err := c.releases.History(ctx, name)
	if err != nil {
		return err
	}
	last := history[len(history)-1]
	for _, one := range history {
		switch {
		case one.IsMarker():
			run.Say(fmt.Sprintf("%s: deleting the pending revision %d from Helm's records", name, one.Version))
			if err := c.releases.Delete(ctx, one); err != nil {
				return err
			}
			if one.Version < last.Version {
				run.Say(fmt.Sprintf("%s: Helm created revision %d after the move: run `helm upgrade` with the version of the chart that you want", name, last.Version))
			}
		case one.Version < last.Version && last.Info.Description == givenBack && one.Info.Status == helmrelease.StatusDeployed:
			if err := c.releases.Supersede(ctx, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// givenBack is the description of a revision that Helm gets.
const givenBack = "given back by operator-controller"

// recordForHelm replaces the marker with a revision of the installed content, if that differs from the imported
// revision.
func (c *Cluster) recordForHelm(ctx context.Context, name helmstore.Name, marker helmstore.Revision, ext *ocv1.ClusterExtension, run Run) error {
	recorded, err := c.inspect.Records(ctx, ext)
	if err != nil {
		return err
	}
	if isUnchanged(recorded) {
		return nil
	}
	if message, isInstalled := isSpecInstalled(ext); !isInstalled {
		return fmt.Errorf("the spec of ClusterExtension %q is not what is installed: wait until it is, or set the spec back to the installed version and values, and run the command again: %s", ext.Name, message)
	}
	chart, err := c.chart(ctx, ext, run)
	if err != nil {
		return err
	}
	given := &helmrelease.Release{
		Name: name.Name, Namespace: name.Namespace, Chart: chart, Labels: marker.Labels,
		Info: &helmrelease.Info{
			FirstDeployed: marker.Info.FirstDeployed, LastDeployed: helmtime.Now(), Status: helmrelease.StatusDeployed, Description: givenBack,
		},
	}
	if given.Config, err = valuesOf(ext); err != nil {
		return err
	}
	if given.Manifest, err = helmstore.Manifest(asHelmHas(recorded.Objects, chart)); err != nil {
		return err
	}
	for _, one := range recorded.Hooks {
		hook, err := release.HelmHook(one)
		if err != nil {
			return err
		}
		given.Hooks = append(given.Hooks, hook)
	}
	run.Say(fmt.Sprintf("%s: writing %s as revision %d to Helm's records", name, ext.Status.Install.Bundle.Name, marker.Version))
	return c.releases.Replace(ctx, marker, given)
}

// isSpecInstalled reports whether the current spec of an extension is installed. If not, message is the reason in
// its status.
func isSpecInstalled(ext *ocv1.ClusterExtension) (message string, isInstalled bool) {
	progressing := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeProgressing)
	if progressing == nil || progressing.ObservedGeneration != ext.Generation {
		return "the controller has not looked at it yet", false
	}
	return excerpt.Message(progressing.Message), ext.Status.Install != nil && progressing.Reason == ocv1.ReasonSucceeded
}

// isUnchanged reports whether no revision was installed and no labels were added since the import.
func isUnchanged(recorded release.RecordedContent) bool {
	return recorded.Revisions <= 1 && !slices.ContainsFunc(recorded.Objects, func(one *unstructured.Unstructured) bool { return object.IsLabelled(one) })
}

// asHelmHas returns objects without the marks of the extension, and without the CRDs of crds/.
func asHelmHas(recorded []*unstructured.Unstructured, chart *chart.Chart) []*unstructured.Unstructured {
	inCRDs := map[string]bool{}
	for _, file := range chart.CRDObjects() {
		if objects, err := helmstore.Objects(string(file.File.Data)); err == nil {
			for _, one := range objects {
				inCRDs[object.KeyOf(one).String()] = true
			}
		}
	}
	var found []*unstructured.Unstructured
	for _, one := range recorded {
		if inCRDs[object.KeyOf(one).String()] {
			continue
		}
		one = one.DeepCopy()
		labels := one.GetLabels()
		delete(labels, object.LabelOwnerKind)
		delete(labels, object.LabelOwnerName)
		if one.SetLabels(labels); len(labels) == 0 {
			one.SetLabels(nil)
		}
		one.SetOwnerReferences(nil)
		found = append(found, one)
	}
	return found
}

// valuesOf returns the values in the spec of an extension.
func valuesOf(ext *ocv1.ClusterExtension) (map[string]any, error) {
	var inline struct {
		Values map[string]any `json:"values"`
	}
	if config := ext.Spec.Config; config != nil && config.Inline != nil {
		if err := json.Unmarshal(config.Inline.Raw, &inline); err != nil {
			return nil, fmt.Errorf("reading spec.config.inline of ClusterExtension %q: %w", ext.Name, err)
		}
	}
	return inline.Values, nil
}

// chart loads the installed chart from its image.
func (c *Cluster) chart(ctx context.Context, ext *ocv1.ClusterExtension, run Run) (*chart.Chart, error) {
	request := run.Bundle
	request.Name = ext.Name
	plan, err := c.inspect.Plan(ctx, request)
	if err == nil && plan.Err != nil {
		err = plan.Err
	}
	if err == nil && plan.Revision.Bundle.Name != ext.Status.Install.Bundle.Name {
		err = fmt.Errorf("%q is installed, and %q is the next: set the spec back to the installed version, and run the command again", ext.Status.Install.Bundle.Name, plan.Revision.Bundle.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the chart of ClusterExtension %q: %w", ext.Name, err)
	}
	var loaded *chart.Chart
	err = request.Bundles.ImageFiles(ctx, imageOf(plan), func(files fs.FS) error {
		content, err := bundle.Parse(files)
		if err != nil {
			return err
		}
		if content.Chart == nil {
			return errors.New("the image is not a Helm chart")
		}
		buffered := make([]*loader.BufferedFile, 0, len(content.Chart.Files))
		for name, data := range content.Chart.Files {
			buffered = append(buffered, &loader.BufferedFile{Name: name, Data: data})
		}
		slices.SortFunc(buffered, func(a, b *loader.BufferedFile) int { return strings.Compare(a.Name, b.Name) })
		loaded, err = loader.LoadFiles(buffered)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("loading the chart of ClusterExtension %q: %w", ext.Name, err)
	}
	return loaded, nil
}

// deleteExtension deletes the extension without its content.
func (c *Cluster) deleteExtension(ctx context.Context, ext *ocv1.ClusterExtension, run Run) error {
	run.Say(fmt.Sprintf("deleting ClusterExtension %q, and keeping its objects", ext.Name))
	if ext.DeletionTimestamp == nil {
		err := c.api.Resource(extensions).Delete(ctx, ext.Name, metav1.DeleteOptions{
			PropagationPolicy: new(metav1.DeletePropagationOrphan), Preconditions: &metav1.Preconditions{UID: &ext.UID},
		})
		if err != nil {
			return fmt.Errorf("deleting ClusterExtension %q: %w", ext.Name, err)
		}
	}
	var ready *metav1.Condition
	err := wait.PollUntilContextTimeout(ctx, pollInterval, run.Timeout, true, func(ctx context.Context) (bool, error) {
		live, err := c.extension(ctx, ext.Name)
		if live != nil {
			ready = meta.FindStatusCondition(live.Status.Conditions, ocv1.TypeReady)
		}
		return live == nil || live.UID != ext.UID, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("ClusterExtension %q is still there after %s%s; check that the controller is running, and run the command again", ext.Name, run.Timeout, messageOf(ready))
	}
	return err
}

// forget removes the marks of a deleted extension from its objects, and deletes its release records.
func (c *Cluster) forget(ctx context.Context, name helmstore.Name, run Run) error {
	gone := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name.Name}}
	gone.Spec.Namespace = name.Namespace
	recorded, err := c.inspect.Records(ctx, gone)
	if err != nil || recorded.Revisions == 0 {
		return err
	}
	owner := controller.OwnerOf(gone)
	if err := c.patchEach(ctx, owner, recorded.Objects, owner.ReleasePatch); err != nil {
		return err
	}
	run.Say(fmt.Sprintf("%s: deleting the release records of the controller", name))
	return c.inspect.ForgetRecords(ctx, gone)
}
