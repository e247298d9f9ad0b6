package preview

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// ImageChange is an image of a container that would be another one. Before or After is empty
// where there is no such container.
type ImageChange struct {
	Workload  object.Reference `json:"workload"`
	Container string           `json:"container"`
	Before    string           `json:"before,omitempty"`
	After     string           `json:"after,omitempty"`
}

// podSpecs are the kinds that run pods, and where they say how.
var podSpecs = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                       {"spec"},
	{Kind: "ReplicationController"}:     {"spec", "template", "spec"},
	{Group: "apps", Kind: "Deployment"}: {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:  {"spec", "template", "spec"},
	statefulSetKind:                     {"spec", "template", "spec"},
	{Group: "apps", Kind: "ReplicaSet"}: {"spec", "template", "spec"},
	{Group: "batch", Kind: "Job"}:       {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:   {"spec", "jobTemplate", "spec", "template", "spec"},
}

var statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}

// container is one of a workload, by name.
type container struct {
	name    string
	content map[string]any
}

func containersOf(key object.Key, workload map[string]any) []container {
	path, runsPods := podSpecs[key.GroupKind]
	if !runsPods {
		return nil
	}
	spec, _, _ := unstructured.NestedFieldNoCopy(workload, path...)
	content, _ := spec.(map[string]any)
	var found []container
	for _, field := range []string{"initContainers", "containers"} {
		list, _ := content[field].([]any)
		for _, item := range list {
			if item, isObject := item.(map[string]any); isObject {
				name, _ := item["name"].(string)
				found = append(found, container{name: name, content: item})
			}
		}
	}
	return found
}

// imagesOf are those that change, by workload and container.
func imagesOf(trials []object.Trial) []ImageChange {
	var changes []ImageChange
	for i := range trials {
		if trials[i].Holder != nil || trials[i].Change == object.Unchanged {
			continue
		}
		before, after := imagesIn(trials[i].Key, trials[i].Live), imagesIn(trials[i].Key, trials[i].After)
		names := maps.Clone(before)
		maps.Copy(names, after)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if before[name] != after[name] {
				changes = append(changes, ImageChange{
					Workload: object.ReferenceTo(trials[i].Key), Container: name, Before: before[name], After: after[name],
				})
			}
		}
	}
	return changes
}

func imagesIn(key object.Key, workload *unstructured.Unstructured) map[string]string {
	images := map[string]string{}
	if workload == nil {
		return images
	}
	for _, container := range containersOf(key, workload.Object) {
		images[container.name], _ = container.content["image"].(string)
	}
	return images
}

// RestartsOf are the workloads whose pods would be replaced by others.
func RestartsOf(trials []object.Trial) []object.Reference {
	var restarts []object.Reference
	for i := range trials {
		if trials[i].Holder == nil && trials[i].Err == nil && isRestart(&trials[i]) {
			restarts = append(restarts, object.ReferenceTo(trials[i].Key))
		}
	}
	return restarts
}

// isRestart is true where the pods of a workload follow its template and that changes. It is
// not for a workload that has none, or that leaves it to others when they go.
func isRestart(trial *object.Trial) bool {
	switch trial.Key.GroupKind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, statefulSetKind:
	default:
		return false
	}
	if trial.Live == nil || trial.After == nil {
		return false
	}
	replicas, _, _ := unstructured.NestedFieldNoCopy(trial.Live.Object, "spec", "replicas")
	paused, _, _ := unstructured.NestedBool(trial.After.Object, "spec", "paused")
	strategy := object.TextIn(trial.After, "spec", "updateStrategy", "type")
	switch {
	case replicas == int64(0):
		return false
	case trial.Difference.Replaced:
		return true
	case paused || strategy == "OnDelete":
		return false
	}
	before, _, _ := unstructured.NestedFieldNoCopy(trial.Live.Object, "spec", "template")
	after, _, _ := unstructured.NestedFieldNoCopy(trial.After.Object, "spec", "template")
	return !reflect.DeepEqual(before, after)
}
