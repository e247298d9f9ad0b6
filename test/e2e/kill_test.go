package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/faultproxy"
)

// triedWrites is at how many writes of an operation the controller dies. The
// test sees to it that no operation takes more.
const triedWrites = 20

// TestDeathAtEveryWrite takes extensions through their lives: install, upgrade,
// repair, uninstall. In each of these the controller dies at the first write for
// the first extension, at the second for the second, and so on: once when the
// API server has done the write, and once when it has not.
//
// One death stands for many: time stops for each extension at its own write,
// and the process is killed when it has stopped for all. The cluster is then as
// if it had been killed at each of them.
//
//nolint:paralleltest // it kills the controller of all tests
func TestDeathAtEveryWrite(t *testing.T) {
	fleet := newFleet(t, "mortal", 2*triedWrites, func(i int) bool { return i%2 == 1 })
	points := map[string]faultproxy.Point{}
	for i, name := range fleet.names {
		points[name] = faultproxy.Point{Write: i/2 + 1, Answered: i%2 == 1}
	}
	// Extensions whose time has stopped keep a worker, of which a quarter is for large
	// ones.
	fleet.takeOver(t, fmt.Sprintf("--workers=%d", 4*len(fleet.names)))
	for _, phase := range []phase{
		{name: "install", begin: fleet.install, version: "1.0.0"},
		{name: "upgrade", begin: fleet.upgrade, version: "1.1.0"},
		{name: "repair", begin: fleet.damage, version: "1.1.0"},
		{name: "uninstall", begin: fleet.remove},
	} {
		dieIn(t, fleet, phase, points)
	}
}

// phase is an operation on every extension of a fleet.
type phase struct {
	name    string
	begin   func(*testing.T)
	version string // in the end; empty for none
}

func dieIn(t *testing.T, fleet *fleet, phase phase, points map[string]faultproxy.Point) {
	t.Helper()
	freeze := faultproxy.NewFreeze(points, writerOf)
	fleet.proxy.Use(freeze.Wrap)
	phase.begin(t)
	eventually(t, phase.name+" comes as far as it may", func(ctx context.Context) error {
		seen, err := fleet.look(ctx)
		if err != nil {
			return err
		}
		stopped := freeze.Stopped()
		for _, name := range fleet.names {
			if _, ok := stopped[name]; !ok && !phase.over(fleet, seen, name) {
				return fmt.Errorf("%s goes on, with content %q", name, seen.content[name])
			}
		}
		return nil
	})
	if err := theSuite.controller.Kill(); err != nil {
		t.Fatal(err)
	}
	fleet.proxy.Heal()
	t.Logf("%s takes up to %d writes", phase.name, freeze.Longest())
	checkCoverage(t, freeze, fleet)
	checkClaims(t, fleet, phase)

	if err := theSuite.startController(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, phase.name+" recovers", func(ctx context.Context) error { return phase.check(ctx, fleet) })
}

// over says that the operation on an extension is at its end.
func (p phase) over(fleet *fleet, seen *world, name string) bool {
	if p.version == "" {
		return seen.extensions[name] == nil
	}
	return seen.settled(name, p.version) && slices.Equal(seen.content[name], fleet.contentOf(name, p.version))
}

// check finds what is lost, too much, unreadable or untrue.
func (p phase) check(ctx context.Context, fleet *fleet) error {
	seen, err := fleet.look(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range fleet.names {
		if !p.over(fleet, seen, name) {
			errs = append(errs, fmt.Errorf("%s is not there yet", name))
		}
		if diff := cmp.Diff(fleet.contentOf(name, p.version), seen.content[name]); diff != "" {
			errs = append(errs, fmt.Errorf("content of %s (-want +got):\n%s", name, diff))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return checkRecords(ctx, fleet.names, p.version)
}

func checkRecords(ctx context.Context, extensions []string, version string) error {
	found, err := readRecords(ctx)
	if err != nil {
		return err
	}
	errs := make([]error, len(extensions))
	var group sync.WaitGroup // to read large records takes long
	for i, name := range extensions {
		switch {
		case version != "":
			group.Go(func() { errs[i] = found.check(name, version) })
		case len(found[name]) > 0:
			errs[i] = fmt.Errorf("%s has %d records", name, len(found[name]))
		}
	}
	group.Wait()
	return errors.Join(errs...)
}

// checkCoverage fails when there were writes at which the controller did not
// die.
func checkCoverage(t *testing.T, freeze *faultproxy.Freeze, fleet *fleet) {
	t.Helper()
	stopped := freeze.Stopped()
	if len(stopped) < 2 {
		t.Errorf("stopped at %v: the controller did not die in the middle", stopped)
	}
	for _, last := range fleet.names[len(fleet.names)-2:] {
		if write, ok := stopped[last]; ok {
			t.Errorf("%s was stopped at its last write, %s: there are more, which are not tried", last, write)
		}
	}
}

// checkClaims finds extensions whose status says more than is true.
func checkClaims(t *testing.T, fleet *fleet, phase phase) {
	t.Helper()
	if phase.name == "repair" {
		return // damage is not to be seen in the status
	}
	seen, err := fleet.look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range fleet.names {
		for _, version := range []string{"1.0.0", "1.1.0"} {
			if !seen.settled(name, version) {
				continue
			}
			if diff := cmp.Diff(fleet.contentOf(name, version), seen.content[name]); diff != "" {
				t.Errorf("%s in the middle of %s claims to be %s, its content is another (-want +got):\n%s", name, phase.name, version, diff)
			}
		}
	}
}

// damage deletes and changes several objects of every extension.
func (f *fleet) damage(t *testing.T) {
	t.Helper()
	for _, name := range f.names {
		settings, deployment := &corev1.ConfigMap{}, &appsv1.Deployment{}
		exists(t, settings, name, "settings")
		exists(t, deployment, name, name)
		before, beforeDeployment := client.MergeFrom(settings.DeepCopy()), client.MergeFrom(deployment.DeepCopy())
		settings.Data["version"] = "changed"
		deployment.Spec.Template.Spec.Containers[0].Image = "registry.test/changed"
		err := errors.Join(
			theSuite.Admin.Patch(t.Context(), settings, before),
			theSuite.Admin.Patch(t.Context(), deployment, beforeDeployment),
			theSuite.Admin.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}),
			theSuite.Admin.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "added"}}),
		)
		if err != nil {
			t.Fatal(err)
		}
	}
}
