package mirrorset

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const patience = 30 * time.Second

// world is a follower of a fake API server, which does not select by fields: definitions of
// other names are not put there.
type world struct {
	client   *fake.FakeDynamicClient
	follower *Follower
	events   *record.FakeRecorder
	elected  chan struct{}
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{
		client: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
			definitions:                            "CustomResourceDefinitionList",
			group.WithResource(resources[Digests]): "ImageDigestMirrorSetList",
			group.WithResource(resources[Tags]):    "ImageTagMirrorSetList",
		}, objects...),
		events: record.NewFakeRecorder(100), elected: make(chan struct{}),
	}
	w.follower = newFollower(w.client, w.events, w.elected)
	return w
}

// start has the two kinds followed, each with the definition of its own.
func (w *world) start(t *testing.T) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.follower.Start(ctx)
	}()
	t.Cleanup(func() {
		end()
		<-ended
	})
}

func crd(kind Kind, served bool) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": resources[kind] + "." + group.Group},
		"spec":     map[string]any{"versions": []any{map[string]any{"name": "v1", "served": served}}},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}},
	}}
}

func object(name, source string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group.String(), "kind": string(Digests), "metadata": map[string]any{"name": name, "uid": "uid-" + name},
		"spec": map[string]any{"imageDigestMirrors": []any{map[string]any{"source": source, "mirrors": []any{"m.test"}}}},
	}}
}

func (w *world) await(t *testing.T, want ...string) {
	t.Helper()
	testkit.Eventually(t, patience, "the sets", func(ctx context.Context) error {
		sets, err := w.follower.Sets(ctx)
		if err != nil {
			return err
		}
		var names []string
		for _, set := range sets {
			names = append(names, set.Name)
		}
		if strings.Join(names, " ") != strings.Join(want, " ") {
			return errors.New("they are " + strings.Join(names, " "))
		}
		return nil
	})
}

// watching waits until so many watches of a resource have begun: the fake API server tells
// nothing of what was before.
func (w *world) watching(t *testing.T, resource string, count int) {
	t.Helper()
	testkit.Eventually(t, patience, "watches", func(context.Context) error {
		begun := 0
		for _, action := range w.client.Actions() {
			if action.Matches("watch", resource) {
				begun++
			}
		}
		if begun < count {
			return errors.New("they have not begun")
		}
		return nil
	})
}

// onlyOwn has the fake API server select the definition of one name, as a real one does.
func (w *world) onlyOwn() {
	w.client.PrependReactor("list", definitions.Resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		list, _ := action.(clienttesting.ListAction)
		name, _ := list.GetListRestrictions().Fields.RequiresExactMatch(metav1.ObjectNameField)
		found, err := w.client.Tracker().Get(definitions, "", name)
		all := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinitionList"}}
		if item, ok := found.(*unstructured.Unstructured); ok && err == nil {
			all.Items = append(all.Items, *item)
		}
		return true, all, nil
	})
}

// Where the kinds are not served, that is known at once, and no set is asked for.
func TestKindsThatAreNotServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.onlyOwn()
	w.start(t)
	w.await(t)
	for _, action := range w.client.Actions() {
		if action.GetResource().Resource != definitions.Resource {
			t.Errorf("%s %s was asked for", action.GetVerb(), action.GetResource().Resource)
		}
	}
}

// Sets are known with the first answer, and followed from then on.
func TestSetsAreFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crd(Digests, true), object("a", "quay.io"))
	w.onlyOwn()
	w.start(t)
	w.await(t, "a")
	w.watching(t, resources[Digests], 1)
	sets := w.client.Resource(group.WithResource(resources[Digests]))
	if _, err := sets.Create(t.Context(), object("b", "quay.io"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(t, "a", "b")
	if err := sets.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(t, "b")
}

// A kind that comes later is found, and one that goes takes its sets with it.
func TestKindsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, object("a", "quay.io"))
	w.onlyOwn()
	w.start(t)
	w.await(t)
	w.watching(t, definitions.Resource, len(resources))
	kinds := w.client.Resource(definitions)
	if _, err := kinds.Create(t.Context(), crd(Digests, true), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(t, "a")
	if _, err := kinds.Update(t.Context(), crd(Digests, false), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(t)
}

// A pull waits until the sets are known, and no longer than it may take.
func TestAPullWaitsForTheSets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := w.follower.Sets(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Without rights, images are pulled as files say.
func TestSetsThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crd(Digests, true), object("a", "quay.io"))
	w.onlyOwn()
	w.client.PrependReactor("list", resources[Digests], func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no"))
	})
	w.start(t)
	w.await(t)
}

// What is not used of a set is an event of the replica that leads, once.
func TestProblemsAreEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crd(Digests, true), object("a", "https://x"), object("b", "quay.io"))
	w.onlyOwn()
	w.start(t)
	w.await(t, "a", "b")
	w.watching(t, resources[Digests], 1)
	select {
	case event := <-w.events.Events:
		t.Errorf("a replica that does not lead tells %q", event)
	default:
	}
	close(w.elected)
	want := `Warning MirrorsNotUsed not used for images of extensions: imageDigestMirrors[0]: source "https://x": it is neither a host nor a repository of one`
	if event := <-w.events.Events; event != want {
		t.Errorf("event is %q, want %q", event, want)
	}
	sets := w.client.Resource(group.WithResource(resources[Digests]))
	if _, err := sets.Create(t.Context(), object("c", "quay.io/Upper"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if event := <-w.events.Events; !strings.Contains(event, `source "quay.io/Upper"`) {
		t.Errorf("event is %q: what was told is told again", event)
	}
}
