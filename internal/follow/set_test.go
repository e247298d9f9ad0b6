package follow_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterextensions/operator-controller/internal/follow"
)

func secret(name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Data:       map[string][]byte{"key": []byte(value)},
	}
}

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }

// world is a Set over a fake API server, and the queue that it fills.
type world struct {
	t      *testing.T
	client *fake.Clientset
	set    *follow.Set[*corev1.Secret]
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func start(t *testing.T, client *fake.Clientset) *world {
	t.Helper()
	w := &world{
		t: t, client: client,
		set:   follow.Secrets(client),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
	}
	t.Cleanup(w.queue.ShutDown)
	if err := w.set.Start(t.Context(), w.queue); err != nil {
		t.Fatal(err)
	}
	return w
}

// await takes requests until condition holds: a change that does not ask for a
// pass is not noticed here either.
func (w *world) await(condition func() bool) {
	w.t.Helper()
	done := make(chan bool)
	go func() {
		defer close(done)
		for !condition() {
			request, shutdown := w.queue.Get()
			if shutdown {
				return
			}
			w.queue.Done(request)
		}
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		w.t.Fatal("it did not happen")
	}
}

func (w *world) has(name, value string) func() bool {
	return func() bool {
		found, known := w.set.Lookup(key(name))
		return known && found != nil && string(found.Data["key"]) == value
	}
}

func (w *world) lacks(name string) func() bool {
	return func() bool {
		found, known := w.set.Lookup(key(name))
		return known && found == nil
	}
}

func TestAnObjectIsFollowed(t *testing.T) {
	t.Parallel()
	w := start(t, fake.NewClientset())
	if _, known := w.set.Lookup(key("a")); known {
		t.Error("an object that nobody asked for is known")
	}
	secrets := w.client.CoreV1().Secrets("ns")
	w.set.Follow(key("a"))
	w.await(w.lacks("a"))
	if _, err := secrets.Create(t.Context(), secret("a", "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(w.has("a", "1"))
	if _, err := secrets.Update(t.Context(), secret("a", "2"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(w.has("a", "2"))
	if err := secrets.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(w.lacks("a"))
}

func TestWhatIsFollowedCanChange(t *testing.T) {
	t.Parallel()
	w := start(t, fake.NewClientset(secret("a", "1"), secret("b", "2")))
	w.set.Follow(key("a"))
	w.await(w.has("a", "1"))
	w.set.Follow(key("b"))
	w.await(w.has("b", "2"))
	if _, known := w.set.Lookup(key("a")); known {
		t.Error("an object that is no longer followed is known")
	}
}

// The one thing that this package is for: no other object is ever asked for.
func TestRequestsAreForOneName(t *testing.T) {
	t.Parallel()
	w := start(t, fake.NewClientset(secret("a", "1"), secret("b", "2")))
	w.set.Follow(key("a"), key("b"))
	w.await(func() bool { return w.has("a", "1")() && w.has("b", "2")() })
	for _, action := range w.client.Actions() {
		var selector string
		switch action := action.(type) {
		case clienttesting.ListActionImpl:
			selector = action.ListOptions.FieldSelector
		case clienttesting.WatchActionImpl:
			selector = action.ListOptions.FieldSelector
		default:
			t.Errorf("unexpected request %v", action)
		}
		if (selector != "metadata.name=a" && selector != "metadata.name=b") || action.GetNamespace() != "ns" {
			t.Errorf("%s in %q with selector %q", action.GetVerb(), action.GetNamespace(), selector)
		}
	}
}
