package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// restoreSnapshot makes the data directory of etcd from the snapshot, if the
// options name one.
func (c *Cluster) restoreSnapshot(ctx context.Context) error {
	if c.options.Snapshot == "" {
		return nil
	}
	flags := etcdFlags(c.dir).merged(c.options.Etcd)
	arguments := Flags{
		"data-dir":                    flags["data-dir"],
		"initial-advertise-peer-urls": flags["initial-advertise-peer-urls"],
		"initial-cluster":             flags["initial-cluster"],
	}.arguments()
	restore := exec.CommandContext(ctx, c.binaries.EtcdUtility, append([]string{"snapshot", "restore", c.options.Snapshot}, arguments...)...) //nolint:gosec // our own program
	if output, err := restore.CombinedOutput(); err != nil {
		return fmt.Errorf("restoring snapshot %s: %w: %s", c.options.Snapshot, err, strings.TrimSpace(string(output)))
	}
	return nil
}
