package fromhelm

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// differing compares the objects of a release with the objects that its chart renders, and returns one line for
// each object that differs, sorted. First and second are two renderings as an installation: fields in which
// they differ are random, and are ignored. Upgraded is a rendering as an upgrade. An object may be equal to
// either. CRDs of the chart are ignored, because Helm does not record those of crds/.
func differing(namespace string, installed, first, second, upgraded []*unstructured.Unstructured) []string {
	firsts, seconds, upgrades := byKey(namespace, first), byKey(namespace, second), byKey(namespace, upgraded)
	wanted := byKey(namespace, installed)
	var found []string
	for _, key := range slices.SortedFunc(maps.Keys(wanted), object.Key.Compare) {
		one, other := firsts[key], upgrades[key]
		if one == nil && other == nil {
			found = append(found, key.String()+" is installed, but the chart does not render it")
			continue
		}
		random := paths("", valueOf(one), valueOf(seconds[key]))
		isRandom := func(path string) bool { return slices.Contains(random, path) }
		asInstalled := slices.DeleteFunc(paths("", valueOf(wanted[key]), valueOf(one)), isRandom)
		asUpgraded := slices.DeleteFunc(paths("", valueOf(wanted[key]), valueOf(other)), isRandom)
		if fields := slices.MinFunc([][]string{asInstalled, asUpgraded}, func(a, b []string) int { return cmp.Compare(len(a), len(b)) }); len(fields) > 0 {
			found = append(found, fmt.Sprintf("%s differs in %s", key, strings.Join(fields[:min(len(fields), maxFields)], ", ")))
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(firsts), object.Key.Compare) {
		if wanted[key] == nil && upgrades[key] != nil && key.GroupKind != object.DefinitionKind {
			found = append(found, key.String()+" is rendered by the chart, but not in the release of Helm")
		}
	}
	return found
}

// differingHooks is [differing] for hooks: a record must not have a hook that the chart does not render.
func differingHooks(namespace string, installed, first, second, upgraded []hook.Hook) []string {
	return differing(namespace, hook.Objects(installed), hook.Objects(first), hook.Objects(second), hook.Objects(upgraded))
}

// maxFields bounds the fields that are named of each object.
const maxFields = 3

// byKey returns copies of objects by their keys. Keys without a namespace get the namespace of the release. Fields that
// are not applied are removed.
func byKey(namespace string, objects []*unstructured.Unstructured) map[object.Key]*unstructured.Unstructured {
	found := map[object.Key]*unstructured.Unstructured{}
	for _, one := range objects {
		one = one.DeepCopy()
		key := object.KeyOf(one)
		key.Namespace = cmp.Or(key.Namespace, namespace)
		unstructured.RemoveNestedField(one.Object, "status")
		for _, field := range []string{"namespace", "creationTimestamp"} {
			unstructured.RemoveNestedField(one.Object, "metadata", field)
		}
		found[key] = one
	}
	return found
}

func valueOf(one *unstructured.Unstructured) any {
	if one == nil {
		return nil
	}
	return one.Object
}

// paths returns the paths of the fields in which two values differ. An empty map or list is equal to no value.
func paths(at string, a, b any) []string {
	if isNone(a) && isNone(b) {
		return nil
	}
	one, isMap := a.(map[string]any)
	other, areMaps := b.(map[string]any)
	if isMap && areMaps {
		var found []string
		for _, key := range slices.Sorted(maps.Keys(union(one, other))) {
			found = append(found, paths(strings.TrimPrefix(at+"."+key, "."), one[key], other[key])...)
		}
		return found
	}
	list, isList := a.([]any)
	others, areLists := b.([]any)
	if isList && areLists && len(list) == len(others) {
		var found []string
		for i := range list {
			found = append(found, paths(fmt.Sprintf("%s[%d]", at, i), list[i], others[i])...)
		}
		return found
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	return []string{at}
}

func isNone(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

func union(a, b map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}
