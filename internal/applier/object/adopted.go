package object

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// An extension adopts an object that an earlier owner has left if the marks of the object allow it. No release record
// has the manifest of that owner, but managed fields contain the fields that its field manager has set.

// earlierManagers are the field managers of programs that install bundles and charts. Their fields are from an earlier
// version and are removed. Fields of other managers may be set by a user: they are kept and reported.
var earlierManagers = append([]string{FieldManager, "helm", "helm-controller"}, classicManagers...)

// clusterManagers are the field managers of the cluster itself.
var clusterManagers = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"}

// AppliedBefore returns the part of an adopted object that earlier owners have set; nil if there is none.
func AppliedBefore(live *unstructured.Unstructured) *unstructured.Unstructured {
	set := setBy(live, func(manager string) bool { return slices.Contains(earlierManagers, manager) })
	if len(set) == 0 {
		return nil
	}
	return applied(live, set)
}

// Leftovers describes the fields that an adopted object keeps although the manifest does not set them: the fields of
// writers other than the earlier owner, or of all writers if all is set. It is empty if there are none.
func Leftovers(live, wanted *unstructured.Unstructured, all bool) string {
	var found Difference
	managers := map[string]bool{}
	for _, entry := range live.GetManagedFields() {
		manager := entry.Manager
		if !all && slices.Contains(earlierManagers, manager) || slices.Contains(clusterManagers, manager) {
			continue
		}
		set := setBy(live, func(other string) bool { return other == manager })
		of, _ := only(live.Object, set).(map[string]any)
		before := len(found.Fields) + found.More
		if !managers[manager] {
			found.addLeft(of, wanted.Object, nil)
		}
		if len(found.Fields)+found.More > before {
			managers[manager] = true
			found.Managers = append(found.Managers, manager)
		}
	}
	if len(found.Fields) == 0 {
		return ""
	}
	slices.Sort(found.Managers)
	found.Managers = found.Managers[:min(len(found.Managers), maxManagers)]
	return fmt.Sprintf("%s has fields that the bundle does not set, which are kept: %s (by field manager %s)",
		KeyOf(live), excerpt.OfFirst(found.Fields, found.More, maxListed), NameManagers(found.Managers))
}

// addLeft adds the paths of fields and entries in set that wanted does not contain.
func (d *Difference) addLeft(set map[string]any, wanted map[string]any, path []string) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if len(path) == 0 && slices.Contains([]string{"apiVersion", "kind", "status"}, name) ||
			len(path) == 1 && path[0] == "metadata" && name != "labels" && name != "annotations" {
			continue
		}
		at := append(slices.Clip(path), name)
		switch inner := set[name].(type) {
		case map[string]any:
			if wanted, isWanted := wanted[name].(map[string]any); isWanted || isMetadata(at) {
				d.addLeft(inner, wanted, at)
				continue
			}
			d.addField(at)
		case []any:
			if ours, isWanted := wanted[name].([]any); isWanted {
				d.addLeftItems(inner, ours, at)
				continue
			}
			d.addField(at)
		default:
			if wanted[name] == nil && !isMark(at) {
				d.addField(at)
			}
		}
	}
}

// addLeftItems compares entries by their names. Lists whose entries have none belong to the bundle as a whole.
func (d *Difference) addLeftItems(set, wanted []any, path []string) {
	ours := byKey(wanted, "name")
	for _, item := range set {
		fields, _ := item.(map[string]any)
		name, isNamed := fields["name"].(string)
		if !isNamed {
			continue
		}
		at := slices.Clone(path)
		at[len(at)-1] += "[" + name + "]"
		if next := ours.next(item); next != nil {
			d.addLeft(fields, next, at)
		} else {
			d.addField(at)
		}
	}
}

func isMetadata(path []string) bool { return path[0] == "metadata" && len(path) < 3 }

// isMark reports a label or annotation by which the extension adopts the object.
func isMark(path []string) bool {
	marks := []string{LabelOwnerKind, LabelOwnerName, labelManagedBy, annotationReleaseName, annotationReleaseNamespace}
	return isMetadata(path[:len(path)-1]) && slices.Contains(marks, path[len(path)-1])
}

// setBy unites the fields, in the form of managed fields, that field managers have set.
func setBy(live *unstructured.Unstructured, selects func(manager string) bool) map[string]any {
	set := map[string]any{}
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil || !selects(entry.Manager) {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil {
			set = unite(set, fields)
		}
	}
	return set
}

// applied returns the part of an object that a set of fields selects, in the place of the manifest of the revision
// before. It leaves out certificates and CA bundles: both are in use.
func applied(live *unstructured.Unstructured, set map[string]any) *unstructured.Unstructured {
	before := &unstructured.Unstructured{Object: map[string]any{}}
	if applied, ok := only(live.Object, set).(map[string]any); ok && len(set) > 0 {
		before.Object = runtime.DeepCopyJSON(applied)
	}
	before.SetGroupVersionKind(live.GroupVersionKind())
	before.SetNamespace(live.GetNamespace())
	before.SetName(live.GetName())
	switch live.GroupVersionKind().GroupKind() {
	case SecretKind:
		unstructured.RemoveNestedField(before.Object, "data")
	case DefinitionKind:
		unstructured.RemoveNestedField(before.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	case APIServiceKind:
		unstructured.RemoveNestedField(before.Object, "spec", "caBundle")
	}
	for _, webhook := range listOf(before.Object["webhooks"]) {
		if webhook, isMap := webhook.(map[string]any); isMap {
			unstructured.RemoveNestedField(webhook, "clientConfig", "caBundle")
		}
	}
	return before
}
