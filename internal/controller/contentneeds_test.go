package controller

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func TestNextOfUnmetRequirements(t *testing.T) {
	t.Parallel()
	kubernetes := requirement.Unmet{Kubernetes: "1.99.0"}
	pkg := requirement.Unmet{Packages: []requirement.PackageRange{{Package: "q"}}}
	api := requirement.Unmet{APIs: []requirement.API{{Version: "v1", Kind: "K"}}}
	for name, test := range map[string]struct {
		unmet []requirement.Unmet
		want  string
	}{
		"a package":               {[]requirement.Unmet{pkg}, "install what is missing, or name another"},
		"an API":                  {[]requirement.Unmet{api}, "install what is missing, or name another"},
		"a version":               {[]requirement.Unmet{kubernetes}, "upgrade the cluster, or name another"},
		"both":                    {[]requirement.Unmet{kubernetes, pkg}, "install what is missing and upgrade the cluster, or name another"},
		"what nothing brings":     {[]requirement.Unmet{{Text: "requires no package q"}}, "name another"},
		"that, and what is there": {[]requirement.Unmet{api, {Text: "cannot be read"}}, "name another"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (&UnmetError{Unmet: test.unmet}).next("name another"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// needing is a world whose extension names a bundle with dependencies.
func needing(t *testing.T, dependencies string) *world {
	t.Helper()
	w := sampleWorld(t)
	files := testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()
	files["metadata/dependencies.yaml"] = &fstest.MapFile{Data: []byte("dependencies: [" + dependencies + "]")}
	w.files = files
	w.naming(t, "registry.test/p:v1", digestOne)
	return w
}

const (
	needsThing = `{type: olm.gvk, value: {group: g.test, version: v1, kind: Thing}}`
	needsOther = `{type: olm.package, value: {packageName: q, version: ">=1.0.0"}}`
)

var thingAPI = requirement.API{Group: "g.test", Version: "v1", Kind: "Thing"}

// TestWhoBringsWhatFilesRequire says it as for catalogs.
func TestWhoBringsWhatFilesRequire(t *testing.T) {
	t.Parallel()
	w := needing(t, needsOther)
	w.catalog["q"] = stating("q", nil, "1.0.0")
	_, _ = w.reconcile(t)
	want := `cannot be installed: the bundle requires package "q" in ">=1.0.0", which is not installed; install what is missing, or name another image`
	for _, part := range []string{want, `what is missing comes with package "q" of catalog "c" in version "1.0.0"`} {
		if got := w.ready(t).Message; !strings.Contains(got, part) {
			t.Errorf("Ready says %q, want %q", got, part)
		}
	}
}

// TestWhoBringsItIsSaidWithoutCatalogsThatNobodyServes: one that cannot be pulled is never read, and
// what is said later would be a new answer.
func TestWhoBringsItIsSaidWithoutCatalogsThatNobodyServes(t *testing.T) {
	t.Parallel()
	for _, isServed := range []bool{true, false} {
		w := needing(t, needsOther)
		if isServed {
			w.serve(t)
		}
		w.catalogErr = notYetError{}
		_, _ = w.reconcile(t)
		if got := w.ready(t).Message; strings.Contains(got, `no catalog has package "q"`) == isServed {
			t.Errorf("with a catalog that is served, which is %t, Ready says %q", isServed, got)
		}
	}
}

// TestNeedsOfContentEnd when what is required is there, and when the extension goes elsewhere.
func TestNeedsOfContentEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *world){
		"it is there": func(_ *testing.T, w *world) { w.serves = map[requirement.API]bool{thingAPI: true} },
		"elsewhere": func(t *testing.T, w *world) {
			t.Helper()
			w.fetchErr = &UnusableImageError{Image: "i"}
			w.naming(t, "registry.test/p:v2", digestTwo)
		},
		"a catalog": func(t *testing.T, w *world) {
			t.Helper()
			w.editSpec(t, func(ext *ocv1.ClusterExtension) { ext.Spec.Source = sampleExtension().Spec.Source })
			w.catalog["p"] = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := needing(t, needsThing)
			w.serves = map[requirement.API]bool{}
			_, _ = w.reconcile(t)
			if got := w.reconciler.Neighbours.needsOfContent("x").needs; !got.APIs {
				t.Errorf("while it waits it needs %+v", got)
			}
			_, _ = w.reconcileInTime(t) // which tries nothing
			if got := w.reconciler.Neighbours.needsOfContent("x").needs; !got.APIs {
				t.Errorf("while nothing is tried it needs %+v", got)
			}
			end(t, w)
			_, _ = w.reconcile(t)
			if got := w.reconciler.Neighbours.needsOfContent("x"); got.needs.APIs || got.given != nil {
				t.Errorf("it still needs %+v", got)
			}
		})
	}
}

// TestWhatComesWhileItIsLookedFor wakes the extension: the cluster serves an API a moment after
// it was asked for.
func TestWhatComesWhileItIsLookedFor(t *testing.T) {
	t.Parallel()
	w := needing(t, needsThing)
	platform := &lateThing{world: w, told: make(chan []string, 1)}
	w.serves = map[requirement.API]bool{}
	platform.came = func() {
		platform.told <- w.matching(t, w.reconciler.toldOtherwise(t.Context()))
	}
	w.reconciler.Platform = platform
	_, _ = w.reconcile(t)
	if got := w.ready(t).Message; !strings.Contains(got, "g.test/v1, Kind=Thing") {
		t.Errorf("Ready says %q", got)
	}
	if woken := <-platform.told; !slices.Equal(woken, []string{"x"}) {
		t.Errorf("woken are %q", woken)
	}
}

// lateThing serves a thing from the moment on after somebody has asked for it.
type lateThing struct {
	*world
	asked bool
	came  func()
	told  chan []string
}

func (l *lateThing) APIs() (func(group, version, kind string) bool, error) {
	if l.asked {
		return func(string, string, string) bool { return true }, nil
	}
	return func(string, string, string) bool {
		if !l.asked {
			l.asked = true
			go l.came()
		}
		return false
	}, nil
}

// TestAPIsThatFilesRequireAreAwaited: nothing is said of them while they are being read.
func TestAPIsThatFilesRequireAreAwaited(t *testing.T) {
	t.Parallel()
	w := needing(t, needsThing)
	w.apisErr = notYetError{}
	_, _ = w.reconcile(t)
	if got := w.ready(t).Message; !strings.Contains(got, textAwaitsAPIs) {
		t.Errorf("Ready says %q", got)
	}
	w.serves = map[requirement.API]bool{thingAPI: true}
	if woken := w.matching(t, w.reconciler.toldOtherwise(t.Context())); !slices.Equal(woken, []string{"x"}) {
		t.Errorf("woken are %q", woken)
	}
	w.mustReconcile(t)
	if w.installation.Installed == nil {
		t.Errorf("nothing is installed: %s", w.ready(t).Message)
	}
}
