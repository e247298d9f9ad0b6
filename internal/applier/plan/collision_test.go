package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestBlocks(t *testing.T) {
	t.Parallel()
	const (
		quota   = `is forbidden: exceeded quota: q, requested: x=1, used: x=1, limited: x=1`
		policy  = `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`
		webhook = `admission webhook "w.test" denied the request: host "h" and path "/" is already defined in ingress ns/a`
		failing = `Internal error occurred: failed calling webhook "w.test": failed to call webhook: no endpoints available`
		ports   = `Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated`
		limits  = `persistentvolumeclaims "b" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 5Gi`
		class   = `priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as default. Only one default can exist`
	)
	named := func(apiVersion, kind, more string) string {
		return "{apiVersion: " + apiVersion + ", kind: " + kind + ", " + more + "}"
	}
	configuration := func(name string) string {
		return named("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "metadata: {name: c}, webhooks: [{name: other}, {name: "+name+"}]")
	}
	service := func(name, spec string) string {
		return named("v1", "Service", "metadata: {namespace: ns, name: "+name+"}, spec: {"+spec+"}")
	}
	ingress := func(name string) string {
		return named("networking.k8s.io/v1", "Ingress", "metadata: {namespace: ns, name: "+name+"}")
	}
	priorityClass := func(name string) string {
		return named("scheduling.k8s.io/v1", "PriorityClass", "metadata: {name: "+name+"}")
	}
	inNamespace := func(apiVersion, kind, namespace, name string) string {
		return named(apiVersion, kind, "metadata: {namespace: "+namespace+", name: "+name+"}")
	}
	for name, tc := range map[string]struct {
		refusal, wanted, other string
		want                   bool
	}{
		"F17: the default class":                        {class, priorityClass("b"), priorityClass("a"), true},
		"F17: another class":                            {class, priorityClass("b"), priorityClass("c"), false},
		"F17: a node port":                              {ports, service("b", "ports: [{nodePort: 30080}]"), service("a", "ports: [{nodePort: 1}, {nodePort: 30080}]"), true},
		"F17: another node port":                        {ports, service("b", "ports: [{nodePort: 30080}]"), service("a", "ports: [{nodePort: 30081}]"), false},
		"F17: no node port":                             {ports, service("b", "ports: [{port: 1}]"), service("a", "ports: [{port: 1}]"), false},
		"F17: a cluster IP":                             {ports, service("b", "clusterIP: 10.0.0.1"), service("a", "clusterIP: 10.0.0.1"), true},
		"F17: headless":                                 {ports, service("b", "clusterIP: None"), service("a", "clusterIP: None"), false},
		"F17: the quota":                                {quota, service("b", ""), inNamespace("v1", "ResourceQuota", "ns", "q"), true},
		"F17: another quota":                            {quota, service("b", ""), inNamespace("v1", "ResourceQuota", "ns", "r"), false},
		"F17: the quota of another namespace":           {quota, service("b", ""), inNamespace("v1", "ResourceQuota", "other", "q"), false},
		"F17: an object of the kind":                    {quota, service("b", ""), service("a", ""), true},
		"F17: an object of another namespace":           {quota, service("b", ""), inNamespace("v1", "Service", "other", "a"), false},
		"F17: a volume, whose data nothing restores":    {quota, inNamespace("v1", "PersistentVolumeClaim", "ns", "b"), inNamespace("v1", "PersistentVolumeClaim", "ns", "a"), false},
		"F17: a custom resource, which has data":        {quota, inNamespace("g.test/v1", "Database", "ns", "b"), inNamespace("g.test/v1", "Database", "ns", "a"), false},
		"F17: limits":                                   {limits, inNamespace("v1", "PersistentVolumeClaim", "ns", "b"), inNamespace("v1", "LimitRange", "ns", "l"), true},
		"F17: limits of another namespace":              {limits, inNamespace("v1", "PersistentVolumeClaim", "ns", "b"), inNamespace("v1", "LimitRange", "other", "l"), false},
		"F17: a volume that limits do not allow":        {limits, inNamespace("v1", "PersistentVolumeClaim", "ns", "b"), inNamespace("v1", "PersistentVolumeClaim", "ns", "a"), false},
		"F17: a policy":                                 {policy, service("b", ""), named("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "metadata: {name: p}"), true},
		"F17: its binding":                              {policy, service("b", ""), named("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "metadata: {name: b}"), true},
		"F17: a policy with the name of the binding":    {policy, service("b", ""), named("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "metadata: {name: b}"), false},
		"F17: a webhook that denies":                    {webhook, service("b", ""), configuration("w.test"), true},
		"F17: a webhook that fails":                     {failing, service("b", ""), configuration("w.test"), true},
		"F17: another webhook":                          {webhook, service("b", ""), configuration("w"), false},
		"F17: an object that a webhook names":           {webhook, ingress("b"), ingress("a"), true},
		"F17: an object with the name as its beginning": {webhook, ingress("b"), ingress("aa"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wanted, other := stepOf(t, tc.wanted), stepOf(t, tc.other)
			other.Live = other.Object
			if got := blocks(&wanted, &other, tc.refusal); got != tc.want {
				t.Errorf("it blocks: %t", got)
			}
			if !mayCollide(errors.New(tc.refusal)) {
				t.Error("the refusal is not taken for a collision")
			}
		})
	}
}

// TestDataIsNotDeletedFirst is F17: if the write fails after all, nothing restores the data. Webhooks of others name objects in
// whatever words.
func TestDataIsNotDeletedFirst(t *testing.T) {
	t.Parallel()
	const refusal = `admission webhook "w.test" denied the request: in use by ns/a`
	for kind, isFirst := range map[string]bool{
		"v1, kind: PersistentVolumeClaim": false, "v1, kind: Secret": false, "g.test/v1, kind: Database": false,
		"v1, kind: ConfigMap": true, "networking.k8s.io/v1, kind: Ingress": true,
	} {
		owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns"}
		named := func(name string) Step {
			return stepOf(t, "{apiVersion: "+kind+", metadata: {namespace: ns, name: "+name+"}}")
		}
		wanted, other := named("b"), named("a")
		other.Live = owner.Own(other.Object)
		dropped, kept := (&Plan{Owner: owner, prune: []Step{other}}).inTheWay(&wanted, errors.New(refusal))
		if len(dropped) == 1 != isFirst || len(kept) == 1 == isFirst {
			t.Errorf("%s: %d are deleted first, %d block the upgrade", kind, len(dropped), len(kept))
		}
	}
}

// TestObjectsThatBlockOthers (F17) has a quota of two Services, and an upgrade from one to two others. Each can be
// created as long as the other one is not.
func TestObjectsThatBlockOthers(t *testing.T) {
	t.Parallel()
	owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns"}
	service := func(name string) *unstructured.Unstructured {
		return owner.Own(stepOf(t, "{apiVersion: v1, kind: Service, metadata: {namespace: ns, name: "+name+"}}").Object)
	}
	for name, tc := range map[string]struct {
		limit int
		keep  bool
		err   string
		began bool
	}{
		"F17: together":      {limit: 2},
		"F17: each":          {limit: 1, err: "exceeded quota", began: true}, // there is room for one of two
		"F17: it is kept":    {limit: 1, keep: true, err: `Service "old" in namespace "ns" of this extension blocks it, and the upgrade does not delete that object`},
		"F17: there is room": {limit: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := service("old")
			if tc.keep {
				old = annotated(old, "helm.sh/resource-policy", "keep")
			}
			live := old.DeepCopy()
			owner.Stamp(live)
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), live)
			services := corev1.SchemeGroupVersion.WithResource("services")
			client.PrependReactor("create", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
				create := action.(clienttesting.CreateActionImpl)
				list, err := client.Tracker().List(services, corev1.SchemeGroupVersion.WithKind("Service"), "ns")
				if err != nil {
					return true, nil, err
				}
				if count := meta.LenList(list); count >= tc.limit {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "s", fmt.Errorf("exceeded quota: q, requested: services=1, used: services=%d, limited: services=%d", count, tc.limit))
				}
				return len(create.CreateOptions.DryRun) > 0, create.Object, nil
			})
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
			planner := NewPlanner(client, mapper, owner, func(context.Context, object.Owner) error { return nil })
			planned, err := planner.Plan([]*unstructured.Unstructured{service("a"), service("b")}, []*unstructured.Unstructured{old}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err = planner.Inspect(t.Context(), planned); err == nil {
				err = planner.DryRun(t.Context(), planned)
			}
			executor := planner.Executor()
			if err == nil {
				ctx, cancel := context.WithTimeout(t.Context(), unblockInterval)
				defer cancel()
				err = executor.Execute(ctx, planned)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || executor.Progress.Began != (tc.began || tc.err == "") {
				t.Fatalf("err = %v, began: %t", err, executor.Progress.Began)
			}
			_, err = client.Tracker().Get(services, "ns", "old")
			if isGone := apierrors.IsNotFound(err); isGone == tc.keep {
				t.Errorf("the dropped object is gone: %t, %v", isGone, err)
			}
		})
	}
}

// TestRefusalsAreComparedCheaply is F17: each refused object is compared with each other object of its kind, and a bundle may have
// thousands of both.
func TestRefusalsAreComparedCheaply(t *testing.T) {
	t.Parallel()
	wanted, other := stepOf(t, "{apiVersion: v1, kind: Secret, metadata: {namespace: ns, name: a}}"), stepOf(t, "{apiVersion: v1, kind: Secret, metadata: {namespace: ns, name: b}}")
	other.Live = other.Object
	found := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			for _, refusal := range []string{
				`is forbidden: exceeded quota: q, requested: x=1, used: x=1, limited: x=1`,
				`ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
				`admission webhook "w.test" denied the request: no`,
			} {
				excludes(&wanted, &other, refusal)
			}
		}
	})
	if found.AllocsPerOp() > 3 {
		t.Errorf("%d allocations for three comparisons", found.AllocsPerOp())
	}
}
