package policykeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/policykeeper"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
)

const system = "system"

// world is a Keeper that runs as a manager would have it run.
type world struct {
	t       *testing.T
	secrets *fake.Clientset
	client  client.Client
	keeper  *policykeeper.Keeper
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	changed atomic.Int32
	writes  atomic.Int32
}

func startWorld(t *testing.T, leads bool, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := policyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, secrets: fake.NewClientset()}
	w.client = interceptor.NewClient(
		ctrlfake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&policyv1alpha1.ImagePolicy{}).Build(),
		interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			w.writes.Add(1)
			return c.SubResource(name).Patch(ctx, object, patch, options...)
		}})
	var err error
	w.keeper, err = policykeeper.New(policykeeper.Config{API: w.secrets, Client: w.client, Namespace: system, Changed: func(context.Context) { w.changed.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	elected := make(chan struct{})
	if leads {
		close(elected)
	}
	w.keeper.LeadsWhen(elected)
	w.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	var worker sync.WaitGroup
	t.Cleanup(func() {
		w.queue.ShutDown()
		worker.Wait()
	})
	if err := w.keeper.Secrets().Start(t.Context(), w.queue); err != nil {
		t.Fatal(err)
	}
	worker.Go(func() {
		for {
			request, shutdown := w.queue.Get()
			if shutdown {
				return
			}
			if _, err := w.keeper.Reconcile(t.Context(), request); err != nil {
				t.Error(err)
			}
			w.queue.Done(request)
		}
	})
	return w
}

// await waits until what returns nil, and tells what it said last.
func (w *world) await(what func() error) {
	w.t.Helper()
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err = what(); err == nil {
			return
		}
	}
	w.t.Fatal(err)
}

func (w *world) awaitReady(name string, status metav1.ConditionStatus, text string) {
	w.t.Helper()
	w.await(func() error {
		policy := &policyv1alpha1.ImagePolicy{}
		if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, policy); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(policy.Status.Conditions, policyv1alpha1.TypeReady)
		if ready == nil || ready.Status != status || !strings.Contains(ready.Message, text) {
			return fmt.Errorf("Ready of %s is %+v, want %s: %s", name, ready, status, text)
		}
		return nil
	})
}

func (w *world) create(name string, key []byte) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}, Data: map[string][]byte{"cosign.pub": key}}
	if _, err := w.secrets.CoreV1().Secrets(system).Create(w.t.Context(), secret, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func policy(name, secret string) *policyv1alpha1.ImagePolicy {
	return &policyv1alpha1.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1alpha1.ImagePolicySpec{
		Match:       []policyv1alpha1.ImageMatch{{Prefix: "registry.test"}},
		Authorities: []policyv1alpha1.Authority{{Name: "key", Key: &policyv1alpha1.KeyAuthority{SecretRef: policyv1alpha1.SecretReference{Name: secret}}}},
	}}
}

func newKey(t *testing.T) []byte {
	t.Helper()
	_, key, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestKeeper: policies follow the Secrets that they name, whoever comes first, and who judges by
// them is told of what decides otherwise, and of nothing else.
func TestKeeper(t *testing.T) {
	t.Parallel()
	w := startWorld(t, true, policy("p", "key"))
	w.awaitReady("p", metav1.ConditionFalse, `authority "key" cannot be used: there is no Secret "key" in namespace "`+system+`"`)
	if changed := w.changed.Load(); changed != 0 {
		t.Errorf("the first policies are told %d times, and nobody has asked for them", changed)
	}
	before := w.digest()
	w.create("key", newKey(t))
	w.awaitReady("p", metav1.ConditionTrue, "all authorities can be used")
	if after := w.digest(); after == before || w.changed.Load() != 1 {
		t.Errorf("a key that has come makes %s of %s, told %d times", after, before, w.changed.Load())
	}
	writes := w.writes.Load()
	if _, err := w.keeper.Reconcile(t.Context(), reconcile.Request{}); err != nil || w.writes.Load() != writes || w.changed.Load() != 1 {
		t.Errorf("a pass with nothing to do: %v, %d writes, told %d times", err, w.writes.Load()-writes, w.changed.Load())
	}
	if err := w.secrets.CoreV1().Secrets(system).Delete(t.Context(), "key", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitReady("p", metav1.ConditionFalse, "there is no Secret")
	if got := w.digest(); got != before || w.changed.Load() != 2 {
		t.Errorf("a key that is gone makes %s, want %s; told %d times", got, before, w.changed.Load())
	}
}

func (w *world) digest() string {
	w.t.Helper()
	set, err := w.keeper.Policies()
	if err != nil {
		w.t.Fatal(err)
	}
	return set.Digest()
}

// TestUnknown: who asks before anything is known is told when it is.
func TestUnknown(t *testing.T) {
	t.Parallel()
	keeper, err := policykeeper.New(policykeeper.Config{API: fake.NewClientset(), Client: startWorld(t, true).client, Namespace: system, Changed: func(context.Context) {}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Policies(); !errors.Is(err, policykeeper.ErrUnknown) {
		t.Errorf("err = %v", err)
	}
	told := 0
	keeper, err = policykeeper.New(policykeeper.Config{API: fake.NewClientset(), Client: startWorld(t, true).client, Namespace: system, Changed: func(context.Context) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = keeper.Policies()
	if _, err := keeper.Reconcile(t.Context(), reconcile.Request{}); err != nil || told != 1 {
		t.Errorf("told %d times, %v", told, err)
	}
	if _, err := policykeeper.New(policykeeper.Config{}); err == nil {
		t.Error("a Keeper can be made of nothing")
	}
}

// TestFollowersWriteNothing: a replica that does not lead judges and is silent.
func TestFollowersWriteNothing(t *testing.T) {
	t.Parallel()
	w := startWorld(t, false, policy("p", "key"))
	w.create("key", newKey(t))
	w.await(func() error {
		set, err := w.keeper.Policies()
		if err != nil {
			return err
		}
		if problems, known := set.Problems("p"); !known || len(problems) > 0 {
			return fmt.Errorf("problems %q, %t", problems, known)
		}
		return nil
	})
	if writes := w.writes.Load(); writes != 0 {
		t.Errorf("%d writes", writes)
	}
}

// TestManySecrets: no more are followed than there may be, and those of the others count as
// missing.
func TestManySecrets(t *testing.T) {
	t.Parallel()
	const most = 256
	var objects []client.Object
	for i := range most + 1 {
		objects = append(objects, policy(fmt.Sprintf("p%03d", i), fmt.Sprintf("key%03d", i)))
	}
	w := startWorld(t, true, objects...)
	w.awaitReady(fmt.Sprintf("p%03d", most), metav1.ConditionFalse, `the Secret "key256" is not read: ImagePolicies name more than 256 Secrets`)
	watched := 0
	for _, action := range w.secrets.Actions() {
		if action.GetVerb() == "watch" {
			watched++
		}
	}
	if watched > most {
		t.Errorf("%d Secrets are watched", watched)
	}
}

// TestManyProblems: the condition has as much of them as fits.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	many := policy("p", "x")
	many.Spec.Authorities = nil
	for i := range 16 {
		many.Spec.Authorities = append(many.Spec.Authorities, policyv1alpha1.Authority{
			Name: fmt.Sprintf("a%02d", i),
			Key:  &policyv1alpha1.KeyAuthority{SecretRef: policyv1alpha1.SecretReference{Name: strings.Repeat("x", 200)}},
		})
	}
	w := startWorld(t, true, many)
	w.awaitReady("p", metav1.ConditionFalse, `authority "a00" cannot be used`)
	found := &policyv1alpha1.ImagePolicy{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "p"}, found); err != nil {
		t.Fatal(err)
	}
	if got := found.Status.Conditions[0].Message; len(got) > 1000 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
