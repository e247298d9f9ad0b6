package inspect

import (
	"context"
	"fmt"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
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
