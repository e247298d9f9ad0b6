package applier

import (
	"testing"

	"github.com/clusterextensions/operator-controller/internal/applier/release"
)

// UseSmallChunks has records take several chunks that would fit into one. It is for
// an applier that has not been used yet.
func (a *Applier) UseSmallChunks(t *testing.T) {
	t.Helper()
	config, err := recordsOf(a.config, a.clients)
	if err != nil {
		t.Fatal(err)
	}
	config.ChunkBytes = 4 << 10
	a.histories = release.NewHistories(config)
}
