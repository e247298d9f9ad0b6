package release

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// Import stores a record of a revision that another tool has installed, for an extension that does
// not exist yet. The extension of that name, namespace and package adopts the record, and the revision
// counts as installed. The next revision is the first that writes objects without owner labels, see
// [object.IsLabelled].
//
// Import can be called again with the same arguments after a failure. It fails if there are other records
// under the name. It writes with the credentials of config.
func Import(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner, desired installation.Desired, now func() time.Time) error {
	history, err := recordedHistory(ctx, config, through, systemNamespace, owner)
	if err != nil {
		return err
	}
	history.records.now = now
	if err := history.importRevision(ctx, desired); err != nil {
		return fmt.Errorf("%w in namespace %q", err, systemNamespace)
	}
	return nil
}

func (h *History) importRevision(ctx context.Context, desired installation.Desired) error {
	owner := h.records.owner
	made, err := importedRelease(owner, desired, h.records.now())
	if err != nil {
		return err
	}
	if len(h.orphaned) > 0 {
		found, err := h.read(ctx, &h.orphaned[0])
		if err != nil {
			return err
		}
		isSame, err := isSameImport(found, made)
		if err == nil && (len(h.orphaned) > 1 || !isSame) {
			err = fmt.Errorf("there are release records of an earlier ClusterExtension %q: delete the Secrets with the labels owner=%s,name=%s",
				owner.Name, recordOwner, RecordName(owner.Name))
		}
		return err // nil if an earlier call has stored the record
	}
	if len(h.entries) > 0 || len(h.usedRevisions) > 0 {
		return fmt.Errorf("ClusterExtension %q has release records already", owner.Name)
	}
	_, err = h.records.create(ctx, made)
	return err
}

// isSameImport compares everything in two records except the time.
func isSameImport(found, made *release.Release) (bool, error) {
	made.Info.FirstDeployed, made.Info.LastDeployed = found.Info.FirstDeployed, found.Info.LastDeployed
	before, err := json.Marshal(payload{Release: found, Labels: found.Labels})
	if err != nil {
		return false, fmt.Errorf("encoding a release record: %w", err)
	}
	after, err := json.Marshal(payload{Release: made, Labels: made.Labels})
	if err != nil {
		return false, fmt.Errorf("encoding a release record: %w", err)
	}
	return bytes.Equal(before, after), nil
}

// descriptionImported is the description of a record that was imported from Helm.
const descriptionImported = "imported from Helm"

func importedRelease(owner object.Owner, desired installation.Desired, now time.Time) (*release.Release, error) {
	manifest, err := manifestOf(desired.Objects)
	if err != nil {
		return nil, err
	}
	made := &release.Release{
		Name: object.ReleaseName(owner.Name), Namespace: owner.Namespace, Version: 1, Manifest: manifest,
		Info:   &release.Info{Status: release.StatusDeployed, Description: descriptionImported},
		Chart:  &chart.Chart{Metadata: &chart.Metadata{}},
		Labels: labelsOf(desired.Revision),
	}
	made.Labels[labelHelmCRDs] = strings.Join(slices.Sorted(slices.Values(desired.HelmCRDs)), " ")
	made.Info.FirstDeployed.Time, made.Info.LastDeployed.Time = now, now
	for _, one := range desired.Hooks {
		recorded, err := HelmHook(one)
		if err != nil {
			return nil, err
		}
		made.Hooks = append(made.Hooks, recorded)
	}
	return made, nil
}

// HelmCRDs returns [installation.Desired.HelmCRDs] of the installed revision. There are none unless it was
// imported.
func (h *History) HelmCRDs(ctx context.Context) ([]string, error) {
	installed, err := h.installedRelease(ctx)
	if err != nil || installed == nil {
		return nil, err
	}
	return strings.Fields(installed.Labels[labelHelmCRDs]), nil
}

// Label adds owner labels and owner references to the objects in the record of an imported revision,
// after they were added on the cluster. It does nothing if a newer revision is installed.
func Label(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner, now func() time.Time) error {
	history, err := recordedHistory(ctx, config, through, systemNamespace, owner)
	if err != nil {
		return err
	}
	history.records.now = now
	installed, err := history.installedRelease(ctx)
	if err != nil || installed == nil {
		return err
	}
	objects, err := objectsOf(installed.Manifest)
	if err != nil {
		return err
	}
	changed := *installed
	for i := range objects {
		objects[i] = owner.Own(objects[i])
	}
	if changed.Manifest, err = manifestOf(objects); err != nil || changed.Manifest == installed.Manifest {
		return err
	}
	return history.update(ctx, &changed)
}

// manifestOf is a manifest that [objectsOf] reads.
func manifestOf(objects []*unstructured.Unstructured) (string, error) {
	bounds := jsonBounds{values: maxManifestValues, depth: maxManifestDepth}
	var text bytes.Buffer
	for _, object := range objects {
		data, err := encoded(object, &bounds)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "---\n%s\n", data)
	}
	return text.String(), nil
}

// HelmHook is a hook as Helm records it.
func HelmHook(one hook.Hook) (*release.Hook, error) {
	manifest, err := json.Marshal(one.Object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding hook %q: %w", one.Object.GetName(), err)
	}
	made := &release.Hook{
		Name: one.Object.GetName(), Kind: one.Object.GetKind(), Path: "templates/" + one.Object.GetName() + ".json",
		Manifest: string(manifest), Weight: one.Weight,
	}
	for _, event := range one.Events {
		made.Events = append(made.Events, release.HookEvent(event))
	}
	for _, policy := range one.Policies {
		made.DeletePolicies = append(made.DeletePolicies, release.HookDeletePolicy(policy))
	}
	return made, nil
}
