package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/programs"
)

// Names of the programs that are built from this checkout.
const (
	controllerProgram = "operator-controller"
	operatorProgram   = "program"
	pauseProgram      = "pause"
)

// Prepare builds all programs into the directory of a run, or makes sure that they
// are in the cache. Modules may have to be downloaded for that.
func Prepare(ctx context.Context, dir string, progress io.Writer) error {
	if _, err := programs.BuildNode(ctx, progress); err != nil {
		return err
	}
	root, err := testkit.ModuleRoot()
	if err != nil {
		return err
	}
	// What the run makes again, without a network.
	for _, target := range []string{"image", "manifests"} {
		if _, err := makeTarget(ctx, root, nil, target); err != nil {
			return err
		}
	}
	return build(ctx, filepath.Join(root, "test"), filepath.Join(dir, "programs"), "./operator/program", "./node/pause")
}

// build builds commands with the flags of the environment: packages of the module in a folder, into dir.
func build(ctx context.Context, module, dir string, packages ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-tags=containers_image_openpgp", "-trimpath", "-ldflags=-s -w", "-o", dir + "/"}, packages...)
	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own arguments
	command.Dir, command.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the programs: %w\n%s", err, output)
	}
	return nil
}
