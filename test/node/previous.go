package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// ErrNoRevision says that this checkout does not have a revision.
var ErrNoRevision = errors.New("this checkout does not have the revision")

// PreparePrevious builds the controller of an earlier revision into the directory of a
// run, from what git has of it.
func PreparePrevious(ctx context.Context, dir, revision string) error {
	root, err := testkit.ModuleRoot()
	if err != nil {
		return err
	}
	archive := exec.CommandContext(ctx, "git", "-C", root, "archive", "--output="+filepath.Join(dir, "previous.tar"), revision+"^{commit}") //nolint:gosec // our own arguments
	if output, err := archive.CombinedOutput(); err != nil {
		return fmt.Errorf("%w %s: %s", ErrNoRevision, revision, output)
	}
	source := filepath.Join(dir, "previous-source")
	if err := os.MkdirAll(source, 0o700); err != nil {
		return fmt.Errorf("unpacking revision %s: %w", revision, err)
	}
	unpack := exec.CommandContext(ctx, "tar", "-C", source, "-xf", filepath.Join(dir, "previous.tar")) //nolint:gosec // our own arguments
	if output, err := unpack.CombinedOutput(); err != nil {
		return fmt.Errorf("unpacking revision %s: %w: %s", revision, err, output)
	}
	return build(ctx, source, filepath.Join(dir, "programs-previous"), "./cmd/"+controllerProgram)
}

// PreviousProgram is the path of the controller that PreparePrevious has built.
func (n *Node) PreviousProgram() string {
	return n.path(filepath.Join("programs-previous", controllerProgram))
}
