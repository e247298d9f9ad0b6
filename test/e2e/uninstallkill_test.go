package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/faultproxy"
)

// TestDeathAtEveryWriteOfAnUninstall deletes extensions of each uninstall policy. The
// controller dies at each write, once when the API server has done it and once when it has
// not, as in TestDeathAtEveryWrite. What the policy keeps is there afterwards as the same
// objects, and the rest is gone.
//
//nolint:paralleltest // it kills the controller of all tests
func TestDeathAtEveryWriteOfAnUninstall(t *testing.T) {
	if !*deletions {
		t.Skip("takes minutes; make test-long SUITE=deletions runs it")
	}
	for _, tc := range []struct {
		name   string
		writes int // that are tried
		policy ocv1.ClusterExtensionUninstallConfig

		// check is what holds after the deletion and, where custom resources are in use,
		// after their end.
		check func(ctx context.Context, m *mourned) error
		used  bool
	}{
		{name: "u-keep", writes: 5, policy: keeps, check: checkKept},
		{name: "u-orphan", writes: 16, policy: orphans, check: checkOrphaned},
		{name: "u-refuse", writes: 4, policy: refuses, check: checkRefused, used: true},
		{name: "u-first", writes: 8, policy: ordered, check: checkGone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := &mourned{fleet: newFleet(t, tc.name, 2*tc.writes, func(int) bool { return false }), precious: map[string]types.UID{}, points: map[string]faultproxy.Point{}}
			for i, name := range m.fleet.names {
				m.points[name] = faultproxy.Point{Write: i/2 + 1, Answered: i%2 == 1}
			}
			m.fleet.takeOver(t, fmt.Sprintf("--workers=%d", 4*len(m.fleet.names)))
			m.install(t, tc.policy)
			m.dieIn(t, func() { m.fleet.remove(t) }, tc.used)
			stays(t, "what the policy says", settleTime, func(ctx context.Context) error { return tc.check(ctx, m) })
			if tc.used {
				m.dieIn(t, func() { m.deleteCustomResources(t) }, false)
				stays(t, "the end of custom resources", settleTime, func(ctx context.Context) error { return checkGone(ctx, m) })
			}
			m.bury(t)
		})
	}
}

// mourned are extensions with custom resources that are deleted.
type mourned struct {
	fleet    *fleet
	points   map[string]faultproxy.Point
	before   inventory
	precious map[string]types.UID
}

func (m *mourned) install(t *testing.T, policy ocv1.ClusterExtensionUninstallConfig) {
	t.Helper()
	for _, name := range m.fleet.names {
		extendOnly(t, name, fromCatalog(m.fleet.name), version("1.0.0"), uninstall(policy))
	}
	for _, name := range m.fleet.names {
		installed(t, name, "1.0.0")
		uid, err := createCustomResource(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		m.precious[name] = uid
	}
	var err error
	if m.before, err = takeInventory(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// dieIn has the controller die when every extension is at its write, gone or, if that is
// where it ends, held up. Then another one goes on.
func (m *mourned) dieIn(t *testing.T, begin func(), endsHeld bool) {
	t.Helper()
	freeze := faultproxy.NewFreeze(m.points, writerOf)
	m.fleet.proxy.Use(freeze.Wrap)
	begin()
	eventually(t, "the uninstall comes as far as it may", func(ctx context.Context) error {
		stopped := freeze.Stopped()
		for _, name := range m.fleet.names {
			extension := &ocv1.ClusterExtension{}
			err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: name}, extension)
			_, isStopped := stopped[name]
			isOver := apierrors.IsNotFound(err) || endsHeld && isBlocked(extension)
			if !isStopped && !isOver {
				return errors.Join(err, fmt.Errorf("%s goes on: %+v", name, extension.Status.Conditions))
			}
		}
		return nil
	})
	if err := theSuite.controller.Kill(); err != nil {
		t.Fatal(err)
	}
	m.fleet.proxy.Heal()
	t.Logf("takes up to %d writes", freeze.Longest())
	for _, last := range m.fleet.names[len(m.fleet.names)-2:] {
		if write, ok := freeze.Stopped()[last]; ok {
			t.Errorf("%s was stopped at its last write, %s: there are more, which are not tried", last, write)
		}
	}
	if err := theSuite.startController(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func isBlocked(extension *ocv1.ClusterExtension) bool {
	ready := meta.FindStatusCondition(extension.Status.Conditions, ocv1.TypeReady)
	return ready != nil && ready.Reason == ocv1.ReasonDeletionBlocked
}

func (m *mourned) deleteCustomResources(t *testing.T) {
	t.Helper()
	for _, name := range m.fleet.names {
		if err := theSuite.Admin.Delete(t.Context(), customResource(name)); err != nil {
			t.Fatal(err)
		}
	}
}

// bury makes the extensions again, which take over what has stayed, and deletes all of it.
func (m *mourned) bury(t *testing.T) {
	t.Helper()
	m.fleet.recreate(t, "1.0.0")
	m.fleet.remove(t)
	for _, name := range m.fleet.names {
		nothingLeft(t, name)
	}
}

// each checks every extension, of which there is nothing any more if it is said to be gone.
func (m *mourned) each(ctx context.Context, gone bool, check func(name string, found map[string]item) []string) error {
	found, err := takeInventory(ctx)
	errs := []error{err}
	for _, name := range m.fleet.names {
		err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: name}, &ocv1.ClusterExtension{})
		if apierrors.IsNotFound(err) != gone {
			errs = append(errs, fmt.Errorf("%s: gone is to be %t: %w", name, gone, err))
		}
		if amiss := check(name, found[name]); len(amiss) > 0 {
			errs = append(errs, fmt.Errorf("%s: %q", name, amiss))
		}
	}
	return errors.Join(errs...)
}

// preciousLost says what became of a custom resource that is to be kept.
func (m *mourned) preciousLost(ctx context.Context, name string) []string {
	if uid, err := customResourceUID(ctx, name); err != nil || uid != m.precious[name] {
		return []string{fmt.Sprintf("the custom resource %q is lost: there is %q (%v)", m.precious[name], uid, err)}
	}
	return nil
}

func checkKept(ctx context.Context, m *mourned) error {
	return m.each(ctx, true, func(name string, found map[string]item) []string {
		definition := "CustomResourceDefinition things." + name + ".test"
		amiss := append(m.preciousLost(ctx, name), notOwnedBy("", found)...)
		amiss = append(amiss, lost(map[string]item{definition: m.before[name][definition]}, found)...)
		if len(found) != 1 {
			amiss = append(amiss, fmt.Sprintf("%d objects are left", len(found)))
		}
		return amiss
	})
}

func checkOrphaned(ctx context.Context, m *mourned) error {
	return m.each(ctx, true, func(name string, found map[string]item) []string {
		return append(append(m.preciousLost(ctx, name), notOwnedBy("", found)...), lost(m.before[name], found)...)
	})
}

func checkRefused(ctx context.Context, m *mourned) error {
	return m.each(ctx, false, func(name string, found map[string]item) []string {
		return append(m.preciousLost(ctx, name), lost(m.before[name], found)...)
	})
}

func checkGone(ctx context.Context, m *mourned) error {
	return m.each(ctx, true, func(_ string, found map[string]item) []string {
		var left []string
		for name := range found {
			left = append(left, name+" is left")
		}
		return left
	})
}
