package gitops_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

var (
	extensionKind     = schema.GroupVersionKind{Group: "olm.operatorframework.io", Version: "v1", Kind: "ClusterExtension"}
	catalogKind       = schema.GroupVersionKind{Group: "olm.operatorframework.io", Version: "v1", Kind: "ClusterCatalog"}
	widgetKind        = schema.GroupVersionKind{Group: "sample.clusterextensions.dev", Version: "v1alpha1", Kind: "Widget"}
	applicationKind   = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}
	kustomizationKind = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
)

// event is a change of an object. Revisions count the writes of the whole cluster, so that
// they tell the order of events of different kinds.
type event struct {
	kind     watch.EventType
	at       time.Time
	revision int64
	object   *unstructured.Unstructured
}

func (e event) isDeleted() bool { return e.kind == watch.Deleted }

// isBeingDeleted says that somebody has asked for the deletion.
func (e event) isBeingDeleted() bool { return e.isDeleted() || e.object.GetDeletionTimestamp() != nil }

// hasCondition says whether a condition has a status.
func hasCondition(kind, status string) func(event) bool {
	return func(e event) bool { return conditionOf(e.object, kind)["status"] == status }
}

// hasReason says whether a condition is True for a reason, and about the spec as it is.
func hasReason(kind, reason string) func(event) bool {
	return func(e event) bool {
		found := conditionOf(e.object, kind)
		return found["status"] == "True" && found["reason"] == reason && fmt.Sprint(found["observedGeneration"]) == fmt.Sprint(e.object.GetGeneration())
	}
}

// conditionOf has the fields of a condition; none if it is absent.
func conditionOf(object *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		if condition, ok := item.(map[string]any); ok && condition["type"] == kind {
			return condition
		}
	}
	return nil
}

func messageOf(object *unstructured.Unstructured, kind string) string {
	message, _ := conditionOf(object, kind)["message"].(string)
	return message
}

// recorder keeps the events of one object.
type recorder struct {
	what string

	mu     sync.Mutex
	events []event
}

// record begins with the object as it is, if it is there. The kind has to be known.
func record(t *testing.T, kind schema.GroupVersionKind, name string) *recorder {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	watching, err := theSuite.watch.Watch(t.Context(), list)
	must(t, err)
	t.Cleanup(watching.Stop)
	r := &recorder{what: kind.Kind + " " + name}
	go func() {
		for change := range watching.ResultChan() {
			object, ok := change.Object.(*unstructured.Unstructured)
			if !ok || object.GetName() != name {
				continue
			}
			revision, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64) // it is a number
			r.mu.Lock()
			r.events = append(r.events, event{kind: change.Type, at: time.Now(), revision: revision, object: object})
			r.mu.Unlock()
		}
	}()
	return r
}

// since gives the events after a revision.
func (r *recorder) since(revision int64) []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, e := range r.events {
		if e.revision > revision {
			return append([]event(nil), r.events[i:]...)
		}
	}
	return nil
}

// await gives the first event after a revision that is as described.
func (r *recorder) await(t *testing.T, revision int64, what string, holds func(event) bool) event {
	t.Helper()
	var found event
	eventually(t, r.what+": "+what, func(context.Context) error {
		events := r.since(revision)
		for _, e := range events {
			if holds(e) {
				found = e
				return nil
			}
		}
		if len(events) == 0 {
			return fmt.Errorf("nothing has changed")
		}
		return fmt.Errorf("at last it is %v", events[len(events)-1].object.Object["status"])
	})
	return found
}

// now is the revision of the cluster.
func now(t *testing.T) int64 {
	t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(extensionKind.GroupVersion().WithKind("ClusterExtensionList"))
	must(t, theSuite.Admin.List(t.Context(), list))
	revision, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	must(t, err)
	return revision
}

// before fails unless one event has come before another one.
func before(t *testing.T, first event, what string, second event) {
	t.Helper()
	if first.revision >= second.revision {
		t.Errorf("%s: revision %d comes before %d", what, second.revision, first.revision)
	}
}
