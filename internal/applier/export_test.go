package applier

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
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

// KnownVersion is the resource version that is known of an object which has not drifted;
// empty for none.
func (a *Applier) KnownVersion(extension string, key object.Key) string {
	return a.known(extension).NotDrifted()[key].Version
}

// LastLine is the last line that a hook has logged; empty if it cannot be had.
func (a *Applier) LastLine(ctx context.Context, owner object.Owner, live *unstructured.Unstructured) string {
	return a.lastLine(ctx, owner, live)
}
