package corpus_test

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

// revision is a bundle of the corpus, configured so that it can be rendered.
type revision struct {
	pkg, version string

	// order is the version, to be compared.
	order bundle.Version

	// watch is the namespace that the operator is told to watch; none if empty.
	watch string

	// files are those of the bundle.
	files fs.FS

	// objects are those of the bundle, without those that others would lack:
	// definitions.
	objects []*unstructured.Unstructured

	// err says why there are no objects.
	err error
}

// String is the key of the tables.
func (r revision) String() string { return r.pkg + " " + r.version }

// family is a package with its versions, lowest first.
type family []revision

func (f family) name() string { return f[0].pkg }

// installable are the versions of which the tables do not say that they cannot be
// installed.
func (f family) installable() family {
	return slices.DeleteFunc(slices.Clone(f), func(r revision) bool { return unrenderable[r.String()] != "" || uninstallable[r.String()] != "" })
}

// everything is what readCorpus gives.
var everything struct {
	once     sync.Once
	families []family
	err      error
}

// readCorpus renders all bundles. Tests share what it gives, because it takes long,
// and leave it as it is.
func readCorpus(t *testing.T) []family {
	t.Helper()
	files := corpus(t)
	everything.once.Do(func() { everything.families, everything.err = readFamilies(files) })
	if everything.err != nil {
		t.Fatal(everything.err)
	}
	return everything.families
}

func readFamilies(files fs.FS) ([]family, error) {
	packages, err := fs.ReadDir(files, "bundles")
	if err != nil {
		return nil, err
	}
	families := make([]family, len(packages))
	var group errgroup.Group
	for i, pkg := range packages {
		group.Go(func() (err error) {
			families[i], err = readFamily(files, pkg.Name())
			return err
		})
	}
	return families, group.Wait()
}

func readFamily(files fs.FS, pkg string) (family, error) {
	versions, err := fs.ReadDir(files, path.Join("bundles", pkg))
	if err != nil {
		return nil, err
	}
	members := make(family, len(versions))
	for i, version := range versions {
		root, err := fs.Sub(files, path.Join("bundles", pkg, version.Name()))
		if err != nil {
			return nil, err
		}
		members[i] = revision{pkg: pkg, version: version.Name(), files: root}
		if members[i].order, err = bundle.ParseVersion(version.Name()); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(members, func(a, b revision) int { return a.order.Compare(b.order) })
	for i := range members {
		if i > 0 {
			members[i].watch = members[i-1].watch
		}
		members[i] = members[i].rendered()
	}
	return members, nil
}

// rendered tries the configuration of the version before, none, and the two that
// operators may need: to be told their own namespace, or any other.
func (r revision) rendered() revision {
	content, err := bundle.Parse(r.files)
	if err != nil {
		r.err = err
		return r
	}
	var errs []error
	for _, watch := range []string{r.watch, "", r.pkg, metav1.NamespaceDefault} {
		objects, err := rendering.Objects(bundle.Render(content, bundle.Options{
			InstallNamespace: r.pkg,
			Config:           bundle.Config{WatchNamespaces: strings.Fields(watch)},
			Certificates:     bundle.CertManager,
		}))
		if err == nil {
			r.watch, r.objects = watch, objects
			return r
		}
		errs = append(errs, err)
	}
	r.err = errors.Join(errs...)
	return r
}

// TestUnrenderable says of each bundle that cannot be rendered why, and that all
// others can.
func TestUnrenderable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, family := range readCorpus(t) {
		for _, revision := range family {
			seen[revision.String()] = true
			reason := unrenderable[revision.String()]
			switch {
			case revision.err == nil && reason != "":
				t.Errorf("%s can be rendered, although it is said: %s", revision, reason)
			case revision.err != nil && reason == "":
				t.Errorf("%s cannot be rendered: %v", revision, revision.err)
			case revision.err != nil && !strings.Contains(revision.err.Error(), reason):
				t.Errorf("%s cannot be rendered because of %q, want %q", revision, revision.err, reason)
			}
		}
	}
	for _, table := range []map[string]string{unrenderable, uninstallable, refusedUpgrades} {
		for key := range table {
			if !seen[key] {
				t.Errorf("there is no bundle %s", key)
			}
		}
	}
}
