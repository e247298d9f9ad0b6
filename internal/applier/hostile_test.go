package applier_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// failingMapper cannot find out about one kind, as when an API server is busy.
type failingMapper struct {
	meta.RESTMapper

	kind string
	on   bool
}

var errDiscovery = apierrors.NewServiceUnavailable("discovery is not available")

func (m *failingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.on && kind.Kind == m.kind {
		return nil, errDiscovery
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// TestKindsThatCannotBeFoundOut: what cannot be mapped for a moment is neither taken
// for let go of nor forgotten.
func TestKindsThatCannotBeFoundOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "discovery")
	mapper := &failingMapper{RESTMapper: newMapper(t), kind: "ConfigMap"}
	f.mapper = mapper
	f.restart(t)
	account := parse(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: kept}}`)
	f.apply(t, "1.0.0", account, configMap("dropped", "1"))

	mapper.on = true
	if _, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", account)); !errors.Is(err, errDiscovery) {
		t.Errorf("an upgrade fails with %v, want %v: nothing would know the dropped object any more", err, errDiscovery)
	}
	f.beginRemoval(t)
	if err := f.applier.LetGo(t.Context(), f.owner); !errors.Is(err, errDiscovery) {
		t.Errorf("letting go fails with %v, want %v: the object would go with the extension", err, errDiscovery)
	}
	mapper.on = false
	if err := f.applier.LetGo(t.Context(), f.owner); err != nil || metav1.GetControllerOf(f.live(t, "dropped")) != nil {
		t.Errorf("err = %v, object = %+v", err, f.live(t, "dropped"))
	}
}

// during calls happen at the first write of content.
func (f *fixture) during(happen func()) {
	var once sync.Once
	f.requests.setStop(func(req *http.Request) error {
		if isWrite(req) && strings.Contains(req.URL.Path, "/configmaps") {
			once.Do(happen)
		}
		return nil
	})
}

// TestNothingIsDeletedForAnExtensionThatIsDeletedMeanwhile deletes it at the first
// write of an upgrade that drops an object.
func TestNothingIsDeletedForAnExtensionThatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "going-meanwhile")
	f.apply(t, "1.0.0", configMap("a", "1"), configMap("dropped", "1"))
	f.restart(t)
	f.during(func() { f.beginRemoval(t) })
	_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", configMap("a", "2")))
	if !errors.Is(err, applier.ErrOwnerGone) || f.live(t, "dropped") == nil {
		t.Errorf("err = %v, want %v; the dropped object is %+v", err, applier.ErrOwnerGone, f.live(t, "dropped"))
	}
}

// TestWhatOthersTakeOverMeanwhileIsTheirs has objects taken over after they were
// checked, and before they are deleted, or deleted and made again.
func TestWhatOthersTakeOverMeanwhileIsTheirs(t *testing.T) {
	t.Parallel()
	take := func(t *testing.T, f *fixture, object client.Object) {
		t.Helper()
		object.SetNamespace(f.owner.Namespace)
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Error(err)
		}
		object.SetLabels(map[string]string{"is": "theirs"})
		object.SetAnnotations(nil)
		object.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: f.live(t, "a").UID, Controller: new(true),
		}})
		if err := admin.Update(t.Context(), object); err != nil {
			t.Error(err)
		}
	}
	t.Run("dropped", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, "taken-dropped")
		f.apply(t, "1.0.0", configMap("a", "1"), configMap("dropped", "1"))
		f.restart(t)
		f.during(func() { take(t, f, configMap("dropped", "1")) })
		f.apply(t, "1.1.0", configMap("a", "2"))
		if live := f.live(t, "dropped"); live == nil || live.Labels["is"] != "theirs" {
			t.Errorf("the object is %+v", live)
		}
	})
	t.Run("replaced", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, "taken-replaced")
		f.owner.Replaceable = preflight.Replaceable([]string{"Deployment"})
		f.apply(t, "1.0.0", selecting(t, "a"), configMap("a", "1"))
		f.restart(t)
		f.during(func() { take(t, f, selecting(t, "a")) })
		_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", selecting(t, "b"), configMap("a", "2")))
		live := selecting(t, "a")
		live.SetNamespace(f.owner.Namespace)
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		if conflict := (*applier.ConflictError)(nil); !errors.As(err, &conflict) || live.GetLabels()["is"] != "theirs" {
			t.Errorf("err = %v, the object is %+v", err, live)
		}
	})
}

// TestReplacedOneAtATime replaces objects of which there can be only one.
func TestReplacedOneAtATime(t *testing.T) {
	t.Parallel()
	t.Run("under a quota", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, "one-by-quota")
		f.owner.Replaceable = preflight.Replaceable([]string{"Deployment"})
		f.apply(t, "1.0.0", selecting(t, "a"))
		quota := parse(t, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {count/deployments.apps: "1"}}}`)
		quota.SetNamespace(f.owner.Namespace)
		create(t, quota)
		waitFor(t, func(ctx context.Context) (bool, error) {
			err := admin.Get(ctx, client.ObjectKeyFromObject(quota), quota)
			used, _, _ := unstructured.NestedString(quota.Object, "status", "used", "count/deployments.apps")
			return used == "1", err
		})
		// The quota follows the deletion when its controller has seen it.
		waitFor(t, func(ctx context.Context) (bool, error) {
			_, err := f.applier.Apply(ctx, f.owner, f.desired("1.1.0", selecting(t, "b")))
			if err != nil && !strings.Contains(err.Error(), "exceeded quota") {
				return false, err
			}
			return err == nil, nil
		})
	})
	t.Run("by default", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, "one-by-default")
		f.owner.Replaceable = preflight.Replaceable([]string{"PriorityClass"})
		priority := func(value int64) *unstructured.Unstructured {
			class := parse(t, `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: one-by-default}, globalDefault: true}`)
			class.Object["value"] = value
			return class
		}
		t.Cleanup(func() { _ = admin.Delete(context.Background(), priority(0)) })
		f.apply(t, "1.0.0", priority(1))
		f.apply(t, "1.1.0", priority(2))
	})
}

// TestContentThatIsBeingDeletedIsNotAvailable has objects that wait for a finalizer: of
// a definition all custom resources go.
func TestContentThatIsBeingDeletedIsNotAvailable(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "content-goes")
	definition := parse(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: holds.going.test}, spec: {
		group: going.test, scope: Cluster, names: {plural: holds, singular: hold, kind: Hold, listKind: HoldList},
		versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`)
	f.apply(t, "1.0.0", configMap("a", "1"), definition)
	f.settle(t)
	hold := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`))
	release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	for _, object := range []client.Object{f.live(t, "a"), definition} {
		if err := admin.Patch(t.Context(), object, hold); err != nil {
			t.Fatal(err)
		}
		if err := admin.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = admin.Patch(context.Background(), object, release) })
	}
	waitFor(t, func(context.Context) (bool, error) {
		f.repair(t)
		found, _ := f.applier.Workloads(f.owner)
		return len(found) == 2 && found[0].Available == metav1.ConditionFalse && found[1].Available == metav1.ConditionFalse &&
			strings.Contains(found[0].Reason, "example.com/hold"), nil
	})
	for _, object := range []client.Object{f.live(t, "a"), definition} {
		if err := admin.Patch(t.Context(), object, release); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func(context.Context) (bool, error) {
		f.repair(t)
		found, _ := f.applier.Workloads(f.owner)
		return len(found) == 0, nil
	})
}

// TestForgedRecords: whoever may create Secrets beside the records has none of others
// deleted, and nobody's time wasted.
func TestForgedRecords(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "forged")
	victim := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "forged-victim", Namespace: systemNamespace}}
	create(t, victim)
	const key = "sh.helm.release.v1.forged.v1"
	owner := []metav1.OwnerReference{{
		APIVersion: "olm.operatorframework.io/v1", Kind: "ClusterExtension", Name: f.owner.Name, UID: f.owner.UID, Controller: new(true),
	}}
	forge := func(name, kind string, labels map[string]string, data map[string][]byte) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: systemNamespace, OwnerReferences: owner,
			Labels: map[string]string{"owner": "operator-controller", "type": kind, "key": key},
		}, Data: data}
		maps.Copy(secret.Labels, labels)
		create(t, secret)
	}
	forge(key, "index", map[string]string{"name": "forged", "version": "1", "status": "pending-install"},
		map[string][]byte{"chunk": []byte("junk"), "extraChunks": []byte(`["forged-victim"]`)})
	forge("forged-bait", "chunk", nil, nil)
	forge("forged-far", "index", map[string]string{"name": "forged", "version": "2147483647", "status": "failed"}, nil)
	f.restart(t)
	began := time.Now()
	f.observe(t)
	if took := time.Since(began); took > patience {
		t.Errorf("a look at the records took %s", took)
	}
	_, _ = f.applier.Apply(t.Context(), f.owner, f.desired("1.0.0", configMap("a", "1"))) // may fail: its records are forged
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(victim), victim); err != nil {
		t.Errorf("a Secret that is no record: %v", err)
	}
}

func waitFor(t *testing.T, check func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, check); err != nil {
		t.Fatal(err)
	}
}
