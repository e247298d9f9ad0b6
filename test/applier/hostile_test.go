package applier_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
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
	if err := f.applier.Orphan(t.Context(), f.owner); !errors.Is(err, errDiscovery) {
		t.Errorf("letting go fails with %v, want %v: the object would go with the extension", err, errDiscovery)
	}
	mapper.on = false
	if err := f.applier.Orphan(t.Context(), f.owner); err != nil || metav1.GetControllerOf(f.live(t, "dropped")) != nil {
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
	if !errors.Is(err, object.ErrOwnerGone) || f.live(t, "dropped") == nil {
		t.Errorf("err = %v, want %v; the dropped object is %+v", err, object.ErrOwnerGone, f.live(t, "dropped"))
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
		if conflict := (*object.ConflictError)(nil); !errors.As(err, &conflict) || live.GetLabels()["is"] != "theirs" {
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
		f.applyAfter(t, "exceeded quota", selecting(t, "b"))
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
		// So does the API server, which looks for another default in a cache.
		f.applyAfter(t, "already marked as default", priority(2))
	})
}

// applyAfter tries to upgrade until it is not refused for that reason.
func (f *fixture) applyAfter(t *testing.T, refusal string, objects ...*unstructured.Unstructured) {
	t.Helper()
	waitFor(t, func(ctx context.Context) (bool, error) {
		_, err := f.applier.Apply(ctx, f.owner, f.desired("1.1.0", objects...))
		if err != nil && !strings.Contains(err.Error(), refusal) {
			return false, err
		}
		return err == nil, nil
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
	waitFor(t, func(ctx context.Context) (bool, error) {
		f.repair(t)
		f.applier.Diagnose(ctx, f.owner)
		found, _ := f.applier.Workloads(f.owner)
		return len(found) == 1 && found[0].Available == metav1.ConditionTrue, nil // the definition
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

// TestIndexesThatNameSecretsOfOthers: what an index calls its chunks is neither taken
// over with it nor deleted or let go of, unless it is one of them.
func TestIndexesThatNameSecretsOfOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "misnamed")
	f.apply(t, "1.0.0", configMap("a", "1"))
	owned := []metav1.OwnerReference{{
		APIVersion: "olm.operatorframework.io/v1", Kind: "ClusterExtension", Name: f.owner.Name, UID: f.owner.UID, Controller: new(true),
	}}
	chunk := func(key string) map[string]string {
		return map[string]string{"owner": "operator-controller", "type": "chunk", "key": key}
	}
	victims := map[string]string{} // resource version by name
	for name, secret := range map[string]*corev1.Secret{
		"misnamed-plain":         {},
		"misnamed-content":       {ObjectMeta: metav1.ObjectMeta{OwnerReferences: owned}},
		"misnamed-other-chunk":   {ObjectMeta: metav1.ObjectMeta{Labels: chunk("sh.helm.release.v1.other.v1")}},
		"misnamed-foreign-chunk": {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"owner": "helm", "type": "chunk", "key": "sh.helm.release.v1.misnamed.v1"}}},
	} {
		secret.Name, secret.Namespace = name, systemNamespace
		create(t, secret)
		victims[name] = secret.ResourceVersion
	}
	forge := func(owners []metav1.OwnerReference) {
		t.Helper()
		names, err := json.Marshal(slices.Sorted(maps.Keys(victims)))
		if err != nil {
			t.Fatal(err)
		}
		for _, index := range f.records(t) {
			index.OwnerReferences, index.Data["extraChunks"] = owners, names
			if err := admin.Update(t.Context(), &index); err != nil {
				t.Fatal(err)
			}
		}
	}
	untouched := func(when string) {
		t.Helper()
		for name, version := range victims {
			secret := &corev1.Secret{}
			if err := admin.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: name}, secret); err != nil {
				t.Errorf("after %s: %v", when, err)
			} else if secret.ResourceVersion != version {
				t.Errorf("%s was written to after %s: %+v", name, when, secret.ObjectMeta)
			}
		}
	}

	forge(nil)
	f.restart(t)
	if got := installed(f.observe(t)); got != "1.0.0" {
		t.Errorf("%q was taken over, want 1.0.0", got)
	}
	untouched("its index was taken over")
	f.apply(t, "1.1.0", configMap("a", "2"))
	untouched("its revision was superseded")
	forge(owned)
	f.restart(t)
	f.observe(t)
	for i := range 11 {
		f.apply(t, fmt.Sprintf("1.2.%d", i), configMap("a", fmt.Sprint(i)))
	}
	untouched("its revision was deleted")
	forge(owned)
	f.beginRemoval(t)
	if err := f.applier.Orphan(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	untouched("its extension let go")
}

// TestChunksInTheWay: a Secret that is called as a chunk is going to be is not taken
// for one, and what to do about it is said.
func TestChunksInTheWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "in-the-way")
	f.restartWithSmallChunks(t)
	var squatted string
	f.requests.setStop(func(req *http.Request) error {
		if req.Method != http.MethodPost || squatted != "" || !strings.HasSuffix(req.URL.Path, "/namespaces/"+systemNamespace+"/secrets") {
			return nil
		}
		body, err := req.GetBody()
		if err != nil {
			return err
		}
		defer body.Close()
		secret := &corev1.Secret{}
		if err := decodeAny(body, secret); err != nil || secret.Labels["type"] != "chunk" {
			return err
		}
		squatted = secret.Name
		return admin.Create(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: squatted, Namespace: systemNamespace}})
	})
	_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.0.0", contentOf(t, "a", "1")...))
	want := fmt.Sprintf("storing chunk %q of release record %q: another client created a Secret of this name: save its data, then delete it",
		squatted, "sh.helm.release.v1.in-the-way.v1")
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("err = %v\nwant it to have %s", err, want)
	}
	f.requests.setStop(nil)
	f.observe(t)
	squatter := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: squatted, Namespace: systemNamespace}}
	if err := admin.Delete(t.Context(), squatter); err != nil {
		t.Errorf("the Secret in the way: %v", err)
	}
	f.apply(t, "1.0.0", contentOf(t, "a", "1")...)
}

// decodeAny reads an object in the encoding that a client has chosen.
func decodeAny(from io.Reader, into runtime.Object) error {
	data, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	_, _, err = clientgoscheme.Codecs.UniversalDeserializer().Decode(data, nil, into)
	return err
}

// waitFor waits for controllers of the cluster too. That of quotas counts nothing while it
// waits for its caches, as it does when definitions come and go.
func waitFor(t *testing.T, check func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 6*patience, true, check); err != nil {
		t.Fatal(err)
	}
}
