package controller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requeue"
)

// settledExtension is one of which the status says that it was looked at.
func settledExtension(name string) *ocv1.ClusterExtension {
	ext := sampleExtension()
	ext.Name, ext.Generation, ext.Status.ObservedGeneration = name, 2, 2
	ext.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeProgressing, Status: metav1.ConditionTrue, Reason: ocv1.ReasonSucceeded}}
	return ext
}

func TestIsNews(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*ocv1.ClusterExtension)
		want   bool
	}{
		"settled": {change: func(*ocv1.ClusterExtension) {}},
		"failing": {change: func(ext *ocv1.ClusterExtension) {
			meta.SetStatusCondition(&ext.Status.Conditions, metav1.Condition{Type: ocv1.TypeProgressing, Status: metav1.ConditionTrue, Reason: ocv1.ReasonRetrying})
		}},
		"labelled":       {change: func(ext *ocv1.ClusterExtension) { ext.Labels = map[string]string{"a": "b"} }},
		"new":            {change: func(ext *ocv1.ClusterExtension) { ext.Finalizers, ext.Status = nil, ocv1.ClusterExtensionStatus{} }, want: true},
		"without status": {change: func(ext *ocv1.ClusterExtension) { ext.Status = ocv1.ClusterExtensionStatus{} }, want: true},
		"edited":         {change: func(ext *ocv1.ClusterExtension) { ext.Generation++ }, want: true},
		"being deleted":  {change: func(ext *ocv1.ClusterExtension) { ext.DeletionTimestamp = new(metav1.Now()) }, want: true},
		"let go of":      {change: func(ext *ocv1.ClusterExtension) { ext.Finalizers = ext.Finalizers[1:] }, want: true},
		"interrupted": {change: func(ext *ocv1.ClusterExtension) {
			meta.SetStatusCondition(&ext.Status.Conditions, metav1.Condition{Type: ocv1.TypeProgressing, Status: metav1.ConditionTrue, Reason: ocv1.ReasonRollingOut})
		}, want: true},
	} {
		ext := settledExtension("x")
		tc.change(ext)
		if got := isNews(ext); got != tc.want {
			t.Errorf("%s: news is %t", name, got)
		}
	}
}

// TestNewsComesFirst has a process begin with many extensions, and a catalog that wakes all
// of them.
func TestNewsComesFirst(t *testing.T) {
	t.Parallel()
	objects := []client.Object{}
	for i := range 100 {
		objects = append(objects, settledExtension(fmt.Sprintf("settled-%02d", i)))
	}
	edited := settledExtension("edited")
	edited.Generation++
	catalog := &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	w := newWorld(t, append(objects, edited, catalog)...)

	queue := priorityqueue.New[reconcile.Request](t.Name())
	defer queue.ShutDown()
	for _, object := range append(objects, edited) { // as For does
		for _, hears := range []handler.EventHandler{&handler.EnqueueRequestForObject{}, newsFirst()} {
			hears.Create(t.Context(), event.CreateEvent{Object: object, IsInInitialList: true}, queue)
		}
	}
	w.reconciler.wakes(w.reconciler.selecting, priorityOf).Create(t.Context(), event.CreateEvent{Object: catalog}, queue)
	created := settledExtension("created")
	(&handler.EnqueueRequestForObject{}).Create(t.Context(), event.CreateEvent{Object: created}, queue)

	var first []string
	var priorities []int
	for range 3 {
		request, priority, _ := queue.GetWithPriority()
		first, priorities = append(first, request.Name), append(priorities, priority)
		queue.Done(request)
	}
	if diff := cmp.Diff([]string{"edited", "created"}, first[:2]); diff != "" {
		t.Errorf("first come (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{requeue.Now, requeue.Now, requeue.Later}, priorities); diff != "" {
		t.Errorf("priorities (-want +got):\n%s", diff)
	}
	if left := queue.Len(); left != len(objects)-1 {
		t.Errorf("%d wait, want %d", left, len(objects)-1)
	}
}

// TestCatalogWakesWhoSelectsIt as it was or as it is.
func TestCatalogWakesWhoSelectsIt(t *testing.T) {
	t.Parallel()
	var objects []client.Object
	for _, team := range []string{"before", "after", "other"} {
		ext := settledExtension(team)
		ext.Spec.Source.Catalog = &ocv1.CatalogFilter{PackageName: "p", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}}
		objects = append(objects, ext)
	}
	w := newWorld(t, objects...)
	labelled := func(team string) *ocv1.ClusterCatalog {
		return &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"team": team}}}
	}
	queue := priorityqueue.New[reconcile.Request](t.Name())
	defer queue.ShutDown()
	w.reconciler.wakes(w.reconciler.selecting, priorityOf).Update(t.Context(), event.UpdateEvent{ObjectOld: labelled("before"), ObjectNew: labelled("after")}, queue)
	got := map[string]bool{}
	for range 2 {
		request, _ := queue.Get()
		got[request.Name] = true
	}
	if diff := cmp.Diff(map[string]bool{"before": true, "after": true}, got); diff != "" || queue.Len() > 0 {
		t.Errorf("woken (-want +got), and %d more:\n%s", queue.Len(), diff)
	}
}

// TestStartWakesNobodyTwice: what there is when a process begins is no change.
func TestStartWakesNobodyTwice(t *testing.T) {
	t.Parallel()
	for _, object := range []client.Object{&ocv1.ClusterCatalog{}, &corev1.ServiceAccount{}} {
		for _, initial := range []bool{true, false} {
			moved := accountMoved()
			if _, isCatalog := object.(*ocv1.ClusterCatalog); isCatalog {
				moved = catalogMoved()
			}
			if got := moved.Create(event.CreateEvent{Object: object, IsInInitialList: initial}); got == initial {
				t.Errorf("%T in the initial list %t: wakes %t", object, initial, got)
			}
		}
	}
}
