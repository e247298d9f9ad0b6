package corpus_test

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// revision is a bundle of the corpus, configured so that it can be rendered.
type revision struct {
	pkg, version string

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

// readCorpus renders all bundles.
func readCorpus(t *testing.T, files fs.FS) []family {
	t.Helper()
	packages, err := fs.ReadDir(files, "bundles")
	if err != nil {
		t.Fatal(err)
	}
	families := make([]family, 0, len(packages))
	for _, pkg := range packages {
		versions, err := fs.ReadDir(files, path.Join("bundles", pkg.Name()))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(versions, func(a, b fs.DirEntry) int { return compareVersions(t, a.Name(), b.Name()) })
		var members family
		for _, version := range versions {
			root, err := fs.Sub(files, path.Join("bundles", pkg.Name(), version.Name()))
			if err != nil {
				t.Fatal(err)
			}
			member := revision{pkg: pkg.Name(), version: version.Name(), files: root}
			if len(members) > 0 {
				member.watch = members[len(members)-1].watch
			}
			members = append(members, member.rendered())
		}
		families = append(families, members)
	}
	return families
}

func compareVersions(t *testing.T, a, b string) int {
	t.Helper()
	left, leftErr := bundle.ParseVersion(a)
	right, rightErr := bundle.ParseVersion(b)
	if err := errors.Join(leftErr, rightErr); err != nil {
		t.Fatal(err)
	}
	return left.Compare(right)
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
		objects, err := bundle.Render(content, bundle.Options{
			InstallNamespace: r.pkg,
			Config:           bundle.Config{WatchNamespace: watch},
			Certificates:     bundle.CertManager,
		})
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
	for _, family := range readCorpus(t, corpus(t)) {
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
