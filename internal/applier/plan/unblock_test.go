package plan

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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

// TestUnblockedWritesWaitTogether is F17: another client uses up a quota after the upgrade has deleted objects. The upgrade ends,
// however many objects it has.
func TestUnblockedWritesWaitTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns"}
		service := func(name string) *unstructured.Unstructured {
			return owner.Own(stepOf(t, "{apiVersion: v1, kind: Service, metadata: {namespace: ns, name: "+name+"}}").Object)
		}
		old := service("old")
		live := old.DeepCopy()
		owner.Stamp(live)
		client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), live)
		refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "s", errors.New("exceeded quota: q, requested: services=1, used: services=1, limited: services=1"))
		client.PrependReactor("create", "services", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
		planner := NewPlanner(client, mapper, owner, func(context.Context, object.Owner) error { return nil })
		var wanted []*unstructured.Unstructured
		for i := range 4 * parallel {
			wanted = append(wanted, service(fmt.Sprint("new-", i)))
		}
		planned, err := planner.Plan(wanted, []*unstructured.Unstructured{old}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range planned.Steps {
			planned.Steps[i].state = absent
		}
		planned.prune[0].state, planned.prune[0].Live = read, live
		start := time.Now()
		if err := planner.Executor().Execute(t.Context(), planned); err == nil {
			t.Error("it has not failed")
		}
		if took := time.Since(start); took < unblockTimeout || took > 2*unblockTimeout {
			t.Errorf("it took %s", took)
		}
	})
}
