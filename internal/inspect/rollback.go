package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/imageref"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

// Rollback is the way back to the revision before, as a change of the spec.
type Rollback struct {
	// Facts are what the controller would do after the change.
	Facts preview.Facts

	// Patch is a merge patch of the extension.
	Patch []byte

	// Managers are field managers that have written what the patch changes, sorted: they may
	// put it back.
	Managers []string

	name, version string
}

// Rollback finds out how an extension gets back to its revision before, and what that would
// do. The checks of definitions are made whatever the spec lets pass: what is stored was
// written by the newer version. It fails if there is no such revision, or no catalog has it.
func (c *Cluster) Rollback(ctx context.Context, request Request) (Rollback, error) {
	api, err := dynamic.NewForConfigAndClient(c.cfg.REST, c.through)
	if err != nil {
		return Rollback{}, fmt.Errorf("setting up a client: %w", err)
	}
	asked, err := c.extension(ctx, request)
	if err != nil {
		return Rollback{}, err
	}
	ext := asked.wanted
	if err := checkVersioned(ext); err != nil {
		return Rollback{}, err
	}
	catalog := ext.Spec.Source.Catalog
	target, err := c.revisionBefore(ctx, ext)
	if err != nil {
		return Rollback{}, fmt.Errorf("ClusterExtension %q: %w", ext.Name, err)
	}
	found := Rollback{name: ext.Name, version: ext.ResourceVersion}
	if found.Patch, err = rollbackPatch(target.Bundle.Version); err != nil {
		return found, err
	}
	live, err := api.Resource(object.OwnerResource).Get(ctx, ext.Name, metav1.GetOptions{})
	if err != nil {
		return found, fmt.Errorf("reading ClusterExtension %q: %w", ext.Name, err)
	}
	found.Managers = object.Patch{Kind: types.MergePatchType, Data: found.Patch}.Difference(live).Managers
	catalog.Version, catalog.UpgradeConstraintPolicy = target.Bundle.Version, ocv1.UpgradeConstraintPolicySelfCertified
	request.File, request.Version = ext, target.Bundle.Version
	plan, err := c.Plan(ctx, request)
	if err != nil {
		return found, err
	}
	if chosen := plan.Resolution; chosen != nil && chosen.Identity.Name != target.Bundle.Name {
		return found, fmt.Errorf("the revision before is %q, and for its version the catalogs have %q", target.Bundle.Name, chosen.Identity.Name)
	}
	if err := otherContent(target.Revision, plan.Digest); err != nil {
		return found, err
	}
	plan.Preflight.Definitions = crdupgrade.Policy{}
	if found.Facts, err = c.Foresee(ctx, plan); err != nil {
		return found, err
	}
	if verdict := found.Facts.Verdict; verdict.Unread && len(verdict.Blocking()) > 0 {
		found.Facts.Obstacles = append(found.Facts.Obstacles, "whether what is stored would survive is not known, as you may not list it")
	}
	found.Facts.Obstacles = append(found.Facts.Obstacles, unreadDefinitions(found.Facts.Trials)...)
	return found, nil
}

// checkVersioned fails for an extension that goes to no other version.
func checkVersioned(ext *ocv1.ClusterExtension) error {
	switch {
	case !ext.DeletionTimestamp.IsZero():
		return fmt.Errorf("ClusterExtension %q is being deleted", ext.Name)
	case ext.Spec.Source.Catalog == nil:
		return fmt.Errorf("ClusterExtension %q names a bundle by its image: to go back, name the image of the version before in spec.source.bundle.ref", ext.Name)
	}
	return nil
}

// revisionBefore is what the release records have as that, see [before].
func (c *Cluster) revisionBefore(ctx context.Context, ext *ocv1.ClusterExtension) (release.Recording, error) {
	recordings, err := release.Recordings(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, controller.OwnerOf(ext))
	if err != nil {
		return release.Recording{}, fmt.Errorf("reading the release records, which say what was installed before: %w", err)
	}
	if err := c.checkRecorded(ext, len(recordings)); err != nil {
		return release.Recording{}, err
	}
	return before(recordings)
}

// otherContent says that what the catalogs have under a version now is not what was installed
// as it. It is nil where either digest is not known: records of other controllers have none.
func otherContent(recorded installation.Revision, digest string) error {
	was := cmp.Or(recorded.Digest, imageref.Digest(recorded.Image).String())
	if was == "" || digest == "" || was == digest {
		return nil
	}
	return fmt.Errorf("the revision before is %q with the image %s, and for its version the catalogs have the image %s, which is other content; "+
		"to go there all the same, set spec.source.catalog.version to %q yourself", recorded.Bundle.Name, was, digest, recorded.Bundle.Version)
}

// unreadDefinitions has a line for each definition of which it is not known how it is: nor is
// it then what is stored.
func unreadDefinitions(trials []object.Trial) []string {
	var lines []string
	for i := range trials {
		if trials[i].Unread && trials[i].Key.GroupKind == object.DefinitionKind {
			lines = append(lines, fmt.Sprintf("whether what is stored would survive is not known, as you may not read %s", trials[i].Key))
		}
	}
	return lines
}

// before is the revision to go back to. If the last one was never whole, that is the
// installed one: what it has written so far is taken back. Otherwise it is the last one of
// another bundle. Other configurations of a bundle are no revisions in this sense: the
// configuration is in the spec.
func before(recordings []release.Recording) (release.Recording, error) {
	installed := lastWritten(recordings)
	if installed < 0 {
		return release.Recording{}, errors.New("nothing is installed")
	}
	if installed < len(recordings)-1 && recordings[len(recordings)-1].Bundle != recordings[installed].Bundle {
		return recordings[installed], nil
	}
	for i := installed - 1; i >= 0; i-- {
		if recordings[i].Written && recordings[i].Bundle != recordings[installed].Bundle {
			return recordings[i], nil
		}
	}
	return release.Recording{}, fmt.Errorf("there is no revision before %q in the release records", recordings[installed].Bundle.Name)
}

// lastWritten is -1 if there is none.
func lastWritten(recordings []release.Recording) int {
	last := -1
	for i := range recordings {
		if recordings[i].Written {
			last = i
		}
	}
	return last
}

// rollbackPatch pins a version. That no upgrade leads to it is what SelfCertified is for.
func rollbackPatch(version string) ([]byte, error) {
	return json.Marshal(map[string]any{"spec": map[string]any{"source": map[string]any{"catalog": map[string]any{
		"version": version, "upgradeConstraintPolicy": ocv1.UpgradeConstraintPolicySelfCertified,
	}}}})
}

// Write makes the change of the spec, as whoever asks. It is refused if the extension was
// changed since the rollback was found.
func (c *Cluster) Write(ctx context.Context, rollback Rollback) error {
	api, err := dynamic.NewForConfigAndClient(c.cfg.REST, c.through)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	patch, err := object.Patch{Kind: types.MergePatchType, Data: rollback.Patch}.OnlyFor(rollback.version)
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: FieldManager}
	if _, err := api.Resource(object.OwnerResource).Patch(ctx, rollback.name, patch.Kind, patch.Data, options); err != nil {
		return fmt.Errorf("writing the spec of ClusterExtension %q: %w", rollback.name, err)
	}
	return nil
}

// FieldManager is the name under which the API server notes what people write by commands.
const FieldManager = "kubectl-extension"
