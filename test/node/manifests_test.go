//go:build linux

package node_test

import (
	"context"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/test/node"
)

// TestOtherManifests deploys what a release has beside config/default, and an image that
// was loaded onto the node. All of them have the same Deployment: the extension that is
// there stays as it is.
//
//nolint:paralleltest // it deploys the controller of all tests anew
func TestOtherManifests(t *testing.T) {
	needNode(t)
	const name = "untouched"
	offer(t, name, nil, "1.0.0")
	extend(t, name, "1.0.0")
	ready(t, name, "1.0.0")
	for kind, deployIt := range map[string]func(*testing.T) error{
		"install.yaml": func(t *testing.T) error {
			t.Helper()
			manifest, err := theSuite.Make(t.Context(), "manifests", "IMAGE="+theSuite.image) // as make release calls it
			if err != nil {
				return err
			}
			return theSuite.DeployManifest(t.Context(), manifest, replicas)
		},
		"chart": func(t *testing.T) error {
			t.Helper()
			return theSuite.DeployManifest(t.Context(), renderChart(t), replicas)
		},
		"make run": func(t *testing.T) error {
			t.Helper()
			return theSuite.Run(t.Context(), node.Default, replicas)
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Cleanup(func() { deploy(t) })
			quiet(t)
			mark := theSuite.mark(t)
			if err := deployIt(t); err != nil {
				t.Fatal(err)
			}
			quiet(t)
			if content := contentWrites(t, mark); len(content) > 0 {
				t.Errorf("there were %d writes to content:\n%s", len(content), strings.Join(content, "\n"))
			}
			through, err := theSuite.CatalogClient(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the catalog", func(ctx context.Context) error { return fetchCatalog(ctx, through, name) })
		})
	}
}
