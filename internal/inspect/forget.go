package inspect

import (
	"context"
	"fmt"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/controller"
)

// ForgetRecords deletes the release records of an extension that has let go of its content, so that the next
// extension of the name does not take that content for its own.
func (c *Cluster) ForgetRecords(ctx context.Context, ext *ocv1.ClusterExtension) error {
	if err := release.Forget(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, controller.OwnerOf(ext)); err != nil {
		return fmt.Errorf("deleting the release records of ClusterExtension %q: %w", ext.Name, err)
	}
	return nil
}

// ImportRecord calls [release.Import] for an extension that does not exist yet.
func (c *Cluster) ImportRecord(ctx context.Context, ext *ocv1.ClusterExtension, desired installation.Desired) error {
	if err := release.Import(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, controller.OwnerOf(ext), desired, c.cfg.Now); err != nil {
		return fmt.Errorf("recording what is installed for ClusterExtension %q: %w", ext.Name, err)
	}
	return nil
}

// Records returns the content of the release records of an extension, which need not exist any more.
func (c *Cluster) Records(ctx context.Context, ext *ocv1.ClusterExtension) (release.RecordedContent, error) {
	found, err := release.Recorded(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, controller.OwnerOf(ext))
	if err != nil {
		return found, fmt.Errorf("reading the release records of ClusterExtension %q: %w", ext.Name, err)
	}
	return found, nil
}

// LabelRecords calls [release.Label] for an extension.
func (c *Cluster) LabelRecords(ctx context.Context, ext *ocv1.ClusterExtension) error {
	if err := release.Label(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, controller.OwnerOf(ext), c.cfg.Now); err != nil {
		return fmt.Errorf("labelling the release records of ClusterExtension %q: %w", ext.Name, err)
	}
	return nil
}
