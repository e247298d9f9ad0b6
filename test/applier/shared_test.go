package applier_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// watches are who has asked to watch which path, sorted.
func (g *gate) watches() []string {
	found := []string{}
	for _, d := range g.sent() {
		if d.isWatch() {
			found = append(found, strings.TrimSpace(strings.TrimPrefix(d.header.Get("Impersonate-User"), "system:serviceaccount:")+" "+d.url.Path))
		}
	}
	slices.Sort(found)
	return found
}

// unwatching are rights of a ServiceAccount that do for an installation, and not for a watch.
var unwatching = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch"}}

// newNeighbour is another extension of the same applier, with a namespace and a ServiceAccount
// of its own, which has some rights there.
func (f *fixture) newNeighbour(t *testing.T, rule rbacv1.PolicyRule) object.Owner {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, namespace)
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: account}})
	create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: account}, Rules: []rbacv1.PolicyRule{rule}})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace.Name, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
	})
	owner := newOwner(t, f.owner.Name+"-2", namespace.Name)
	(&fixture{owner: owner}).waitAllowed(t)
	t.Cleanup(func() { f.applier.Forget(owner.Name) })
	return owner
}

// replaces deletes a ConfigMap, and waits until its extension is told and has repaired it.
func (f *fixture) replaces(t *testing.T, owner object.Owner, name string) {
	t.Helper()
	its := &fixture{owner: owner}
	if err := admin.Delete(t.Context(), its.live(t, name)); err != nil {
		t.Fatal(err)
	}
	for its.live(t, name) == nil {
		if f.waitForChange(t) != owner.Name {
			continue // what was repaired before is an event, too
		}
		if _, err := f.applier.Repair(t.Context(), owner); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOneWatchServesAllExtensions has two extensions whose ServiceAccounts have nothing in
// common, one of which may not even watch.
func TestOneWatchServesAllExtensions(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "serves-all")
	requests := &gate{}
	f.shares = true
	f.restartWith(t, func(config *rest.Config) { config.Wrap(requests.wrap) })
	second := f.newNeighbour(t, unwatching)
	f.apply(t, "1.0.0", configMap("a", "1"))
	if _, err := f.applier.Apply(t.Context(), second, f.desired("1.0.0", configMap("b", "1"))); err != nil {
		t.Fatal(err)
	}
	f.settle(t)
	f.replaces(t, f.owner, "a")
	f.replaces(t, second, "b")
	if result, err := f.applier.Repair(t.Context(), second); err != nil || len(result.Unwatched) > 0 || result.RecheckAfter < 5*time.Minute {
		t.Errorf("result = %+v (%v), want one that waits for events", result, err)
	}
	if diff := cmp.Diff([]string{"/api/v1/configmaps"}, requests.watches()); diff != "" {
		t.Errorf("watches (-want +got):\n%s", diff)
	}
}

// TestWhatTheControllerWatchesByDefault is what its own role lets it watch for other reasons.
// For the rest it asks once, and never for Secrets.
func TestWhatTheControllerWatchesByDefault(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "by-default")
	requests := &gate{}
	f.restartWith(t, func(config *rest.Config) { config.Wrap(requests.wrap) })
	f.apply(t, "1.0.0", configMap("a", "1"), plain("Secret", "s"), plain("ServiceAccount", "sa"))
	f.settle(t)
	second := newOwner(t, "by-default-2", f.owner.Namespace)
	t.Cleanup(func() { f.applier.Forget(second.Name) })
	if _, err := f.applier.Apply(t.Context(), second, f.desired("1.0.0", configMap("b", "1"))); err != nil {
		t.Fatal(err)
	}
	f.settle(t)
	f.replaces(t, f.owner, "a")
	f.replaces(t, second, "b")
	own := f.owner.Namespace + ":" + account + " /api/v1/namespaces/" + f.owner.Namespace
	want := []string{"/api/v1/configmaps", "/api/v1/serviceaccounts", own + "/configmaps", own + "/configmaps", own + "/secrets"}
	if diff := cmp.Diff(want, requests.watches()); diff != "" {
		t.Errorf("watches (-want +got):\n%s", diff)
	}
}

// TestRightsThatAreLostAreNoticed where all watches are the controller's, which goes on to have
// them.
func TestRightsThatAreLostAreNoticed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "rights-lost")
	f.shares = true
	f.restart(t)
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.settle(t)
	wait := f.repair(t).RecheckAfter
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: f.owner.Namespace}}
	if err := admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	f.waitMay(t, false, authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps"})
	f.later.Add(int64(wait))
	if _, err := f.applier.Repair(t.Context(), f.owner); wait == 0 || wait > 20*time.Minute || !apierrors.IsForbidden(err) {
		t.Errorf("after %s: %v, want that it is forbidden to read the object", wait, err)
	}
}

// TestWorkloadsAreNotToldByTheController: the status of a Deployment goes into that of the
// extension, which only its ServiceAccount may look up.
func TestWorkloadsAreNotToldByTheController(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "workloads-own")
	requests := &gate{}
	f.shares = true
	f.restartWith(t, func(config *rest.Config) { config.Wrap(requests.wrap) })
	f.apply(t, "1.0.0", deployment(t))
	f.settle(t)
	want := []string{f.owner.Namespace + ":" + account + " /apis/apps/v1/namespaces/" + f.owner.Namespace + "/deployments"}
	if diff := cmp.Diff(want, requests.watches()); diff != "" {
		t.Errorf("watches (-want +got):\n%s", diff)
	}
}

// plain is an object that needs nothing but a name.
func plain(kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
}

// TestTheRightToWatchAllIsTakenAway: the watches of ServiceAccounts take over when the one of
// the controller would go on, and find what happened in between.
func TestTheRightToWatchAllIsTakenAway(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "taken-away")
	const group = "controllers that share watches for a while"
	binding := clusterBinding(group, "operator-controller-shared-watches")
	create(t, binding)
	if err := awaitRight(t.Context(), group, true, watchConfigMaps); err != nil {
		t.Fatal(err)
	}
	own, err := theCluster.ConfigFor("controller", managers, recorders, group)
	if err != nil {
		t.Fatal(err)
	}
	requests, line := &gate{}, &lines{}
	f.restartWith(t, func(config *rest.Config) {
		*config = *own
		config.Wrap(requests.wrap)
		config.Wrap(line.wrap)
	})
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.settle(t)
	f.replaces(t, f.owner, "a")
	if diff := cmp.Diff([]string{"/api/v1/configmaps"}, requests.watches()); diff != "" {
		t.Errorf("watches (-want +got):\n%s", diff)
	}
	if err := admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	if err := awaitRight(t.Context(), group, false, watchConfigMaps); err != nil {
		t.Fatal(err)
	}
	line.cut()
	// The second denial comes after the first one was noted, and a third one is a minute later.
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return len(requests.watches()) >= 3, nil
	}); err != nil {
		t.Fatal(err)
	}
	f.later.Add(int64(time.Minute))
	f.replaces(t, f.owner, "a")
	want := []string{
		"/api/v1/configmaps",
		f.owner.Namespace + ":" + account + " /api/v1/namespaces/" + f.owner.Namespace + "/configmaps",
	}
	if diff := cmp.Diff(want, slices.Compact(requests.watches())); diff != "" {
		t.Errorf("watches (-want +got):\n%s", diff)
	}
}

// TestAnExtensionThatIsMadeAnew has one of the same name take the place of another, whose
// objects the watch has seen.
func TestAnExtensionThatIsMadeAnew(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(f *fixture){
		"its end was noticed":     func(f *fixture) { f.applier.Forget(f.owner.Name) },
		"its end was not noticed": func(*fixture) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "anew-"+dashed(name))
			f.shares = true
			f.restart(t)
			f.apply(t, "1.0.0", configMap("a", "1"), configMap("b", "1"))
			f.settle(t)
			if err := admin.Delete(t.Context(), f.extension()); err != nil {
				t.Fatal(err)
			}
			err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, collectorPatience, true, func(context.Context) (bool, error) {
				return f.live(t, "a") == nil && f.live(t, "b") == nil, nil
			})
			if err != nil {
				t.Fatalf("waiting for the end of its content: %v", err)
			}
			forget(f)
			f.owner = newOwner(t, f.owner.Name, f.owner.Namespace)
			f.observe(t)
			f.apply(t, "1.0.0", configMap("a", "1"), configMap("b", "1"))
			f.settle(t)
			f.replaces(t, f.owner, "a")
			f.replaces(t, f.owner, "b")
		})
	}
}
