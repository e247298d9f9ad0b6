package classic

import (
	"testing"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// SnapshotCatalog is the CatalogSource of a cluster that [Snapshot] gives, for [OLM.Serve].
const SnapshotCatalog = "community"

// SnapshotPackages are those of the corpus that classic OLM had installed there.
var SnapshotPackages = []string{
	"ecr-secret-operator", "grafana-operator", "kepler-operator", "mongodb-atlas-kubernetes",
	"rabbitmq-cluster-operator", "rabbitmq-messaging-topology-operator", "webhook-operator",
}

// Snapshot is that of a cluster on which classic OLM had installed real operators. Tests are
// skipped where it is not there, see [testkit.Snapshot].
func Snapshot(tb testing.TB) string {
	tb.Helper()
	return testkit.Snapshot(tb, "CLASSIC_DIR", "classic", "classic-v0.46.db.zst")
}
