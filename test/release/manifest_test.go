package release_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/test/cluster"
)

var imageLine = regexp.MustCompile(`(?m)^ +(?:- )?image: "?([^"\s]+)"?$`)

// wanted is how manifests name the image of the release.
func wanted(t *testing.T) string {
	t.Helper()
	return os.Getenv("IMAGE_REPO") + ":" + version() + "@" + openReleased(t).descriptor.Digest.String()
}

func wantImage(t *testing.T, manifests, want string) {
	t.Helper()
	found := imageLine.FindAllStringSubmatch(manifests, -1)
	if len(found) != 1 || found[0][1] != want {
		t.Errorf("the manifests have the images %q, want %s alone", found, want)
	}
}

// A cluster takes the manifest as it is, a second time without a change, and the
// definitions of crds.yaml are those in it.
func TestInstall(t *testing.T) {
	t.Parallel()
	needRelease(t)
	manifest := file(t, "install.yaml")
	wantImage(t, string(read(t, manifest)), wanted(t))

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	started, err := cluster.Start(ctx, cluster.Options{Nodes: cluster.NoNodes, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			t.Error(err)
		}
	})
	apply := func(name string) string {
		return command(t, root, started.Binaries().Kubectl, "--kubeconfig", started.Kubeconfig(), "apply", "-f", name)
	}
	if printed := apply(manifest); !strings.Contains(printed, "deployment.apps/operator-controller-controller-manager created") {
		t.Errorf("the first time:\n%s", printed)
	}
	for _, name := range []string{manifest, file(t, "crds.yaml")} {
		printed := strings.TrimSpace(apply(name))
		for line := range strings.Lines(printed) {
			// kubectl replaces the selector of a PodDisruptionBudget each time, by what it is.
			if !strings.HasSuffix(strings.TrimSpace(line), " unchanged") && !strings.HasPrefix(line, "poddisruptionbudget.policy/") {
				t.Errorf("%s again: %s", filepath.Base(name), line)
			}
		}
	}
}
