package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/clusterextensions/operator-controller/test/cluster/internal/filelock"
)

// Folders of hack with the modules of GitOps tools.
const (
	fluxSource   = "flux"
	argoCDSource = "argocd"
)

const (
	sourceControllerModule    = "github.com/fluxcd/source-controller"
	kustomizeControllerModule = "github.com/fluxcd/kustomize-controller"
)

// fluxDefinitionsName is the name of the CRDs of Flux in the cache.
const fluxDefinitionsName = "flux-crds.yaml"

// GitOps are the paths of what reconciles a cluster with what is in a repository.
type GitOps struct {
	// SourceController and KustomizeController are controllers of Flux, and
	// FluxDefinitions is a file with the CRDs of both.
	SourceController, KustomizeController, FluxDefinitions string
	// ArgoCD is hack/argocd: the engine of Argo CD as a program.
	ArgoCD string
}

// BuildGitOps is [Build] for GitOps tools: what is not in the cache yet takes minutes.
func BuildGitOps(ctx context.Context, progress io.Writer) (*GitOps, error) {
	built := &GitOps{}
	for _, from := range []struct {
		name string
		into func(context.Context, *source, string) error
	}{
		{fluxSource, func(ctx context.Context, from *source, dir string) error {
			built.SourceController = filepath.Join(dir, "source-controller")
			built.KustomizeController = filepath.Join(dir, "kustomize-controller")
			built.FluxDefinitions = filepath.Join(dir, fluxDefinitionsName)
			return errors.Join(
				from.provide(ctx, sourceControllerModule, built.SourceController, progress),
				from.provide(ctx, kustomizeControllerModule, built.KustomizeController, progress),
				from.copyDefinitions(ctx, built.FluxDefinitions),
			)
		}},
		{argoCDSource, func(ctx context.Context, from *source, dir string) error {
			built.ArgoCD = filepath.Join(dir, argoCDSource)
			return from.provide(ctx, ".", built.ArgoCD, progress)
		}},
	} {
		if err := inCache(ctx, from.name, from.into); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// inCache has a module's directory of the cache filled while no other process fills it.
func inCache(ctx context.Context, name string, fill func(ctx context.Context, from *source, dir string) error) (err error) {
	from, err := locateSource(ctx, name)
	if err != nil {
		return err
	}
	dir, err := from.cacheDir()
	if err != nil {
		return err
	}
	lock, err := filelock.Wait(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return fill(ctx, from, dir)
}

// provide builds a program unless it is at its path already. The lock is held.
func (s *source) provide(ctx context.Context, pkg, path string, progress io.Writer) (err error) {
	if exists(path) {
		return nil
	}
	scratch, err := newScratch(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	name := filepath.Base(path)
	_, _ = fmt.Fprintf(progress, "building %s … ", name)
	began := time.Now()
	if err := s.build(ctx, program{name: name, pkg: pkg}, scratch, path); err != nil {
		_, _ = fmt.Fprintln(progress, "failed")
		return err
	}
	_, _ = fmt.Fprintf(progress, "%.0fs\n", time.Since(began).Seconds())
	return nil
}

// copyDefinitions joins the CRDs of Flux in one file, unless that is done. The lock is held.
func (s *source) copyDefinitions(ctx context.Context, path string) error {
	if exists(path) {
		return nil
	}
	var folders []string
	for _, module := range []string{sourceControllerModule, kustomizeControllerModule} {
		root, err := goOutput(ctx, s.dir, "list", "-m", "-f", "{{.Dir}}", module)
		if err != nil {
			return fmt.Errorf("locating module %s: %w", module, err)
		}
		folders = append(folders, filepath.Join(root, "config", "crd", "bases"))
	}
	return joinManifests(path, folders...)
}
