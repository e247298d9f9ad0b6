package patches_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
)

const extensionName = "patches"

// extension writes objects as the applier does, and notes what it sends for that.
type extension struct {
	owner  object.Owner
	client dynamic.Interface

	mu   sync.Mutex
	sent []string
}

// newExtension gives one with a namespace of its own.
func newExtension(t *testing.T) *extension {
	t.Helper()
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": extensionName + "-"},
	}}
	namespace, err := admin.Resource(namespaces).Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return extensionIn(t, namespace.GetName())
}

func extensionIn(t *testing.T, namespace string) *extension {
	t.Helper()
	e := &extension{owner: object.Owner{Name: extensionName, UID: ownerUID, Namespace: namespace, ServiceAccount: "installer", Package: "p"}}
	config := quick(theCluster.RESTConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noting{extension: e, next: next} })
	var err error
	if e.client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return e
}

// noting notes requests that may change something.
type noting struct {
	extension *extension
	next      http.RoundTripper
}

func (n noting) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.URL.Query().Get("dryRun") == "" {
		n.extension.mu.Lock()
		n.extension.sent = append(n.extension.sent, fmt.Sprintf("%s %s %s", request.Method, request.URL.Path, bodyOf(request)))
		n.extension.mu.Unlock()
	}
	return n.next.RoundTrip(request)
}

// take gives what was sent since the last time.
func (e *extension) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	sent := e.sent
	e.sent = nil
	return sent
}

func (e *extension) planner() *plan.Planner {
	return plan.NewPlanner(e.client, mapper, e.owner, func(context.Context, object.Owner) error { return nil })
}

// apply makes the objects what a revision wants, after one that wanted others.
func (e *extension) apply(ctx context.Context, wanted, before []*unstructured.Unstructured) error {
	planner := e.planner()
	made, err := planner.Plan(e.own(wanted), e.own(before), nil)
	if err != nil {
		return err
	}
	if err := planner.Inspect(ctx, made); err != nil {
		return err
	}
	executor := planner.Executor()
	if err := executor.Execute(ctx, made); err != nil {
		return err
	}
	return executor.Register(ctx, made, plan.Registration{Servers: withoutServers})
}

// withoutServers returns no servers, so that webhooks are written at once: no pods run here.
func withoutServers(*unstructured.Unstructured) []object.Key { return nil }

// repair reads the objects, and puts back what is not as wanted. It gives what it has sent
// for that.
func (e *extension) repair(ctx context.Context, wanted ...*unstructured.Unstructured) (sent []string, err error) {
	e.take()
	planner := e.planner()
	made, err := planner.PlanRepair(ctx, e.own(wanted), nil)
	if err != nil {
		return nil, err
	}
	err = planner.Executor().Restore(ctx, made)
	return e.take(), err
}

// own gives the objects as the release has them.
func (e *extension) own(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	owned := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		owned[i] = e.owner.Own(object)
	}
	return owned
}

// item is an object as it is written.
func (e *extension) item(manifest *unstructured.Unstructured) (object.Item, error) {
	items, err := object.Items(mapper, e.owner, e.own([]*unstructured.Unstructured{manifest}))
	if err != nil {
		return object.Item{}, err
	}
	e.owner.Stamp(items[0].Object)
	return items[0], nil
}

func bodyOf(request *http.Request) []byte {
	if request.GetBody == nil {
		return nil
	}
	body, err := request.GetBody()
	if err != nil {
		return nil
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	if err != nil {
		return nil
	}
	return bytes.TrimSpace(text)
}
