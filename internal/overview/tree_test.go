package overview

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestMakeTree(t *testing.T) {
	t.Parallel()
	key := func(kind, namespace, name string) object.Key {
		return object.Key{GroupKind: schema.GroupKind{Kind: kind}, Namespace: namespace, Name: name}
	}
	deployment := func(name string) object.Key {
		return object.Key{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "ns", Name: name}
	}
	leaving := &unstructured.Unstructured{Object: map[string]any{}}
	leaving.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	leaving.SetFinalizers([]string{"f.test/f"})
	status := func(conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}}},
			"status": map[string]any{"replicas": int64(1), "updatedReplicas": int64(1), "availableReplicas": int64(1), "conditions": conditions},
		}}
	}
	available := func(status string) any { return map[string]any{"type": "Available", "status": status} }
	crd := object.Key{GroupKind: object.DefinitionKind, Name: "crd"}
	widget := object.Key{GroupKind: schema.GroupKind{Group: "w.test", Kind: "Widget"}, Namespace: "ns", Name: "w"}
	set := object.Key{GroupKind: schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, Namespace: "ns", Name: "new"}
	starting := &unstructured.Unstructured{Object: map[string]any{}}
	starting.SetCreationTimestamp(metav1.Unix(30, 0))
	there := &unstructured.Unstructured{Object: map[string]any{}}
	tree := MakeTree(Row{Name: "x"}, []Found{
		{Key: key("Secret", "ns", "\x1b[2Jname"), Live: there},
		{Key: key("ConfigMap", "", "a"), Live: there, Foreign: true},
		{Key: key("Role", "ns", "leaving"), Live: leaving},
		{Key: key("Role", "ns", "gone")},
		{Key: key("Job", "ns", "done"), Ran: true},
		{Key: key("Job", "ns", "ran"), Ran: true, Live: there},
		{Key: key("Secret", "ns", "left"), IsOfHook: true, Live: there},
		{Key: key("Secret", "ns", "secret"), IsOfHook: true, Err: errors.New("no")},
		{Key: key("Role", "ns", "hidden"), Err: errors.New("you may\nnot")},
		{Key: deployment("serves"), Live: status(available("True"))},
		{Key: deployment("fails"), Live: status(available("False"))},
		{Key: deployment("stuck"), Live: status(available("False"), map[string]any{"type": "Progressing", "status": "False", "message": "too late"})},
		{Key: deployment("unsaid"), Live: status()},
		{Key: crd, Live: status(map[string]any{"type": "NamesAccepted", "status": "False", "message": "taken"})},
		{Key: widget, Live: status(map[string]any{"type": "Ready", "status": "False", "message": "broken"})},
		{Key: set, Live: starting},
	}, []string{"some\nthing"}, time.Unix(60, 0))
	var got []string
	for _, shown := range tree.Objects {
		got = append(got, strings.TrimRight(fmt.Sprintf("%s/%s/%s %s %s", shown.Namespace, shown.Kind, shown.Name, shown.Health, shown.Message), " "))
	}
	want := []string{
		"/ConfigMap/a Foreign it does not belong to this extension",
		"/CustomResourceDefinition/crd NotReady its condition NamesAccepted is False: taken",
		"ns/Deployment/fails NotReady its status does not say whether it is available",
		"ns/Deployment/serves Ready",
		"ns/Deployment/stuck Stalled too late",
		"ns/Deployment/unsaid Unknown its status does not say whether it is available",
		"ns/Job/done Done it has run, and the cluster has deleted it for its ttlSecondsAfterFinished",
		"ns/Job/ran Present",
		"ns/Role/gone Missing",
		"ns/Role/hidden Unknown you may not",
		"ns/Role/leaving Terminating it was deleted, and is put back when it is gone, for which it waits for finalizers [f.test/f]",
		"ns/Secret/[2Jname Present",
		"ns/Secret/left Present of a hook",
		"ns/Secret/secret Unknown of a hook; no",
		"ns/StatefulSet/new Reconciling 0 of 1 replicas are available",
		"ns/Widget/w NotReady its condition Ready is False: broken",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"some thing"}, tree.Unknown); diff != "" {
		t.Errorf("unknown (-want +got)\n%s", diff)
	}
}

func TestTreesAreBounded(t *testing.T) {
	t.Parallel()
	found := make([]Found, maxObjects+3)
	for i := range found {
		found[i].Key.Name = strings.Repeat("n", 2*maxNameBytes)
	}
	unknown := make([]string, maxUnknown+1)
	unknown[0] = strings.Repeat("u", 2*maxUnknownBytes)
	tree := MakeTree(Row{}, found, unknown, time.Now())
	if len(tree.Objects) != maxObjects || tree.More != 3 || len(tree.Unknown) != maxUnknown {
		t.Errorf("got %d objects, %d more, %d lines", len(tree.Objects), tree.More, len(tree.Unknown))
	}
	if len(tree.Objects[0].Name) > maxNameBytes || len(tree.Unknown[0]) > maxUnknownBytes {
		t.Errorf("got a name of %d bytes and a line of %d", len(tree.Objects[0].Name), len(tree.Unknown[0]))
	}
}
