package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Own are folders with programs of this checkout.
type Own struct {
	// Released is the folder with the controller and kubectl-extension, without the race detector.
	Released string
	// Watching has the controller with the race detector; empty unless asked for.
	Watching string
}

// BuildOwn builds the programs of this checkout into folders below bin, and calls use while no
// other process builds them again. The go command does nothing for a program that is up to
// date. The error is a *BuildError for a program that cannot be built.
func BuildOwn(ctx context.Context, progress io.Writer, race bool, use func(Own) error) (err error) {
	b := &build{progress: progress}
	defer func() { err = errors.Join(err, b.unlock()) }()
	own, err := b.addOwn(ctx, race)
	if err != nil {
		return err
	}
	if err := runSteps(ctx, progress, b.steps); err != nil {
		return err
	}
	return use(own)
}

// addOwn adds the steps that build the programs of this checkout.
func (b *build) addOwn(ctx context.Context, race bool) (Own, error) {
	root, err := checkout(ctx)
	if err != nil {
		return Own{}, err
	}
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o750); err != nil {
		return Own{}, fmt.Errorf("creating the folder of the programs: %w", err)
	}
	if err := b.lock(ctx, filepath.Join(bin, ".lock")); err != nil {
		return Own{}, err
	}
	own := Own{Released: filepath.Join(bin, "test")}
	b.addBuild("operator-controller and kubectl-extension", 150, root, own.Released, "./cmd/...", "CGO_ENABLED=0")
	if race {
		own.Watching = filepath.Join(bin, "race")
		b.addBuild("operator-controller with the race detector", 200, root, own.Watching, "./cmd/operator-controller", "CGO_ENABLED=1", "-race")
	}
	return own, nil
}

// addDemo adds the step that builds the demo.
func (b *build) addDemo(ctx context.Context) error {
	root, err := checkout(ctx)
	if err != nil {
		return err
	}
	b.addBuild("the demo", 20, filepath.Join(root, "test"), filepath.Join(root, "bin"), "./demo", "CGO_ENABLED=0")
	return nil
}

// addCosign adds the step that builds cosign, which signs releases.
func (b *build) addCosign(ctx context.Context) error {
	root, err := checkout(ctx)
	if err != nil {
		return err
	}
	b.addBuild("cosign", 500, root, filepath.Join(root, "bin", "tools"), "github.com/sigstore/cosign/v3/cmd/cosign", "CGO_ENABLED=0", "-modfile=hack/release/go.mod")
	return nil
}

// addBuild adds a step that builds packages of the module in dir into a folder.
func (b *build) addBuild(name string, cost int, dir, folder, packages, cgo string, flags ...string) {
	args := append([]string{"build", "-tags=containers_image_openpgp", "-ldflags=-s -w", "-o", folder + "/"}, flags...)
	b.steps = append(b.steps, step{name, cost, func(ctx context.Context) error {
		cmd := goCommand(ctx, dir, append(args, packages)...)
		cmd.Env = append(cmd.Env, cgo)
		return run(ctx, name, cmd)
	}})
}
