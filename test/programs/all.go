package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// targets add the steps of the builds that [BuildAll] knows by name.
var targets = map[string]func(*build, context.Context) error{
	"cluster": func(b *build, ctx context.Context) error { return ignore(b.addControlPlane(ctx)) },
	"node": func(b *build, ctx context.Context) error {
		return errors.Join(ignore(b.addControlPlane(ctx)), b.addAll(ctx, nodeGroup, dnsGroup))
	},
	"monitoring": func(b *build, ctx context.Context) error {
		return b.addAll(ctx, prometheusGroup, kubeStateMetricsGroup)
	},
	"gitops":  func(b *build, ctx context.Context) error { return b.addAll(ctx, fluxGroup, argoCDGroup) },
	"classic": func(b *build, ctx context.Context) error { return b.addAll(ctx, classicGroup) },
	"opm":     func(b *build, ctx context.Context) error { return b.addAll(ctx, opmGroup) },
	"cosign":  func(b *build, ctx context.Context) error { return b.addCosign(ctx) },
	"own":     func(b *build, ctx context.Context) error { return ignore(b.addOwn(ctx, false)) },
	"race":    func(b *build, ctx context.Context) error { return ignore(b.addOwn(ctx, true)) },
	"demo":    func(b *build, ctx context.Context) error { return b.addDemo(ctx) },
}

// Targets returns the names that [BuildAll] knows, sorted.
func Targets() []string {
	return slices.Sorted(maps.Keys(targets))
}

// BuildAll builds the programs of all targets as one list of steps. The error is a
// *BuildError for a program that cannot be built.
func BuildAll(ctx context.Context, progress io.Writer, names ...string) (err error) {
	b := &build{progress: progress}
	defer func() { err = errors.Join(err, b.unlock()) }()
	for _, name := range names {
		add, ok := targets[name]
		if !ok {
			return fmt.Errorf("unknown target %q: want one of %q", name, Targets())
		}
		if err := add(b, ctx); err != nil {
			return err
		}
	}
	return runSteps(ctx, progress, b.steps)
}

func (b *build) addAll(ctx context.Context, groups ...*group) error {
	for _, g := range groups {
		if _, err := b.add(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

func ignore[T any](_ T, err error) error { return err }
