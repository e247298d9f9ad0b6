package applier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
	"github.com/clusterextensions/operator-controller/test/apiservice"
)

// apiFixture is an extension with an API that its Deployment serves. Nobody runs its pods but
// [apiFixture.runPods].
type apiFixture struct {
	*fixture

	operator testkit.Operator
	server   *apiservice.Server
}

func newAPIFixture(t *testing.T, name string) *apiFixture {
	t.Helper()
	f := &apiFixture{fixture: newFixture(t, name), operator: testkit.Operator{Package: name, Version: "1.0.0"}}
	var err error
	if f.server, err = apiservice.Start(f.operator.APIGroup()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.server.Close)
	service := types.NamespacedName{Namespace: f.owner.Namespace, Name: f.operator.WebhookService()}
	services.Lead(service, f.server.Address())
	create(t, apiservice.Endpoints(service, fmt.Sprint(testkit.APIPort), testkit.APIPort))
	// The garbage collector is at work sooner or later, and others want to discover.
	t.Cleanup(func() {
		for _, version := range []string{"v1", "v2"} {
			if err := client.IgnoreNotFound(admin.Delete(context.Background(), f.named(version))); err != nil {
				t.Error(err)
			}
		}
	})
	return f
}

func newRunningAPIFixture(t *testing.T, name string) *apiFixture {
	t.Helper()
	f := newAPIFixture(t, name)
	f.runPods(t)
	return f
}

// runPods says of all pods in the namespace, from now on, that they are ready.
func (f *fixture) runPods(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			pods := &corev1.PodList{}
			if err := admin.List(ctx, pods, client.InNamespace(f.owner.Namespace)); err != nil {
				continue // the test is over, or it fails for want of them
			}
			for i := range pods.Items {
				pod := &pods.Items[i]
				if len(pod.Status.Conditions) > 0 && pod.Status.Phase == corev1.PodRunning {
					continue
				}
				pod.Status.Phase = corev1.PodRunning
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
				_ = admin.Status().Update(ctx, pod) // once more if it has changed
			}
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func (f *apiFixture) named(version string) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: version + "." + f.operator.APIGroup()}}
}

// content is the bundle with these versions of its API, and so many replicas.
func (f *apiFixture) content(t *testing.T, replicas int64, versions ...string) []*unstructured.Unstructured {
	t.Helper()
	files := f.operator.Bundle()
	if len(versions) > 0 {
		files = f.operator.BundleWithAPIs(versions...)
	}
	parsed, err := bundle.Parse(files)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendering.Objects(bundle.Render(parsed, bundle.Options{InstallNamespace: f.owner.Namespace, Certificates: bundle.SelfManaged}))
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		if obj.GetKind() == "Deployment" {
			if err := unstructured.SetNestedField(obj.Object, replicas, "spec", "replicas"); err != nil {
				t.Fatal(err)
			}
		}
	}
	return objects
}

// registered is the API service as it is; nil if there is none.
func (f *apiFixture) registered(t *testing.T, version string) *apiregistrationv1.APIService {
	t.Helper()
	found := f.named(version)
	err := admin.Get(t.Context(), client.ObjectKeyFromObject(found), found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// untilRepaired repairs whenever there is a reason to, until something holds. It gives what
// was put back.
func (f *apiFixture) untilRepaired(t *testing.T, what string, holds func() bool) (repaired []string) {
	t.Helper()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-f.changed:
			result := f.repair(t)
			for _, key := range result.Repaired() {
				repaired = append(repaired, key.Name)
			}
		case <-deadline:
			t.Fatalf("%s: not in time, the workloads are %+v", what, f.workloads(t))
		}
	}
	return repaired
}

func (f *apiFixture) secretData(t *testing.T) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: f.operator.WebhookSecret()}, secret); err != nil {
		t.Fatal(err)
	}
	if err := f.server.Load(secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

func (f *apiFixture) availability(t *testing.T) metav1.ConditionStatus {
	t.Helper()
	for _, workload := range f.workloads(t) {
		if workload.Key.GroupKind == object.APIServiceKind {
			return workload.Available
		}
	}
	return ""
}

// writesOf are the requests that write API services.
func writesOf(requests []string) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(line string) bool {
		return !strings.Contains(line, "/apiservices") || strings.Contains(line, " GET ") || strings.Contains(line, " LIST ") || strings.Contains(line, " TRY ")
	})
}

// TestAPIServicesComeLast: an API is registered when what serves it is ready, and not before;
// it trusts the server from the first moment, and is put back when somebody deletes it.
func TestAPIServicesComeLast(t *testing.T) {
	t.Parallel()
	f := newAPIFixture(t, "api-last")
	f.apply(t, "1.0.0", f.content(t, 0, "v1")...)
	if found := f.registered(t, "v1"); found != nil {
		t.Fatal("an API is registered that nobody serves")
	}
	if data := f.secretData(t); len(data["tls.crt"]) == 0 {
		t.Error("there is no certificate to serve with")
	}
	f.settle(t) // a Deployment of no pods is available
	if found := f.registered(t, "v1"); found != nil {
		t.Fatal("repairs register an API that nobody serves")
	}
	f.apply(t, "1.0.1", f.content(t, 1, "v1")...)
	f.settle(t)
	if found := f.registered(t, "v1"); found != nil {
		t.Fatal("an API is registered whose pods are not ready")
	}
	deferred := f.workloads(t)[0]
	if deferred.Available != metav1.ConditionFalse || !deferred.RollingOut || !strings.Contains(deferred.Reason, "api-last") {
		t.Errorf("of the API it is told %+v", deferred)
	}

	f.requests.take()
	f.runPods(t)
	f.apply(t, "1.1.0", f.content(t, 1, "v1")...)
	repaired := f.untilRepaired(t, "registered", func() bool { return f.registered(t, "v1") != nil })
	if len(repaired) > 0 {
		t.Errorf("%q are said to be repaired, and are new", repaired)
	}
	if writes := writesOf(f.requests.take()); len(writes) != 1 {
		t.Errorf("it took %v to register it", writes)
	}
	found := f.registered(t, "v1")
	if len(found.Spec.CABundle) == 0 || !bytes.Equal(found.Spec.CABundle, f.secretData(t)["ca.crt"]) {
		t.Errorf("it trusts %q", found.Spec.CABundle)
	}
	f.untilRepaired(t, "available", func() bool { return f.availability(t) == metav1.ConditionTrue })
	if err := f.ask(t.Context(), "v1"); err != nil {
		t.Errorf("a request: %v", err)
	}

	f.settle(t)
	if requests := f.requests.take(); len(requests) > 0 {
		t.Errorf("at rest it asks for %v", requests)
	}
	first := f.registered(t, "v1").UID
	f.apply(t, "1.2.0", f.content(t, 1, "v1", "v2")...)
	f.untilRepaired(t, "another version", func() bool { return f.registered(t, "v2") != nil })
	if f.registered(t, "v1").UID != first {
		t.Error("an upgrade has registered it anew")
	}

	if err := admin.Delete(t.Context(), f.named("v1")); err != nil {
		t.Fatal(err)
	}
	if repaired := f.untilRepaired(t, "put back", func() bool { return f.registered(t, "v1") != nil }); len(repaired) != 1 {
		t.Errorf("%q are said to be repaired", repaired)
	}
	f.settle(t)

	f.restart(t)
	f.repair(t)
	f.untilRepaired(t, "available after a restart", func() bool { return f.availability(t) == metav1.ConditionTrue })
}

// ask lists what the server has, by way of the API server of the cluster, until that knows
// of it.
func (f *apiFixture) ask(ctx context.Context, version string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = f.askOnce(ctx, version)
		return last == nil, nil
	})
	return errors.Join(err, last)
}

func (f *apiFixture) askOnce(ctx context.Context, version string) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(f.operator.APIGroup() + "/" + version)
	list.SetKind("PlantList")
	if err := admin.List(ctx, list); err != nil {
		return err
	}
	if len(list.Items) != 1 || list.Items[0].GetAnnotations()["asked-by"] != "admin" {
		return fmt.Errorf("the answer is %v", list.Items)
	}
	return nil
}

// TestDroppedAPIServicesGoFirst: what served them goes after them.
func TestDroppedAPIServicesGoFirst(t *testing.T) {
	t.Parallel()
	f := newRunningAPIFixture(t, "api-dropped")
	f.apply(t, "1.0.0", f.content(t, 1, "v1")...)
	f.untilRepaired(t, "registered", func() bool { return f.registered(t, "v1") != nil })
	f.secretData(t)
	f.untilRepaired(t, "available", func() bool { return f.availability(t) == metav1.ConditionTrue })
	f.settle(t)
	f.apply(t, "1.1.0", configMap("left", "over"))
	var deleted []string
	for _, request := range f.requests.take() {
		if strings.Contains(request, " DELETE ") {
			deleted = append(deleted, request)
		}
	}
	if len(deleted) < 5 || !strings.Contains(deleted[0], "/apiservices/") {
		t.Errorf("deleted were %v", deleted)
	}
	if workloads := f.workloads(t); len(workloads) > 0 {
		t.Errorf("the workloads are %+v", workloads)
	}
}

// TestUnregisterAPIs: they are gone when it says so, and nothing else is.
func TestUnregisterAPIs(t *testing.T) {
	t.Parallel()
	f := newRunningAPIFixture(t, "api-goes")
	f.apply(t, "1.0.0", append(f.content(t, 1, "v1", "v2"), configMap("api-goes", "v"))...)
	f.untilRepaired(t, "registered", func() bool { return f.registered(t, "v1") != nil && f.registered(t, "v2") != nil })
	// The API server writes its status.
	finalizer := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": ["api-goes.test/f"]}}`))
	held := f.registered(t, "v2")
	if err := admin.Patch(t.Context(), held, finalizer); err != nil {
		t.Fatal(err)
	}
	f.restart(t) // what it knows is from the record then
	f.requests.setStop(func(req *http.Request) error {
		if req.Method == http.MethodDelete && strings.HasSuffix(req.URL.Path, "/"+f.named("v1").Name) {
			return errDied
		}
		return nil
	})
	if _, err := f.applier.UnregisterAPIs(t.Context(), f.owner); !errors.Is(err, errDied) || !strings.Contains(err.Error(), f.named("v1").Name) {
		t.Errorf("err = %v", err)
	}
	if f.registered(t, "v2").DeletionTimestamp == nil {
		t.Error("one that cannot be deleted is in the way of another")
	}
	f.requests.setStop(nil)
	left, err := f.applier.UnregisterAPIs(t.Context(), f.owner)
	want := []string{`APIService "` + held.Name + `" with finalizers [api-goes.test/f]`}
	if err != nil || !slices.Equal(left, want) || f.registered(t, "v1") != nil {
		t.Fatalf("%q are left (%v), want %q", left, err, want)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
	if err := admin.Patch(t.Context(), held, patch); err != nil {
		t.Fatal(err)
	}
	if left, err := f.applier.UnregisterAPIs(t.Context(), f.owner); err != nil || len(left) > 0 {
		t.Errorf("%q are left (%v)", left, err)
	}
	if f.live(t, "api-goes") == nil {
		t.Error("something else was deleted")
	}

	g := newFixture(t, "api-none")
	g.apply(t, "1.0.0", configMap("c", "v"))
	g.requests.take()
	if left, err := g.applier.UnregisterAPIs(t.Context(), g.owner); err != nil || len(left) > 0 {
		t.Errorf("%q are left (%v)", left, err)
	}
	if requests := g.requests.take(); len(requests) > 0 {
		t.Errorf("without any it asks for %v", requests)
	}
}

// TestAPIServicesOfTheCluster: an API that the API server serves itself, such as that of a
// definition, is not taken over.
func TestAPIServicesOfTheCluster(t *testing.T) {
	t.Parallel()
	f := newRunningAPIFixture(t, "api-local")
	create(t, definitionOf(f.operator.APIGroup(), "plants"))
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return f.registered(t, "v1") != nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.applier.Apply(t.Context(), f.owner, f.desired("1.0.0", f.content(t, 1, "v1")...))
	conflict, isConflict := errors.AsType[*object.ConflictError](err)
	if !isConflict || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Object.Name != f.named("v1").Name {
		t.Fatalf("err = %v", err)
	}
	const want = `exists already and belongs to the API server itself: `
	if !strings.Contains(conflict.Summary(), want) {
		t.Errorf("the summary is %q, want %q in it", conflict.Summary(), want)
	}
	if found := f.live(t, "api-local"); found != nil {
		t.Error("something was written")
	}
}

// TestAPIServicesMove: an API is led to another Service when that serves it, and trusts it from
// then on. Until then it stays where it is.
func TestAPIServicesMove(t *testing.T) {
	t.Parallel()
	f := newAPIFixture(t, "api-move")
	stop := f.runPods(t)
	f.apply(t, "1.0.0", f.content(t, 1, "v1")...)
	f.untilRepaired(t, "registered", func() bool { return f.registered(t, "v1") != nil })
	f.secretData(t)
	f.untilRepaired(t, "available", func() bool { return f.availability(t) == metav1.ConditionTrue })
	first := f.registered(t, "v1")
	stop()

	moved := f.renamed(t, f.content(t, 1, "v1"), "moved")
	f.apply(t, "2.0.0", moved...)
	f.settle(t)
	stays := func(when string) {
		t.Helper()
		found := f.registered(t, "v1")
		if found.Spec.Service.Name != first.Spec.Service.Name || !bytes.Equal(found.Spec.CABundle, first.Spec.CABundle) {
			t.Errorf("%s: it leads to %v", when, found.Spec.Service)
		}
		workload := f.workloads(t)[0]
		if !workload.RollingOut || !strings.Contains(workload.Reason, `is ready: Deployment "moved"`) {
			t.Errorf("%s: of the API it is told %+v", when, workload)
		}
	}
	stays("before the new pods are ready")
	f.repair(t)
	if requests := f.requests.take(); len(requests) > 0 {
		t.Errorf("while it waits it asks for %v", requests)
	}
	f.apply(t, "2.0.1", append(moved, configMap("more", "v"))...)
	stays("after an upgrade that changes nothing of it")
	f.restart(t)
	f.repair(t)
	f.settle(t)
	stays("after a restart")

	f.runPods(t)
	repaired := f.untilRepaired(t, "moved", func() bool { return f.registered(t, "v1").Spec.Service.Name == "moved-service" })
	if len(repaired) > 0 {
		t.Errorf("%q are said to be repaired", repaired)
	}
	secret := &corev1.Secret{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: "moved-service-cert"}, secret); err != nil {
		t.Fatal(err)
	}
	last := f.registered(t, "v1")
	if last.UID != first.UID || len(last.Spec.CABundle) == 0 || !bytes.Equal(last.Spec.CABundle, secret.Data["ca.crt"]) {
		t.Errorf("it trusts %s", last.Spec.CABundle)
	}
	f.settle(t)
	f.repair(t)
	if requests := f.requests.take(); len(requests) > 0 {
		t.Errorf("at rest it asks for %v", requests)
	}
}

// renamed gives the content with another name of the Deployment, and of the Service and the
// Secret that are named after it.
func (f *apiFixture) renamed(t *testing.T, content []*unstructured.Unstructured, name string) []*unstructured.Unstructured {
	t.Helper()
	renamed := make([]*unstructured.Unstructured, 0, len(content))
	for _, obj := range content {
		text, err := obj.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		made := &unstructured.Unstructured{}
		if err := made.UnmarshalJSON(bytes.ReplaceAll(text, []byte(f.operator.WebhookService()), []byte(name+"-service"))); err != nil {
			t.Fatal(err)
		}
		if made.GetKind() == "Deployment" {
			made.SetName(name)
		}
		renamed = append(renamed, made)
	}
	return renamed
}

// TestAPIServicesOfAServiceOfOthers: one whose Service is not in the release is not registered
// before that is there, whenever that is.
func TestAPIServicesOfAServiceOfOthers(t *testing.T) {
	t.Parallel()
	f := newAPIFixture(t, "api-outside")
	service := rawAPIService("v1", f.operator.APIGroup(), f.owner.Namespace, "theirs")
	f.apply(t, "1.0.0", service)
	f.settle(t)
	result := f.repair(t)
	if f.registered(t, "v1") != nil || result.RecheckAfter == 0 || result.RecheckAfter > 5*time.Minute {
		t.Errorf("registered is %v, it is looked at again after %s", f.registered(t, "v1"), result.RecheckAfter)
	}
	if workloads := f.workloads(t); len(workloads) != 1 || !strings.HasSuffix(workloads[0].Reason, `is ready: Service "theirs" in namespace "`+f.owner.Namespace+`"`) {
		t.Errorf("the workloads are %+v", workloads)
	}
	create(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: "theirs"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	})
	if result := f.repair(t); f.registered(t, "v1") == nil || len(result.Repaired()) > 0 {
		t.Errorf("registered is %v, repaired %v", f.registered(t, "v1"), result.Repaired())
	}

	// One that the API server is to serve itself, and then a Service.
	local, led := service.DeepCopy(), service.DeepCopy()
	unstructured.RemoveNestedField(local.Object, "spec", "service")
	unstructured.RemoveNestedField(local.Object, "spec", "insecureSkipTLSVerify")
	if err := unstructured.SetNestedField(led.Object, "late", "spec", "service", "name"); err != nil {
		t.Fatal(err)
	}
	f.apply(t, "1.1.0", configMap("left", "over"))
	f.apply(t, "1.2.0", local)
	f.apply(t, "1.3.0", led)
	if found := f.registered(t, "v1"); found.Spec.Service != nil {
		t.Errorf("it leads to %v, which there is not", found.Spec.Service)
	}
}

// TestAPIServicesOfAGroup: who serves one version of an API does not get the others.
func TestAPIServicesOfAGroup(t *testing.T) {
	t.Parallel()
	f := newRunningAPIFixture(t, "api-group")
	raw := func(version, group string) *unstructured.Unstructured {
		return rawAPIService(version, group, f.owner.Namespace, f.operator.WebhookService())
	}
	refused := func(f *fixture, version string, want string, objects ...*unstructured.Unstructured) {
		t.Helper()
		_, err := f.applier.Apply(t.Context(), f.owner, f.desired(version, objects...))
		conflict, isConflict := errors.AsType[*object.ConflictError](err)
		if !isConflict || !strings.HasPrefix(conflict.Summary(), want) {
			t.Errorf("err = %v, want %q", err, want)
		}
		foreseen, err := f.applier.Foresee(t.Context(), f.owner, f.desired(version, objects...))
		told := &object.ConflictError{Claimant: f.owner, Conflicts: foreseen.Conflicts}
		if err != nil || len(foreseen.Conflicts) == 0 || !strings.HasPrefix(told.Summary(), want) {
			t.Errorf("what is foreseen: %+v, error %v, want %q", foreseen.Conflicts, err, want)
		}
		if f.live(t, "canary") != nil {
			t.Error("something was written")
		}
	}
	refused(f.fixture, "1.0.0", `APIService "v1.apps" exists already and belongs to the API server itself`, raw("v2", "apps"), configMap("canary", "v"))

	// A definition of its own takes nothing from others, until one of theirs is in the group.
	group := f.operator.APIGroup()
	f.apply(t, "1.0.0", asUnstructured(t, definitionOf(group, "plants")), configMap("mixed", "v"))
	isServed := func(context.Context) (bool, error) { return f.registered(t, "v1") != nil, nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, isServed); err != nil {
		t.Fatal(err)
	}
	mixed := []*unstructured.Unstructured{asUnstructured(t, definitionOf(group, "plants")), raw("v2", group), configMap("mixed", "v")}
	f.apply(t, "1.1.0", mixed...)
	f.apply(t, "1.2.0", mixed[0])
	create(t, definitionOf(group, "weeds"))
	refused(f.fixture, "1.3.0", `APIService "v1.`+group+`" exists already and belongs to the API server itself`, append(mixed, configMap("canary", "v"))...)

	g := newRunningAPIFixture(t, "api-held")
	g.apply(t, "1.0.0", g.content(t, 1, "v1")...)
	g.untilRepaired(t, "registered", func() bool { return g.registered(t, "v1") != nil })
	refused(f.fixture, "1.4.0", `APIService "v1.`+g.operator.APIGroup()+`" exists already and belongs to ClusterExtension "`+g.owner.Name+`"`,
		raw("v2", g.operator.APIGroup()), configMap("canary", "v"))
}

// rawAPIService is one as a plain bundle has it.
func rawAPIService(version, group, namespace, service string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": version + "." + group},
		"spec": map[string]any{
			"group": group, "version": version, "groupPriorityMinimum": int64(1), "versionPriority": int64(1), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": namespace, "name": service},
		},
	}}
}

func asUnstructured(t *testing.T, typed runtime.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// definitionOf has one version, v1.
func definitionOf(group, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Kind" + plural, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

// TestUnavailableAPIServices: that the server of an API does not answer is told in the words
// of the cluster.
func TestUnavailableAPIServices(t *testing.T) {
	t.Parallel()
	f := newRunningAPIFixture(t, "api-down")
	f.apply(t, "1.0.0", f.content(t, 1, "v1")...)
	f.untilRepaired(t, "registered", func() bool { return f.registered(t, "v1") != nil })
	reason := ""
	f.untilRepaired(t, "unavailable", func() bool {
		for _, workload := range f.workloads(t) {
			if workload.Key.GroupKind == object.APIServiceKind && workload.Available == metav1.ConditionFalse {
				reason = workload.Reason
			}
		}
		return strings.Contains(reason, "FailedDiscoveryCheck")
	})
	if strings.Contains(reason, "https://") {
		t.Errorf("there are addresses in %q", reason)
	}
	f.secretData(t)
	f.untilRepaired(t, "available, without a reason", func() bool {
		hasReason := slices.ContainsFunc(f.workloads(t), func(w health.Workload) bool {
			return w.Reason != "" && w.Key.GroupKind != object.DefinitionKind // its status is not read again here
		})
		return f.availability(t) == metav1.ConditionTrue && !hasReason
	})
}

// TestAPIRotation (S5) takes the certificate of the server of an API to its successor, while it
// is asked all the time. Not one request fails, and old and new authority are both trusted in
// between.
func TestAPIRotation(t *testing.T) {
	t.Parallel()
	f := newRunningAPIFixture(t, "api-rotation")
	f.later.Store(int64(-certificateLife * 2 / 3))
	f.apply(t, "1.0.0", f.content(t, 1, "v1")...)
	f.secretData(t)
	f.untilRepaired(t, "available", func() bool { return f.availability(t) == metav1.ConditionTrue })
	if err := f.ask(t.Context(), "v1"); err != nil {
		t.Fatal(err)
	}
	f.settle(t)
	first, authority := f.server.Serial(), f.registered(t, "v1").Spec.CABundle

	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int64
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for ctx.Err() == nil {
				if err := f.askOnce(context.WithoutCancel(ctx), "v1"); err != nil {
					t.Errorf("request %d: %v", asked.Load(), err)
				}
				asked.Add(1)
			}
		})
	}
	goOn := func() {
		t.Helper()
		for from, end := asked.Load(), time.Now().Add(patience); asked.Load() < from+20; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the requests do not go on")
			}
		}
	}
	defer asking.Wait()
	defer cancel()

	f.later.Store(int64(time.Second))
	f.repair(t)
	both := f.registered(t, "v1").Spec.CABundle
	if !bytes.HasSuffix(both, authority) || bytes.Equal(both, authority) {
		t.Errorf("the successor is not trusted beside the first: %s", both)
	}
	if f.secretData(t); f.server.Serial() != first {
		t.Error("the successor is served at once")
	}
	goOn()
	f.later.Store(int64(time.Hour + time.Minute))
	f.repair(t)
	goOn() // servers have not noticed yet
	if f.secretData(t); f.server.Serial() == first {
		t.Error("the successor is not published")
	}
	goOn()
	f.later.Store(int64(certificateLife/3 + time.Hour))
	f.repair(t)
	if got := f.registered(t, "v1").Spec.CABundle; bytes.Contains(got, authority) || !bytes.HasPrefix(both, got) {
		t.Errorf("trusted is not the successor alone: %s", got)
	}
	goOn()
	if status := f.availability(t); status != metav1.ConditionTrue {
		t.Errorf("it is available: %s", status)
	}
}
