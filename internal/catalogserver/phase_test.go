package catalogserver_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// stands is what those who wait for a catalog see in a status: what kstatus makes of
// it, Ready, and which of Reconciling, Stalled and Degraded are there.
func stands(t *testing.T, catalog *ocv1.ClusterCatalog) string {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(catalog)
	if err != nil {
		t.Fatal(err)
	}
	result, err := kstatus.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{result.Status.String()}
	for _, kind := range []string{"Ready", "Reconciling", "Stalled", "Degraded"} {
		if condition := meta.FindStatusCondition(catalog.Status.Conditions, kind); condition != nil {
			parts = append(parts, kind+"="+string(condition.Status)+"/"+condition.Reason)
		}
	}
	return strings.Join(parts, " ")
}

// written takes every status that was written since the last time.
func (c *cluster) written() []string {
	c.t.Helper()
	var all []string
	for _, catalog := range c.statuses {
		all = append(all, stands(c.t, catalog))
	}
	c.statuses = nil
	return all
}

const (
	isPulling  = "InProgress Ready=Unknown/Pulling Reconciling=True/Pulling"
	isServed   = "Current Ready=True/Succeeded"
	isRetrying = "InProgress Ready=False/Retrying Reconciling=True/Retrying"
	isStale    = "Current Ready=True/Retrying"
	isInvalid  = isStale + " Degraded=True/ContentInvalid"
	isCutOff   = isStale + " Degraded=True/SourceUnavailable"
	isStuck    = "Failed Ready=False/Retrying Stalled=True/Retrying"
	isBlocked  = "Failed Ready=False/Blocked Stalled=True/Blocked"
	isOff      = "Current Ready=True/UserSpecifiedUnavailable"
)

// TestStanding goes through the lives of catalogs and looks at every status that is
// ever written.
func TestStanding(t *testing.T) {
	t.Parallel()
	down, otherwise := errors.New("no registry"), errors.New("unauthorized")
	type step struct {
		does string
		act  func(*cluster)
		want []string
	}
	wait := func(passed time.Duration) func(*cluster) {
		return func(c *cluster) { c.now = c.now.Add(passed) }
	}
	fails := func(err error) func(*cluster) { return func(c *cluster) { c.puller.err = err } }
	pushes := func(digest int, content map[string]string) func(*cluster) {
		return func(c *cluster) { c.puller.digest, c.puller.files = digest, files(content) }
	}
	edit := func(change func(*ocv1.ClusterCatalog)) func(*cluster) { return func(c *cluster) { c.update(change) } }
	all := func(acts ...func(*cluster)) func(*cluster) {
		return func(c *cluster) {
			for _, act := range acts {
				act(c)
			}
		}
	}
	other := func(catalog *ocv1.ClusterCatalog) { catalog.Spec.Source.Image.Ref = "registry.test/catalog:next" }
	tests := map[string]struct {
		catalog *ocv1.ClusterCatalog
		steps   []step
	}{
		"served": {newCatalog(tagRef, 10), []step{
			{"first pull", nil, []string{isPulling, isServed}},
			{"unchanged poll", wait(10 * time.Minute), nil},
			{"newer content of the same tag", all(wait(10*time.Minute), func(c *cluster) { c.puller.digest = 2 }), []string{isServed}},
			{"restart", func(c *cluster) { c.restart() }, nil},
			{"another source", all(edit(other), func(c *cluster) { c.puller.digest = 3 }), []string{isPulling, isServed}},
		}},
		"never pulled": {newCatalog(tagRef, 0), []step{
			{"no registry", fails(down), []string{isPulling, isRetrying}},
			{"the same for less than two minutes", wait(119 * time.Second), nil},
			{"the same for two minutes", wait(time.Second), []string{isStuck}},
			{"the same for ever", wait(time.Hour), nil},
			{"restart", func(c *cluster) { c.restart() }, nil},
			{"another answer", fails(otherwise), []string{isRetrying}},
			{"the first again, for long", all(fails(down), wait(3*time.Minute)), []string{isRetrying}},
			{"the same for two minutes", wait(2 * time.Minute), []string{isStuck}},
			{"it is back", fails(nil), []string{isServed}},
		}},
		"a poll fails": {newCatalog(tagRef, 10), []step{
			{"first pull", nil, []string{isPulling, isServed}},
			{"no registry", all(wait(10*time.Minute), fails(down)), []string{isStale}},
			{"for less than two minutes", wait(119 * time.Second), nil},
			{"F7: for long", wait(time.Second), []string{isCutOff}},
			{"for longer", wait(time.Hour), nil},
			{"restart", func(c *cluster) { c.restart() }, nil},
			{"it is back", fails(nil), []string{isServed}},
		}},
		"F7: broken content under the same tag": {newCatalog(tagRef, 10), []step{
			{"first pull", nil, []string{isPulling, isServed}},
			{"broken", all(wait(10*time.Minute), pushes(2, map[string]string{"a": "["})), []string{isInvalid}},
			{"for long", wait(time.Hour), nil},
			{"restart", func(c *cluster) { c.restart() }, nil},
			{"no registry", fails(down), []string{isStale}},
			{"broken, as before", fails(nil), []string{isInvalid}},
			{"good again", pushes(3, map[string]string{"a": "schema: olm.package\nname: p\n"}), []string{isServed}},
		}},
		"F7: no content under the same tag": {newCatalog(tagRef, 10), []step{
			{"first pull", nil, []string{isPulling, isServed}},
			{"empty", all(wait(10*time.Minute), pushes(2, map[string]string{})), []string{isInvalid}},
		}},
		"F7: no image of a catalog under the same tag": {newCatalog(tagRef, 10), []step{
			{"first pull", nil, []string{isPulling, isServed}},
			{"not a catalog", all(wait(10*time.Minute), fails(image.ErrContent)), []string{isInvalid}},
			{"taken out of use", edit(func(catalog *ocv1.ClusterCatalog) {
				catalog.Spec.AvailabilityMode = ocv1.AvailabilityModeUnavailable
			}), []string{isOff}},
		}},
		"F7: never good": {newCatalog(tagRef, 10), []step{
			{"broken", pushes(2, map[string]string{"a": "["}), []string{isPulling, isRetrying + " Degraded=True/ContentInvalid"}},
			{"another source", edit(other), []string{isPulling, isRetrying + " Degraded=True/ContentInvalid"}},
		}},
		"another source cannot be had": {newCatalog(tagRef, 0), []step{
			{"first pull", nil, []string{isPulling, isServed}},
			{"edit", all(fails(down), edit(other)), []string{isPulling, isRetrying}},
			{"for two minutes", wait(2 * time.Minute), []string{isStuck}},
			{"back to the first", edit(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.Source.Image.Ref = tagRef }), []string{isServed}},
		}},
		"a reference that cannot be used": {newCatalog("bad", 0), []step{
			{"at once", fails(&image.ReferenceError{Ref: "bad", Err: errors.New("bad")}), []string{isPulling, isBlocked}},
			{"for ever", wait(time.Hour), nil},
			{"an edit", all(fails(nil), edit(other)), []string{isPulling, isServed}},
		}},
		"lost content": {newCatalog(tagRef, 0), []step{
			{"first pull", nil, []string{isPulling, isServed}},
			{"lost", func(c *cluster) {
				c.dir, c.puller.err = c.t.TempDir(), down
				c.restart()
			}, []string{isStale}},
			{"for two minutes", wait(2 * time.Minute), []string{isStuck}},
			{"it is back", fails(nil), []string{isServed}},
		}},
		"unavailable": {newCatalog(tagRef, 0), []step{
			{"first pull", nil, []string{isPulling, isServed}},
			{"taken out of use", edit(func(catalog *ocv1.ClusterCatalog) {
				catalog.Spec.AvailabilityMode = ocv1.AvailabilityModeUnavailable
			}), []string{isOff}},
			{"and back", edit(func(catalog *ocv1.ClusterCatalog) {
				catalog.Spec.AvailabilityMode = ocv1.AvailabilityModeAvailable
			}), []string{isPulling, isServed}},
		}},
		"deleted": {func() *ocv1.ClusterCatalog {
			catalog := newCatalog(tagRef, 0)
			catalog.Finalizers = []string{"example.com/foreign"}
			return catalog
		}(), []step{
			{"first pull", nil, []string{isPulling, isServed}},
			{"deleted", func(c *cluster) {
				if err := c.client.Delete(c.t.Context(), c.catalog()); err != nil {
					c.t.Fatal(err)
				}
			}, []string{"Terminating Ready=False/Unavailable"}},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, tt.catalog)
			for _, step := range tt.steps {
				if step.act != nil {
					step.act(c)
				}
				c.mustSettle()
				if diff := cmp.Diff(step.want, c.written()); diff != "" {
					t.Errorf("%s: statuses that were written (-want +got):\n%s", step.does, diff)
				}
			}
		})
	}
}

// TestTriesGoOn: what somebody has to mend is tried all the same, and a catalog is
// called stalled no later than it has to be.
func TestTriesGoOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 0))
	c.puller.err = errors.New("no registry")
	begin := c.now
	var result reconcile.Result
	for range 30 {
		result = c.mustSettle()
		if result.RequeueAfter == 0 {
			t.Fatal("it is not tried again")
		}
		if got := stands(t, c.catalog()); c.now.Sub(begin) >= 2*time.Minute && got != isStuck {
			t.Errorf("%s after %s", got, c.now.Sub(begin))
		}
		c.now = c.now.Add(result.RequeueAfter)
	}
	if result.RequeueAfter != time.Minute {
		t.Errorf("after many tries it waits for %v", result.RequeueAfter)
	}
	c.update(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.Source.Image.Ref = "registry.test/catalog:next" })
	if result, err := c.pass(); err != nil || result.RequeueAfter != time.Second {
		t.Errorf("after an edit it waits for %v (%v)", result.RequeueAfter, err)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 10))
	expect := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, c.told); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", when, diff)
		}
		c.told = nil
	}
	c.mustSettle()
	expect("first pull", `Normal Pulling: pulling "registry.test/catalog:latest"`, `Normal Succeeded: the content of "`+digestRef(1)+`" is served`)
	c.now = c.now.Add(10 * time.Minute)
	c.mustSettle()
	expect("unchanged poll")
	c.now = c.now.Add(10 * time.Minute)
	c.puller.err = errors.New("no registry")
	c.mustSettle()
	expect("failed poll", `Warning Retrying: the content of "`+digestRef(1)+`" is still served, and nothing newer can be had: source catalog content: no registry`)
	c.puller.err = errors.New(strings.Repeat("ü", 2000))
	c.mustSettle()
	if len(c.told) != 1 || len(c.told[0]) > 1024 {
		t.Errorf("got events %q", c.told)
	}
	c.told = nil
	c.puller.err = nil
	c.mustSettle()
	expect("back", `Normal Succeeded: the content of "`+digestRef(1)+`" is served`)
}

// TestUntouchedCatalog: as the API server makes it, before anybody has looked.
func TestUntouchedCatalog(t *testing.T) {
	t.Parallel()
	catalog := newCatalog(tagRef, 0)
	catalog.Status.ObservedGeneration = -1
	if got := stands(t, catalog); got != "InProgress" {
		t.Errorf("kstatus says %s", got)
	}
}
