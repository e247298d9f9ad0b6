// Package takeover_test has the controller take over a cluster that the
// reference implementation left behind, as a snapshot of etcd.
package takeover_test

import (
	"testing"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// snapshot is that of the reference's cluster.
func snapshot(t *testing.T) string {
	t.Helper()
	return testkit.Snapshot(t, "TAKEOVER_DIR", "takeover", "reference-v1.10.db.zst")
}
