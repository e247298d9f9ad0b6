package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// classicSource is the folder of hack with classic OLM.
const classicSource = "classic"

const classicModule = "github.com/operator-framework/operator-lifecycle-manager"

// Classic is classic OLM, the one before ClusterExtensions.
type Classic struct {
	// Program is hack/classic: its operators, and a server for catalogs.
	Program string
	// Definitions is a file with its CRDs.
	Definitions string
}

// BuildClassic is [Build] for classic OLM: what is not in the cache yet takes minutes.
func BuildClassic(ctx context.Context, progress io.Writer) (*Classic, error) {
	built := &Classic{}
	err := inCache(ctx, classicSource, func(ctx context.Context, from *source, dir string) error {
		built.Program = filepath.Join(dir, classicSource)
		built.Definitions = filepath.Join(dir, "classic-crds.yaml")
		return errors.Join(
			from.provide(ctx, ".", built.Program, progress),
			from.copyClassicDefinitions(ctx, built.Definitions),
		)
	})
	return built, err
}

// copyClassicDefinitions joins the CRDs of classic OLM in one file, unless that is done. The
// lock is held.
func (s *source) copyClassicDefinitions(ctx context.Context, path string) error {
	if exists(path) {
		return nil
	}
	root, err := goOutput(ctx, s.dir, "list", "-m", "-f", "{{.Dir}}", classicModule)
	if err != nil {
		return fmt.Errorf("locating module %s: %w", classicModule, err)
	}
	return joinManifests(path, filepath.Join(root, "deploy", "chart", "crds"))
}
