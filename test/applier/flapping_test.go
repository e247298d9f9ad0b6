package applier_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// flapping is the key of a ConfigMap of the fixture, as text.
func (f *fixture) flapping(name string, managers ...string) string {
	key := object.Key{Namespace: f.owner.Namespace, Name: name}
	key.Kind = "ConfigMap"
	return object.Flapping{Object: key, Managers: managers}.String()
}

// provoke changes a ConfigMap in somebody else's name.
func (f *fixture) provoke(t *testing.T, name string) {
	t.Helper()
	live := f.live(t, name)
	live.Data["key"] = "theirs"
	if err := admin.Update(t.Context(), live, client.FieldOwner("rival")); err != nil {
		t.Fatal(err)
	}
}

// regain repairs until a ConfigMap is as it should be: what a watch reports may
// be an earlier change.
func (f *fixture) regain(t *testing.T, name string) installation.Result {
	t.Helper()
	for {
		f.waitForChange(t)
		result := f.repair(t)
		if f.live(t, name).Data["key"] == "1" {
			return result
		}
	}
}

func flapping(result installation.Result) []string {
	var texts []string
	for _, object := range result.Flapping {
		texts = append(texts, object.String())
	}
	return texts
}

func TestFlappingObjectsAreRepairedLessOften(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "flapping")
	f.apply(t, "1.0.0", configMap("a", "1"), configMap("b", "1"))
	f.settle(t)
	var result installation.Result
	for i := range 6 {
		if got := flapping(result); len(got) > 0 {
			t.Fatalf("after %d repairs: flapping = %v", i, got)
		}
		f.provoke(t, "a")
		result = f.regain(t, "a")
	}
	want := []string{f.flapping("a", "rival")}
	if diff := cmp.Diff(want, flapping(result)); diff != "" {
		t.Fatalf("flapping (-want +got):\n%s", diff)
	}

	f.provoke(t, "a")
	f.waitForChange(t)
	f.requests.take()
	result = f.repair(t)
	if sent := f.requests.take(); len(sent) > 0 {
		t.Errorf("during a pause %v was sent", sent)
	}
	if result.RecheckAfter <= 0 || result.RecheckAfter > time.Minute {
		t.Errorf("looks again after %s", result.RecheckAfter)
	}
	f.provoke(t, "b")
	f.regain(t, "b")
	for _, line := range f.requests.take() {
		if strings.HasSuffix(line, "configmaps/a") {
			t.Errorf("%s: it is held", line)
		}
	}

	f.later.Add(int64(result.RecheckAfter))
	result = f.repair(t)
	if got := f.live(t, "a").Data["key"]; got != "1" {
		t.Errorf("after the pause it has %q", got)
	}
	if diff := cmp.Diff(want, flapping(result)); diff != "" {
		t.Errorf("after the pause flapping (-want +got):\n%s", diff)
	}

	f.requests.take()
	for range 2 { // the end of the pause, and that of the flapping
		f.later.Add(int64(result.RecheckAfter))
		result = f.repair(t)
	}
	if got := flapping(result); len(got) > 0 || result.RecheckAfter > 0 {
		t.Errorf("at rest flapping = %v, and it is looked at again after %s", got, result.RecheckAfter)
	}
	for _, line := range f.requests.take() {
		if strings.Contains(line, " PATCH ") {
			t.Errorf("%s at rest", line)
		}
	}
}
