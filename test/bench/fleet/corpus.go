package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/test/bench/measure"
	"github.com/clusterextensions/operator-controller/test/environment"
)

const (
	corpusCatalog      = "public-catalog"
	corpusIdleCPULimit = 0.5

	// settledAfter is how long nothing more must have arrived for what has not
	// to count as refused.
	settledAfter = 20 * time.Second
)

// corpus measures a controller with real packages that nobody touches: all that
// install, each at its last version that can be rendered.
func (b *bench) corpus(ctx context.Context) (over, err error) {
	dir := cmp.Or(os.Getenv("CORPUS_DIR"), filepath.Join("..", "shared", "corpus"))
	files := os.DirFS(dir)
	if _, err := fs.Stat(files, "catalog"); errors.Is(err, fs.ErrNotExist) {
		say("corpus not present, so that it is not measured: set CORPUS_DIR")
		return nil, nil
	}
	say("installing the corpus")
	want, err := b.installCorpus(ctx, files)
	if err != nil {
		return nil, err
	}
	if err := b.keepInstalled(ctx, want); err != nil {
		return nil, err
	}
	installed, err := b.usage()
	if err != nil {
		return nil, err
	}
	cpu, err := b.idleCPU(ctx, "corpus-idle")
	if err != nil {
		return nil, err
	}
	const name = "60 idle seconds, packages of the corpus"
	return errors.Join(
		b.report.Tell(name, "packages", float64(len(want))),
		b.report.Tell(name, "cpu-seconds-before", installed.CPUSeconds),
		b.report.Check(name, "cpu-seconds", cpu, corpusIdleCPULimit),
		b.report.Tell(name, "peak-MiB", measure.Mebibytes(installed.PeakBytes)),
	), nil
}

// installCorpus has a new controller install every package at once. It returns
// the versions.
func (b *bench) installCorpus(ctx context.Context, files fs.FS) (map[string]string, error) {
	extensions, want, err := b.pushCorpus(ctx, files)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, extension := range extensions {
		names = append(names, extension.Name)
	}
	if err := errors.Join(b.remove(ctx), b.applyForeignKinds(ctx, files), b.prepare(ctx, names)); err != nil {
		return nil, err
	}
	if _, err := b.startController(ctx); err != nil {
		return nil, err
	}
	return want, b.create(ctx, extensions...)
}

// pushCorpus pushes the catalog, and the bundles that are to be installed.
func (b *bench) pushCorpus(ctx context.Context, files fs.FS) ([]*ocv1.ClusterExtension, map[string]string, error) {
	catalog, err := fs.Sub(files, "catalog")
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(
		b.PushCatalog(ctx, corpusCatalog+":v1", catalog),
		b.CreateCatalog(ctx, corpusCatalog, registryHost+"/"+corpusCatalog+":v1"),
	)
	if err != nil {
		return nil, nil, err
	}
	packages, err := fs.ReadDir(files, "bundles")
	if err != nil {
		return nil, nil, err
	}
	var extensions []*ocv1.ClusterExtension
	want := map[string]string{}
	for _, pkg := range packages {
		extension, root, err := corpusExtension(files, pkg.Name())
		if err != nil {
			return nil, nil, err
		}
		if extension == nil {
			say("%s: no version of it can be rendered", pkg.Name())
			continue
		}
		version := extension.Spec.Source.Catalog.Version
		if err := b.PushBundle(ctx, pkg.Name()+":v"+version, root); err != nil {
			return nil, nil, err
		}
		extensions = append(extensions, extension)
		want[extension.Name] = version
	}
	return extensions, want, nil
}

// corpusExtension is that of the last version that can be rendered, with the files
// of its bundle; nil if there is none. An operator that has to be told which
// namespace to watch is told its own.
func corpusExtension(files fs.FS, pkg string) (*ocv1.ClusterExtension, fs.FS, error) {
	versions, err := fs.ReadDir(files, path.Join("bundles", pkg))
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(versions, func(a, b fs.DirEntry) int { return compareVersions(b.Name(), a.Name()) })
	for _, version := range versions {
		root, err := fs.Sub(files, path.Join("bundles", pkg, version.Name()))
		if err != nil {
			return nil, nil, err
		}
		for _, watch := range []string{"", pkg} {
			if !canRender(root, pkg, watch) {
				continue
			}
			return environment.Extension(pkg, pkg, installer, func(extension *ocv1.ClusterExtension) {
				extension.Spec.Source.Catalog.Version = version.Name()
				if watch != "" {
					extension.Spec.Config = watching(watch)
				}
			}), root, nil
		}
	}
	return nil, nil, nil
}

func watching(namespace string) *ocv1.ClusterExtensionConfig {
	return &ocv1.ClusterExtensionConfig{
		ConfigType: ocv1.ClusterExtensionConfigTypeInline,
		Inline:     &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"watchNamespace":%q}`, namespace)},
	}
}

func compareVersions(a, b string) int {
	left, leftErr := bundle.ParseVersion(a)
	right, rightErr := bundle.ParseVersion(b)
	if leftErr != nil || rightErr != nil {
		return strings.Compare(a, b)
	}
	return left.Compare(right)
}

func canRender(root fs.FS, namespace, watch string) bool {
	content, err := bundle.Parse(root)
	if err != nil {
		return false
	}
	_, err = bundle.Render(content, bundle.Options{
		InstallNamespace: namespace,
		Config:           bundle.Config{WatchNamespaces: strings.Fields(watch)},
		Certificates:     bundle.CertManager,
	})
	return err == nil
}

// applyForeignKinds makes the kinds that real operators take for granted: those of
// cert-manager, and stand-ins for others.
func (b *bench) applyForeignKinds(ctx context.Context, files fs.FS) error {
	manifests := []string{"stub-crds.yaml"}
	for _, kind := range []string{"certificates", "issuers"} {
		found, err := fs.Glob(files, "bundles/cert-manager/1.7.1/manifests/*"+kind+".yaml")
		if err != nil {
			return err
		}
		manifests = append(manifests, found...)
	}
	for _, name := range manifests {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if _, err := b.KubectlOutput(ctx, string(data), "apply", "--server-side", "-f", "-"); err != nil {
			return err
		}
	}
	return nil
}

// keepInstalled waits until nothing more arrives, and removes what has not, with
// its reason: it would be tried again. want then has only what is installed.
func (b *bench) keepInstalled(ctx context.Context, want map[string]string) error {
	missing, err := b.settled(ctx, want)
	if err != nil {
		return err
	}
	for i := range missing {
		name := missing[i].Name
		reason := "unknown"
		if progressing := meta.FindStatusCondition(missing[i].Status.Conditions, ocv1.TypeProgressing); progressing != nil {
			reason = progressing.Message
		}
		say("%s %s is not installed: %.300s", name, want[name], reason)
		delete(want, name)
		if err := b.Admin.Delete(ctx, &missing[i]); err != nil {
			return err
		}
	}
	return b.quiet(ctx)
}

// settled gives what has not arrived when nothing more does.
func (b *bench) settled(ctx context.Context, want map[string]string) ([]ocv1.ClusterExtension, error) {
	var missing []ocv1.ClusterExtension
	since := time.Now()
	before := len(want)
	err := poll(ctx, "the corpus to be installed", func() (bool, error) {
		var all ocv1.ClusterExtensionList
		if err := b.Admin.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return false, err
		}
		missing = slices.DeleteFunc(all.Items, func(extension ocv1.ClusterExtension) bool {
			return arrived(&extension, want[extension.Name])
		})
		if len(missing) < before {
			before, since = len(missing), time.Now()
		}
		return len(missing) == 0 || time.Since(since) > settledAfter, nil
	})
	return missing, err
}
