package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/apiservice"
)

// servedAPI is an extension with an API, and what a pod of it would do.
type servedAPI struct {
	testkit.Operator

	server *apiservice.Server
}

// publishAPI publishes an operator with an API of one version, and an upgrade with two.
func publishAPI(t *testing.T, name string) *servedAPI {
	t.Helper()
	all := operators(name, "1.0.0", "1.1.0")
	pushBundle(t, all[0], all[0].BundleWithAPIs("v1"))
	pushBundle(t, all[1], all[1].BundleWithAPIs("v1", "v2"))
	publishCatalog(t, name, testkit.Catalog(registryHost, all...))
	server, err := apiservice.Start(all[0].APIGroup())
	if err != nil {
		t.Fatal(err)
	}
	// Pods of this cluster say that they are ready without having a certificate.
	const soon = 20 * time.Millisecond
	runPod(t, all[0], server.Server, soon)
	return &servedAPI{Operator: all[0], server: server}
}

func (a *servedAPI) named(version string) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: version + "." + a.APIGroup()}}
}

// ask has the cluster ask the server.
func (a *servedAPI) ask(ctx context.Context, version string) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(a.APIGroup() + "/" + version)
	list.SetKind("PlantList")
	if err := theSuite.Admin.List(ctx, list); err != nil {
		return err
	}
	if len(list.Items) != 1 || list.Items[0].GetAnnotations()["asked-by"] == "" {
		return fmt.Errorf("the answer is %v", list.Items)
	}
	return nil
}

// followed are the events of one object.
type followed struct {
	mu     sync.Mutex
	events []apiwatch.Event
}

func follow(t *testing.T, resource schema.GroupVersionResource, namespace, name string) *followed {
	t.Helper()
	connected, err := dynamic.NewForConfig(theSuite.Cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	watched, err := connected.Resource(resource).Namespace(namespace).Watch(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watched.Stop)
	f := &followed{}
	go func() {
		for event := range watched.ResultChan() {
			f.mu.Lock()
			f.events = append(f.events, event)
			f.mu.Unlock()
		}
	}()
	return f
}

// ended is the resource version at which the object was deleted; empty if it was not.
func (f *followed) ended() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, event := range f.events {
		if live, ok := event.Object.(*unstructured.Unstructured); ok && event.Type == apiwatch.Deleted {
			return live.GetResourceVersion()
		}
	}
	return ""
}

// unavailable are the reasons for which the object, an API service, was not available, after
// it was for the first time.
func (f *followed) unavailable() (reasons []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := false
	for _, event := range f.events {
		live, _ := event.Object.(*unstructured.Unstructured)
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		for _, each := range conditions {
			condition, _ := each.(map[string]any)
			switch {
			case condition["type"] != "Available":
			case condition["status"] == "True":
				was = true
			case was:
				reasons = append(reasons, fmt.Sprint(event.Type, ": ", condition["reason"], ": ", condition["message"]))
			}
		}
	}
	return reasons
}

func resourceOf(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// TestAPIServices installs an operator with an API under the rights that are printed and no
// others, asks for what it serves while it is upgraded and its certificate is lost, and removes
// it: the API service is there when its Deployment is ready, stays, and goes first.
//
//nolint:paralleltest // an API that is not available concerns all tests
func TestAPIServices(t *testing.T) {
	const name = "served"
	a := publishAPI(t, name)
	makeNamespace(t, name)
	makeAccount(t, name)
	extendOnly(t, name, version("1.0.0"))
	// S6: what is missing is named, in kube-system too.
	conditionContains(t, name, ocv1.TypeProgressing, `Namespace:"kube-system" APIGroups:[rbac.authorization.k8s.io] Resources:[roles] ResourceNames:[extension-apiserver-authentication-reader] Verbs:[bind]`)
	grantPrinted := func() {
		t.Helper()
		eventually(t, "rights", func(ctx context.Context) error {
			rules, err := theSuite.CommandOutput(ctx, "bundle", "rbac", "clusterextension/"+name)
			if err == nil {
				_, err = theSuite.KubectlOutput(ctx, rules, "apply", "-f", "-")
			}
			return err
		})
	}
	registered := follow(t, resourceOf("apiregistration.k8s.io", "v1", "apiservices"), "", a.named("v1").Name)
	deployed := follow(t, resourceOf("apps", "v1", "deployments"), name, name)
	served := follow(t, resourceOf("", "v1", "services"), name, a.WebhookService())
	grantPrinted()
	installed(t, name, "1.0.0")
	conditionContains(t, name, ocv1.TypeReady, "True ")
	// The part of the API server that passes requests on hears of it a moment later.
	eventually(t, "the first answer", func(ctx context.Context) error { return a.ask(ctx, "v1") })
	first := a.named("v1")
	exists(t, first, "", first.Name)

	calls := startAsking(t, a)
	calls.goOn(t)
	serial := a.server.Serial()
	if err := theSuite.Admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: a.WebhookSecret()}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another certificate", func(context.Context) error {
		if a.server.Serial() == serial {
			return errors.New("the one that was lost is still served")
		}
		return nil
	})
	calls.goOn(t)
	update(t, name, version("1.1.0"))
	conditionContains(t, name, ocv1.TypeProgressing, a.named("v2").Name)
	grantPrinted()
	installed(t, name, "1.1.0")
	eventually(t, "the second version", func(ctx context.Context) error { return a.ask(ctx, "v2") })
	calls.goOn(t)
	conditionContains(t, name, ocv1.TypeReady, "True ")
	calls.end()
	last := a.named("v1")
	exists(t, last, "", last.Name)
	if last.UID != first.UID {
		t.Error("an upgrade has registered the API anew")
	}

	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	nothingLeft(t, name)
	gone := registered.ended()
	for what, other := range map[string]*followed{"the Deployment": deployed, "the Service": served} {
		eventually(t, "the end of "+what, func(context.Context) error {
			if other.ended() == "" {
				return errors.New("not seen yet")
			}
			return nil
		})
		if order, err := resourceversion.CompareResourceVersion(gone, other.ended()); err != nil || order >= 0 {
			t.Errorf("%s has gone at %s, the API service at %s (%v)", what, other.ended(), gone, err)
		}
	}
	if reasons := registered.unavailable(); len(reasons) > 0 {
		t.Errorf("the API was not available:\n%s", strings.Join(reasons, "\n"))
	}
	// S8: nothing is in the way of whoever deletes a namespace.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := theSuite.Admin.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the namespace", func(ctx context.Context) error {
		err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		if err == nil {
			return fmt.Errorf("it is still there: %+v", namespace.Status.Conditions)
		}
		return client.IgnoreNotFound(err)
	})
}

// startAsking has the cluster ask the server of an API again and again.
func startAsking(t *testing.T, a *servedAPI) *calling {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &calling{stop: cancel}
	for worker := range 2 {
		c.all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := a.ask(context.WithoutCancel(ctx), "v1"); err != nil {
					t.Errorf("request %d of worker %d: %v", i, worker, err)
				}
				c.done.Add(1)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	t.Cleanup(c.end)
	return c
}

// TestUnavailableAPIService (S7) has the server of an API fail: the extension says so in the
// words of the cluster, others are installed and upgraded meanwhile, with kinds of their own,
// and it is over when the server answers again.
//
//nolint:paralleltest // an API that is not available concerns all tests
func TestUnavailableAPIService(t *testing.T) {
	const name, other = "unserved", "unserved-other"
	a := publishAPI(t, name)
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	conditionContains(t, name, ocv1.TypeReady, "True ")
	a.server.Fail(true)
	conditionContains(t, name, ocv1.TypeReady, `APIService "`+a.named("v1").Name+`": not available (FailedDiscoveryCheck): `)

	publish(t, operators(other, "1.0.0", "1.1.0")...)
	extend(t, other, version("1.0.0"))
	installed(t, other, "1.0.0")
	createThing(t, thingOf(other, other, "first"))
	update(t, other, version("1.1.0"))
	installed(t, other, "1.1.0")
	if err := a.ask(t.Context(), "v1"); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("a request to what does not answer: %v", err)
	}

	a.server.Fail(false)
	conditionContains(t, name, ocv1.TypeReady, "True ")
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: other}})
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	nothingLeft(t, name)
}
