package status_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/status"
)

const (
	extensionKind = "ClusterExtension"
	catalogKind   = "ClusterCatalog"

	// bound is how long who waits may be left in hope while a person has to act:
	// two minutes, and what a busy machine takes on top.
	bound = 2*time.Minute + 30*time.Second

	// patience is how long anything else may take, most of it on a busy machine.
	patience = 3 * time.Minute
)

// scene is one object on its way through a situation. All its captures are judged,
// in their order.
type scene struct {
	name, kind string

	// wants is what ought to be there, by generation of the object: a version of the
	// bundle, or a text in the content of the catalog.
	wants map[int64]string

	judged  int
	moments []status.Moment
	lies    map[string]status.Capture
	// acted is since when a person has to act again; zero while nobody has to.
	acted time.Time
}

func newScene(name, kind string) *scene {
	return &scene{name: name, kind: kind, wants: map[int64]string{}, lies: map[string]status.Capture{}}
}

// wanted is that of the latest generation up to the given one that changed it.
func (s *scene) wanted(generation int64) string {
	for ; generation > 0; generation-- {
		if wanted, ok := s.wants[generation]; ok {
			return wanted
		}
	}
	return ""
}

// next judges the next capture.
func (s *scene) next(ctx context.Context) (status.Capture, bool, error) {
	captures, err := theSuite.recorder.Captures(s.kind, s.name)
	if err != nil || s.judged == len(captures) {
		return status.Capture{}, false, err
	}
	capture := captures[s.judged]
	facts, err := s.facts(ctx, capture)
	if err != nil {
		return capture, false, err
	}
	s.judged++
	lies := status.Judge(capture, facts)
	if s.acted.IsZero() && capture.Kstatus() == "Failed" {
		lies = append(lies, "kstatus says Failed: nobody has to act")
	}
	for _, lie := range lies {
		if _, known := s.lies[lie]; !known {
			s.lies[lie] = capture
		}
	}
	return capture, true, nil
}

func (s *scene) facts(ctx context.Context, capture status.Capture) (status.Facts, error) {
	wanted := s.wanted(capture.Object.GetGeneration())
	if s.kind == catalogKind {
		return theSuite.world.OfCatalog(ctx, capture, wanted)
	}
	return theSuite.world.OfExtension(ctx, capture, wanted)
}

// await judges captures until one is the moment.
func (s *scene) await(t *testing.T, m moment) {
	t.Helper()
	limit := patience
	if m.atLeisure {
		limit = bound
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var last status.Capture
	for {
		capture, found, err := s.next(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			t.Fatal(err)
		case found && m.is(capture):
			s.moments = append(s.moments, status.Moment{Name: m.name, Capture: capture})
			return
		case found:
			last = capture
			continue
		}
		select {
		case <-ctx.Done():
			s.tell(t)
			t.Fatalf("the moment %q does not come: the last status is %s", m.name, last)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// finish judges what is left, and compares the moments with those of the golden.
func (s *scene) finish(t *testing.T) {
	t.Helper()
	for {
		_, found, err := s.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			break
		}
	}
	s.tell(t)
	got, err := status.Golden(s.moments)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", s.name+".yaml")
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("statuses differ from %s; if that is meant, run the test with -update (-want +got):\n%s", path, cmp.Diff(string(want), string(got)))
	}
}

// tell reports each lie once.
func (s *scene) tell(t *testing.T) {
	t.Helper()
	for lie, capture := range s.lies {
		t.Errorf("%s\n\tfirst in %s", lie, capture)
	}
	clear(s.lies)
}

// person begins the time in which somebody has to act.
func (s *scene) person() { s.acted = time.Now() }

// nobody ends it: who waits must have heard of it in time, and of nothing else
// since then.
func (s *scene) nobody(t *testing.T) {
	t.Helper()
	captures, err := theSuite.recorder.Captures(s.kind, s.name)
	if err != nil {
		t.Fatal(err)
	}
	if lie := status.Overdue(captures, s.acted, bound); lie != "" {
		t.Error(lie)
	}
	s.acted = time.Time{}
}

// create makes the ClusterExtension.
func (s *scene) create(t *testing.T, wants string, changes ...func(*ocv1.ClusterExtension)) {
	t.Helper()
	s.wants[1] = wants
	changes = append([]func(*ocv1.ClusterExtension){fromCatalog(s.name)}, changes...)
	create(t, environment.Extension(s.name, s.name, installer, changes...))
}

// edit changes the ClusterExtension.
func (s *scene) edit(t *testing.T, wants string, change func(*ocv1.ClusterExtension)) {
	t.Helper()
	err := theSuite.Update(t.Context(), s.name, func(extension *ocv1.ClusterExtension) {
		change(extension)
		s.wants[extension.Generation+1] = wants
	})
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := theSuite.Admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func binding(namespace string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "status-" + namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: installer}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
}

// eventually waits for what no status tells.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, patience, what, check)
}

// gone waits until an object is no longer there.
func gone(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s", object, object.GetName()), func(ctx context.Context) error {
		err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return errors.New("still there")
		}
		return client.IgnoreNotFound(err)
	})
}

// moment is a status that is waited for, and kept.
type moment struct {
	name string
	is   func(status.Capture) bool

	// atLeisure may take as long as the bound.
	atLeisure bool
}

// created is what there is before the controller has seen the object, and edited
// what there is before it has seen a change of it.
func created() moment { return moment{name: "created", is: func(status.Capture) bool { return true }} }

func edited() moment {
	return moment{name: "edited", is: func(c status.Capture) bool { return c.Object.GetGeneration() > 1 }}
}

// observed is the first status that is about the spec as it is.
func observed(name string) moment {
	return moment{name: name, is: func(c status.Capture) bool {
		return c.Observed() && c.Condition("Ready").Status != "" && c.Condition("Ready").ObservedGeneration == c.Object.GetGeneration()
	}}
}

// atWork is the first status that is about the spec as it is and says what is done for it.
func atWork(doing string) moment {
	is := observed("").is
	return moment{name: "at work", is: func(c status.Capture) bool {
		return is(c) && strings.Contains(c.Condition("Ready").Message, doing)
	}}
}

func ready(version string) moment {
	return moment{name: version + " is ready", is: func(c status.Capture) bool {
		return c.WaitReturns("Ready") && c.Version() == version
	}}
}

// becomes is when a condition has a status and a reason, for the spec as it is.
func becomes(kind, state, reason string) moment {
	return moment{name: kind + " is " + state + " " + reason, is: func(c status.Capture) bool {
		condition := c.Condition(kind)
		return condition.Is(state, reason) && condition.ObservedGeneration == c.Object.GetGeneration()
	}}
}

// retrying is while there is hope that what stands in the way goes away by itself.
func retrying() moment { return becomes("Reconciling", "True", "Retrying") }

// retryingWithContent is [retrying] once the content of the catalog is known. What does not
// depend on it does not wait for it, so the first status may be from before.
func retryingWithContent() moment {
	retrying, known := retrying(), becomes("Deprecated", "False", "NotDeprecated")
	return moment{name: retrying.name, is: func(c status.Capture) bool { return retrying.is(c) && known.is(c) }}
}

// failed is when who waits hears that waiting is no use.
func failed() moment {
	return moment{name: "a person has to act", atLeisure: true, is: func(c status.Capture) bool { return c.Kstatus() == "Failed" }}
}
