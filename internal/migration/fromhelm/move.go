package fromhelm

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/manifest"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// Move makes a release an extension, in the state [Movable] or [Begun]. After an interruption it can be called
// again with a new check. [Cluster.Rollback] reverts it.
func (c *Cluster) Move(ctx context.Context, checked *Checked, run Run) error {
	name := checked.Name
	if checked.Marker == nil {
		// With --all, a release of the same name in another namespace may have been moved since the check.
		live, err := c.extension(ctx, name.Name)
		if err != nil {
			return err
		}
		if live != nil && !isOf(live, name) {
			return fmt.Errorf("ClusterExtension %q was created from another release of this name: the names of extensions are unique in the cluster", name.Name)
		}
		run.Say(fmt.Sprintf("%s: adding a pending revision %d to Helm's records, so that Helm does not upgrade it", name, checked.Last.Version+1))
		if err := c.releases.Mark(ctx, *checked.Last, checked.Extension.Name); err != nil {
			return err
		}
	}
	if err := c.create(ctx, checked, run); err != nil {
		return err
	}
	return c.awaitReady(ctx, checked, run)
}

// create records what is installed, and creates the extension and its ServiceAccount. An extension that exists is not
// written, because a user may have changed its spec since an interrupted move created it.
func (c *Cluster) create(ctx context.Context, checked *Checked, run Run) error {
	documents, err := checked.Documents()
	if err != nil {
		return err
	}
	if checked.Live != nil {
		if rights := documents[1:]; checked.Live.Spec.ServiceAccount.Name == checked.Extension.Spec.ServiceAccount.Name {
			return c.inspect.ApplyFor(ctx, checked.Live.Name, rights)
		}
		return nil
	}
	run.Say(fmt.Sprintf("%s: recording revision %d as installed", checked.Name, checked.Last.Version))
	err = c.inspect.ImportRecord(ctx, checked.Extension, installation.Desired{
		Revision: checked.Plan.Revision, Objects: checked.Objects, Hooks: checked.Hooks, HelmCRDs: namesOf(checked.unrecordedCRDs()),
	})
	if err != nil {
		return err
	}
	run.Say(fmt.Sprintf("%s: creating ClusterExtension %q", checked.Name, checked.Extension.Name))
	return c.inspect.Apply(ctx, documents)
}

// unrecordedCRDs returns the CRDs that the chart renders and Helm does not record: those of crds/.
func (c *Checked) unrecordedCRDs() []*unstructured.Unstructured {
	recorded := map[object.Key]bool{}
	for _, one := range c.Objects {
		recorded[object.KeyOf(one)] = true
	}
	var found []*unstructured.Unstructured
	for _, one := range c.Plan.Objects {
		if key := object.KeyOf(one); key.GroupKind == object.DefinitionKind && !recorded[key] {
			found = append(found, one)
		}
	}
	return found
}

func namesOf(objects []*unstructured.Unstructured) []string {
	names := make([]string, 0, len(objects))
	for _, one := range objects {
		names = append(names, one.GetName())
	}
	return names
}

// Documents returns the objects that a move creates: the extension and, unless it is given, the ServiceAccount with
// the permissions that the objects of the release, its hooks and the CRDs of the chart require.
func (c *Checked) Documents() ([]permission.Document, error) {
	written, err := manifest.Written(c.Extension)
	if err != nil {
		return nil, err
	}
	documents := []permission.Document{{Object: written}}
	if !c.MakesAccount {
		return documents, nil
	}
	plan := c.Plan
	plan.Objects = append(c.unrecordedCRDs(), c.Objects...)
	rights, err := plan.Rights()
	return append(documents, rights...), err
}

// awaitReady waits until the extension is installed and ready.
func (c *Cluster) awaitReady(ctx context.Context, checked *Checked, run Run) error {
	run.Say(fmt.Sprintf("%s: waiting until ClusterExtension %q is ready", checked.Name, checked.Extension.Name))
	last := "the controller has not written its status yet: is it running?"
	err := wait.PollUntilContextTimeout(ctx, pollInterval, run.Timeout, true, func(ctx context.Context) (bool, error) {
		ext, err := c.extension(ctx, checked.Extension.Name)
		if err != nil || ext == nil {
			return false, err
		}
		ready := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReady)
		if ready != nil && isCurrent(ext, ready) {
			last = excerpt.Message(ready.Message)
		}
		return isReady(ext, ready), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("ClusterExtension %q is not ready after %s: %s; `kubectl extension migrate helm rollback %s -n %s` gives the release back to Helm",
			checked.Extension.Name, run.Timeout, last, checked.Name.Name, checked.Name.Namespace)
	}
	return err
}
