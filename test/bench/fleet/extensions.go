package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing/fstest"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

const (
	installer = "installer"

	// firstVersion is installed, nextVersion is what it is upgraded to. The
	// versions differ in the Deployment and the ConfigMaps.
	firstVersion = "1.0.0"
	nextVersion  = "1.1.0"

	// patience is for what takes seconds, or a minute or two for a thousand.
	patience = 10 * time.Minute

	// inParallel is how much the bench itself does at a time where that is not
	// part of a result.
	inParallel = 16
)

// names of extensions, each of which is also the name of its package and of its
// namespace.
func names(prefix string, count int) []string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%03d", prefix, i)
	}
	return all
}

// publish pushes both versions of packages, and a catalog that offers them.
func (b *bench) publish(ctx context.Context, catalog string, packages []string, as shape) error {
	err := each(packages, inParallel, func(name string) error {
		for _, version := range []string{firstVersion, nextVersion} {
			bundle, err := as.bundle(generated(name, version))
			if err != nil {
				return err
			}
			if err := b.PushBundle(ctx, name+":v"+version, bundle); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	files := fstest.MapFS{}
	for _, name := range packages {
		maps.Copy(files, testkit.Catalog(registryHost, generated(name, firstVersion), generated(name, nextVersion)))
	}
	if err := b.PushCatalog(ctx, catalog+":v1", files); err != nil {
		return err
	}
	return b.CreateCatalog(ctx, catalog, registryHost+"/"+catalog+":v1")
}

// prepare makes what extensions need that are not there yet: a namespace with a
// ServiceAccount that may do everything.
func (b *bench) prepare(ctx context.Context, namespaces []string) error {
	return each(namespaces, inParallel, func(name string) error {
		return errors.Join(
			b.Admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}),
			b.Admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: installer}}),
			b.Admin.Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "bench-" + name},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: installer}},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			}),
		)
	})
}

func each[T any](all []T, parallel int, do func(T) error) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, one := range all {
		group.Go(func() error { return do(one) })
	}
	return group.Wait()
}

// create makes extensions, all at once.
func (b *bench) create(ctx context.Context, extensions ...*ocv1.ClusterExtension) error {
	return each(extensions, len(extensions), func(extension *ocv1.ClusterExtension) error {
		return b.Admin.Create(ctx, extension)
	})
}

// generatedExtensions are those of packages, at the version that is installed.
func generatedExtensions(packages []string) []*ocv1.ClusterExtension {
	var extensions []*ocv1.ClusterExtension
	for _, name := range packages {
		extensions = append(extensions, environment.Extension(name, name, installer, func(extension *ocv1.ClusterExtension) {
			extension.Spec.Source.Catalog.Version = firstVersion
		}))
	}
	return extensions
}

// change sets the version of extensions, all at once.
func (b *bench) change(ctx context.Context, extensions []string, version string) error {
	patch := fmt.Appendf(nil, `{"spec":{"source":{"catalog":{"version":%q}}}}`, version)
	return each(extensions, len(extensions), func(name string) error {
		extension := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return b.Admin.Patch(ctx, extension, client.RawPatch(types.MergePatchType, patch))
	})
}

// remove deletes all extensions and waits until they are gone. Their content goes
// some time later.
func (b *bench) remove(ctx context.Context) error {
	if err := b.Admin.DeleteAllOf(ctx, &ocv1.ClusterExtension{}); err != nil {
		return err
	}
	return poll(ctx, "extensions to be gone", func() (bool, error) {
		var left ocv1.ClusterExtensionList
		err := b.Admin.List(ctx, &left)
		return len(left.Items) == 0, err
	})
}

// arrival is how long it takes from the start of act until every named extension
// is at its version.
func (b *bench) arrival(ctx context.Context, want map[string]string, act func() error) (time.Duration, error) {
	group, awaiting := errgroup.WithContext(ctx)
	began := time.Now()
	group.Go(act)
	var took time.Duration
	group.Go(func() error {
		err := b.await(awaiting, slices.Collect(maps.Keys(want)), func(extension *ocv1.ClusterExtension) bool {
			return arrived(extension, want[extension.Name])
		})
		took = time.Since(began)
		return err
	})
	return took, group.Wait()
}

// await returns when each of the extensions was seen to be as wanted.
func (b *bench) await(ctx context.Context, extensions []string, asWanted func(*ocv1.ClusterExtension) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	missing := map[string]bool{}
	for _, name := range extensions {
		missing[name] = true
	}
	for len(missing) > 0 {
		// A watch begins with what there is, so none is missed when one ends.
		if err := b.watchExtensions(ctx, missing, asWanted); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("not as wanted: %v: %w", slices.Sorted(maps.Keys(missing)), ctx.Err())
		}
	}
	return nil
}

// watchExtensions takes out of missing what is as wanted, until nothing is left or
// the watch ends.
func (b *bench) watchExtensions(ctx context.Context, missing map[string]bool, asWanted func(*ocv1.ClusterExtension) bool) error {
	watcher, err := b.client.Watch(ctx, &ocv1.ClusterExtensionList{})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		extension, ok := event.Object.(*ocv1.ClusterExtension)
		if !ok { // the API server ends the watch
			return nil
		}
		if missing[extension.Name] && asWanted(extension) {
			delete(missing, extension.Name)
		}
		if len(missing) == 0 {
			return nil
		}
	}
	return nil
}

// arrived says that a version is installed, that nothing is left to do, and that
// this is about the spec as it is.
func arrived(extension *ocv1.ClusterExtension, version string) bool {
	progressing := meta.FindStatusCondition(extension.Status.Conditions, ocv1.TypeProgressing)
	return extension.Status.Install != nil && extension.Status.Install.Bundle.Version == version &&
		meta.IsStatusConditionTrue(extension.Status.Conditions, ocv1.TypeInstalled) &&
		progressing != nil && progressing.Reason == ocv1.ReasonSucceeded &&
		progressing.ObservedGeneration == extension.Generation
}

func at(extensions []string, version string) map[string]string {
	want := map[string]string{}
	for _, name := range extensions {
		want[name] = version
	}
	return want
}

// poll waits until done.
func poll(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		is, err := done()
		if err == nil && is {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for %s: %w", what, ctx.Err()), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
