package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/clusterextensions/operator-controller/test/cluster"
)

// Names of the programs that are built from this checkout.
const (
	controllerProgram = "operator-controller"
	peopleProgram     = "kubectl-extension"
	operatorProgram   = "program"
	pauseProgram      = "pause"
)

// Prepare builds all programs into the directory of a run, or makes sure that they
// are in the cache. Modules may have to be downloaded for that.
func Prepare(ctx context.Context, dir string, progress io.Writer) error {
	if _, err := cluster.BuildNode(ctx, progress); err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	return build(ctx, root, filepath.Join(dir, "programs"), "./cmd/...", "./test/operator/program", "./test/node/pause")
}

// build builds commands of a checkout as they are released.
func build(ctx context.Context, root, dir string, packages ...string) error {
	args := append([]string{"build", "-tags=containers_image_openpgp", "-trimpath", "-ldflags=-s -w", "-o", dir + "/"}, packages...)
	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own arguments
	command.Dir, command.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the programs: %w\n%s", err, output)
	}
	return nil
}

// moduleRoot is the folder with the module's go.mod, above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the module: no go.mod above the working directory")
		}
		dir = parent
	}
}
