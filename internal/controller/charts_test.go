package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requeue"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

// charts is an engine under test.
type charts struct {
	apis     []string
	err      error                 // what it says of a chart
	rendered []bundle.ChartRelease // what it was told, since somebody has taken that
	isEmpty  bool                  // it renders nothing
	looks    bool                  // at the cluster, as far as it may
	lacks    error                 // what comes of that
}

func (c *charts) render(in bundle.ChartInput) (bundle.ChartOutput, error) {
	c.rendered = append(c.rendered, in.Release)
	out := bundle.ChartOutput{LooksUp: c.looks && in.Lookup != nil, LooksInVain: c.looks && in.Lookup == nil}
	if out.LooksUp {
		if _, err := in.Lookup(context.Background(), bundle.LookupRequest{APIVersion: "v1", Kind: "Secret", Name: "a"}); err != nil {
			return bundle.ChartOutput{}, fmt.Errorf("looking up: %w", err)
		}
	}
	if c.err != nil {
		return out, c.err
	}
	if c.isEmpty {
		return out, nil
	}
	out.Documents = []bundle.ChartDocument{
		{File: "templates/a.yaml", JSON: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)},
	}
	return out, nil
}

// take is what the engine was told since the last time.
func (c *charts) take() []bundle.ChartRelease {
	rendered := c.rendered
	c.rendered = nil
	return rendered
}

// ofCharts has all bundles of a world be charts.
func (w *world) ofCharts() *charts {
	c := &charts{apis: []string{"v1"}}
	w.files = fstest.MapFS{
		"chart/Chart.yaml":       {Data: []byte("apiVersion: v2\nname: p\nversion: 1.0.0\n")},
		"chart/templates/a.yaml": {Data: []byte("a")},
	}
	w.serves = map[requirement.API]bool{}
	w.reconciler.ServedAPIs = func() ([]string, error) { return c.apis, nil }
	w.reconciler.Charts = func(context.Context) bundle.ChartEngine { return c.render }
	w.reconciler.Lookup = func(owner object.Owner) (bundle.ChartLookup, error) {
		return func(context.Context, bundle.LookupRequest) ([]byte, error) {
			w.did = append(w.did, "look up as "+owner.ServiceAccount)
			return nil, c.lacks
		}, nil
	}
	return c
}

// TestPlanOfAChartIsWhatThePassRenders has the plan, the summary of what is pending and the pass
// tell templates the same.
func TestPlanOfAChartIsWhatThePassRenders(t *testing.T) {
	t.Parallel()
	w := manualWorld(t, func(*ocv1.ClusterExtension) {})
	w.installation.Installed = nil
	w.catalog["p"] = offering("1.0.0").Package
	c := w.ofCharts()
	told := func(what string, isUpgrade bool, do func() error) {
		t.Helper()
		if err := do(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		want := []bundle.ChartRelease{{Name: "x", IsUpgrade: isUpgrade, Kubernetes: "1.36.0", APIs: []string{"v1"}}}
		if diff := cmp.Diff(want, c.take()); diff != "" {
			t.Errorf("%s tells templates (-want +got):\n%s", what, diff)
		}
	}
	plan := func() error {
		_, err := w.reconciler.Plan(t.Context(), w.extension(t))
		return err
	}
	pass := func() error {
		_, err := w.reconcile(t)
		return err
	}
	told("the plan of an installation", false, plan)
	told("the installation", false, pass)
	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	told("the summary", true, pass)
	told("the plan of an upgrade", true, plan)
	w.editSpec(t, func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog.ApprovedVersion = "1.1.0" })
	told("the upgrade", true, pass)
}

// TestRefusedChartIsRenderedForAnotherCluster: what templates refuse may be the cluster, and news
// of that is worth another rendering, the later the more often they refuse. Nothing else is.
func TestRefusedChartIsRenderedForAnotherCluster(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.digest = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	image := "registry.test/p@" + w.digest
	w.catalog["p"] = resolve.Prepare(resolve.Package{
		Name:     "p",
		Bundles:  []resolve.Bundle{{Name: "p.v1.0.0", Version: "1.0.0", Image: image}},
		Channels: []resolve.Channel{{Name: "stable", Entries: []resolve.Entry{{Name: "p.v1.0.0"}}}},
	})
	c := w.ofCharts()
	c.err = &bundle.ConfigError{Problems: []string{"values: install cert-manager first"}}
	passes := func(why string, renderings int, next time.Duration) {
		t.Helper()
		w.reconciler.holds.ask("x")
		result, _ := w.reconcile(t)
		if got := len(c.take()); got != renderings || result.RequeueAfter != next {
			t.Errorf("%s: %d renderings, and another pass in %s; want %d and %s", why, got, result.RequeueAfter, renderings, next)
		}
	}
	told := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, w.matching(t, w.reconciler.toldOtherwise(t.Context()))); diff != "" {
			t.Errorf("told of it are (-want +got):\n%s", diff)
		}
	}
	passes("the first try", 1, 0)
	told()
	w.passed += 24 * time.Hour
	passes("something else is new", 0, 0)

	c.apis = []string{"v1", "other.io/v1"}
	told("x")
	passes("another API, long after the first try", 1, 0)
	c.apis = []string{"v1"}
	told("x")
	passes("it is gone at once", 0, 20*time.Second)
	told()
	w.passed += 19 * time.Second
	passes("too early", 0, time.Second)
	w.passed += time.Second
	passes("in time", 1, 0)

	c.apis, c.err = []string{"cert-manager.io/v1", "v1"}, nil
	told("x")
	passes("what it wants is there", 0, 40*time.Second)
	w.passed += 40 * time.Second
	w.mustReconcile(t)
	if ready := w.ready(t); len(c.take()) != 1 || w.installation.Installed == nil {
		t.Errorf("it is not installed: %s", ready.Message)
	}
	c.apis = nil
	told()
}

// TestChartWaitsForTheVersion: what is not known is not said to be that of another cluster.
func TestChartWaitsForTheVersion(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	c := w.ofCharts()
	w.reconciler.Platform = unversioned{w}
	_, _ = w.reconcile(t)
	ready := w.ready(t)
	if len(c.take()) > 0 || ready.Reason != ocv1.ReasonRetrying || !strings.Contains(ready.Message, "the version of the cluster is not known yet") {
		t.Errorf("it is rendered, or the status says %s: %s", ready.Reason, ready.Message)
	}
	w.reconciler.Platform = w
	w.mustReconcile(t)
	if len(c.take()) != 1 {
		t.Error("it is not rendered when the version is known")
	}
}

// unversioned is a cluster of which the version is not known.
type unversioned struct{ Platform }

func (unversioned) Kubernetes() string { return "" }

// TestBegunChartIsNotRenderedAnew: what templates have made up is on the cluster in part, and what
// goes on is the same revision. Another one is rendered.
func TestBegunChartIsNotRenderedAnew(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.digest = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	c := w.ofCharts()
	passes := func(why string, renderings int) {
		t.Helper()
		w.passed += time.Hour
		_, _ = w.reconcile(t)
		if got := len(c.take()); got != renderings {
			t.Errorf("%s: %d renderings, want %d", why, got, renderings)
		}
	}
	w.applyErr, w.began = errors.New("a webhook does not answer"), true
	passes("the first try", 1)
	w.installation.Unfinished = true
	begun := w.recorded.Objects
	w.reconciler.remember(&requeue.Wakeups{}) // as a process that has started since
	w.reconciler.wake = func(string) {}
	passes("the next try, after a restart", 0)
	if diff := cmp.Diff(begun, w.recorded.Objects); diff != "" {
		t.Errorf("it applies (-what was begun +got):\n%s", diff)
	}
	w.editSpec(t, func(ext *ocv1.ClusterExtension) {
		ext.Spec.Config = &ocv1.ClusterExtensionConfig{
			ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: []byte(`{"values": {"a": 1}}`)},
		}
	})
	passes("other values", 1)
	w.applyErr, w.installation.Unfinished = nil, true
	passes("the last try", 0)
	w.installation.Unfinished = false
	w.reconciler.issuerGone.Store("x", w.reconciler.Now().Add(-issuerPatience))
	passes("without who issued certificates", 0)
}

// TestBegunChartWithoutObjectsIsNotRenderedAgain: a recorded revision can be empty.
func TestBegunChartWithoutObjectsIsNotRenderedAgain(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.digest = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	c := w.ofCharts()
	c.isEmpty = true
	w.applyErr, w.began = errors.New("an object of the revision before cannot be deleted"), true
	for try, renderings := range []int{1, 0, 0} {
		w.passed += time.Hour
		_, _ = w.reconcile(t)
		if got := len(c.take()); got != renderings || w.recorded == nil || !w.recorded.IsEmpty {
			t.Errorf("try %d: %d renderings, want %d; recorded is %+v", try, got, renderings, w.recorded)
		}
		w.installation.Unfinished = true
	}
}

// TestChartsTakeTurns: one waits for another one without a worker, and for nothing else that is
// large.
func TestChartsTakeTurns(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	c := w.ofCharts()
	content, endContent := w.reconciler.Turns.Begin(t.Context(), "large", "others")
	defer endContent()
	other, end := w.reconciler.ChartTurns.Begin(t.Context(), "other", "others")
	if err := errors.Join(turn.Take(content), turn.TakeOf(other, turn.Charts)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(t); !errors.Is(err, requeue.ErrUnderway) || len(c.take()) > 0 {
		t.Errorf("error %v, want that it waits", err)
	}
	end()
	if woken := <-w.turns; woken != "x" {
		t.Errorf("woken: %s", woken)
	}
	w.mustReconcile(t)
	if len(c.take()) != 1 || w.installation.Installed == nil {
		t.Error("it is not installed when it is its turn")
	}
}

// TestChartIsRenderedWhenTheClusterIsKnown has a process that does not know yet what the cluster
// serves: nothing is said of that for a while, and the extension is woken as soon as it does.
func TestChartIsRenderedWhenTheClusterIsKnown(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	c := w.ofCharts()
	w.apisErr, w.serves = notYetError{}, nil
	w.reconciler.ServedAPIs = func() ([]string, error) { return c.apis, w.apisErr }
	_, _ = w.reconcile(t)
	if got := w.ready(t).Message; len(c.take()) > 0 || !strings.Contains(got, textAwaitsAPIs) {
		t.Errorf("Ready says %q", got)
	}
	w.apisErr, w.serves = nil, map[requirement.API]bool{}
	if woken := w.matching(t, w.reconciler.toldOtherwise(t.Context())); !slices.Equal(woken, []string{"x"}) {
		t.Errorf("woken are %q", woken)
	}
	w.mustReconcile(t)
	if w.installation.Installed == nil || len(c.take()) != 1 {
		t.Errorf("nothing is installed: %s", w.ready(t).Message)
	}
}

// allowLookup lets templates look at the cluster.
func allowLookup(ext *ocv1.ClusterExtension) {
	ext.Spec.Config = &ocv1.ClusterExtensionConfig{
		ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: []byte(`{"allowLookup":true}`)},
	}
}

// TestLookupsOfAChart has templates look at the cluster as the ServiceAccount, if the spec lets them.
// What is recorded says so, and is not rendered again.
func TestLookupsOfAChart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		looks, allowed bool
		depends        bool
	}{
		"it does":                  {looks: true, allowed: true, depends: true},
		"it has no need to":        {allowed: true},
		"it may not, vector C7":    {looks: true},
		"it does not, and may not": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			if test.allowed {
				w.editSpec(t, allowLookup)
			}
			w.installation.Installed = nil
			w.catalog["p"] = offering("1.0.0").Package
			c := w.ofCharts()
			c.looks = test.looks
			plan, err := w.reconciler.Plan(t.Context(), w.extension(t))
			if err != nil || plan.DependsOnCluster != test.depends || plan.MayLookUp != test.allowed {
				t.Errorf("the plan depends on the cluster: %t, may: %t, error %v", plan.DependsOnCluster, plan.MayLookUp, err)
			}
			if inVain := test.looks && !test.allowed; plan.LooksInVain != inVain {
				t.Errorf("the plan says that templates look in vain: %t, want %t", plan.LooksInVain, inVain)
			}
			w.did = nil
			w.mustReconcile(t)
			if installed := w.installation.Installed; installed == nil || installed.DependsOnCluster != test.depends {
				t.Errorf("installed is %+v", installed)
			}
			if looked := slices.Contains(w.did, "look up as "+w.extension(t).Spec.ServiceAccount.Name); looked != test.depends {
				t.Errorf("done were %v", w.did)
			}
			c.take()
			for range 3 {
				w.reconciler.holds.ask("x")
				w.mustReconcile(t)
			}
			if again := c.take(); len(again) > 0 {
				t.Errorf("it is rendered again: %v", again)
			}
		})
	}
}

// TestRefusalOfALookupIsTriedAgain: what a chart refuses after it has looked at the cluster, and what the
// ServiceAccount may not read, changes without any news of the spec.
func TestRefusalOfALookupIsTriedAgain(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New("no"))
	for name, test := range map[string]struct {
		err, lacks error
		denied     bool
		want       string
	}{
		"by the chart": {
			err:  &bundle.ConfigError{Problems: []string{"values: make the Secret first"}},
			want: "rendering a chart with what lookup has found on the cluster: invalid configuration: values: make the Secret first",
		},
		"by the API server": {lacks: forbidden, denied: true, want: "looking up: secrets \"a\" is forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.editSpec(t, allowLookup)
			w.installation.Installed = nil
			w.catalog["p"] = offering("1.0.0").Package
			c := w.ofCharts()
			c.looks, c.err, c.lacks = true, test.err, test.lacks
			w.observed(t)
			result, err := w.reconcile(t)
			progressing := meta.FindStatusCondition(w.extension(t).Status.Conditions, ocv1.TypeProgressing)
			if progressing == nil || progressing.Reason != ocv1.ReasonRetrying || !strings.Contains(progressing.Message, test.want) {
				t.Errorf("Progressing is %+v", progressing)
			}
			if ready := w.ready(t).Message; strings.Contains(ready, "bundle rbac") {
				t.Errorf("Ready says %q, and bundle rbac does not know what templates look up", ready)
			}
			if err == nil && result.RequeueAfter == 0 {
				t.Error("it is not tried again")
			}
			if denied := len(w.reconciler.thoseDenied()) > 0; denied != test.denied {
				t.Errorf("it waits for rights: %t", denied)
			}
		})
	}
}
