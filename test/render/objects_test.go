package render_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const kindDefinition = "CustomResourceDefinition"

// compareObjects returns what differs between two sets of objects: the object,
// and the fields or how often it is there. Definitions that the reference leaves
// out are those of the bundle.
func compareObjects(t *testing.T, definitions, reference, rendered []*unstructured.Unstructured) []string {
	t.Helper()
	want, got := byName(t, reference), byName(t, rendered)
	for name, objects := range byName(t, definitions) {
		if want[name] == nil {
			want[name] = objects[:1]
		}
	}
	names := slices.Collect(maps.Keys(want))
	for name := range got {
		if want[name] == nil {
			names = append(names, name)
		}
	}
	var differences []string
	for _, name := range names {
		if what := compareNamed(want[name], got[name]); what != "" {
			differences = append(differences, name+" "+what)
		}
	}
	return differences
}

// byName returns the desired state of objects by kind and name. More than one
// of a name are in the order of their text.
func byName(t *testing.T, objects []*unstructured.Unstructured) map[string][]any {
	t.Helper()
	found := map[string][]any{}
	for _, object := range objects {
		name := object.GetKind() + "/" + object.GetName()
		found[name] = append(found[name], desired(t, object))
	}
	for _, same := range found {
		slices.SortFunc(same, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return found
}

// desired is what counts of an object, numbers of one type.
func desired(t *testing.T, object *unstructured.Unstructured) any {
	t.Helper()
	delete(object.Object, "status")
	if metadata, ok := object.Object["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(encoded, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// compareNamed says how the objects of one name differ; not at all if empty. One
// that stands for several is compared with the one that it is most like.
func compareNamed(want, got []any) string {
	var differences []string
	if len(want) != len(got) {
		differences = []string{fmt.Sprintf("%d instead of %d", len(got), len(want))}
	}
	if len(got) == 1 && len(want) > 1 {
		slices.SortStableFunc(want, func(a, b any) int {
			return cmp.Compare(len(differingPaths("", a, got[0])), len(differingPaths("", b, got[0])))
		})
	}
	var paths []string
	for i := range min(len(want), len(got)) {
		paths = append(paths, differingPaths("", want[i], got[i])...)
	}
	slices.Sort(paths)
	return strings.Join(append(differences, slices.Compact(paths)...), " ")
}

// differingPaths lists the fields that differ. Lists differ as a whole, unless
// they are equally long.
func differingPaths(at string, want, got any) []string {
	if reflect.DeepEqual(want, got) {
		return nil
	}
	var paths []string
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			for key := range maps.Keys(want) {
				paths = append(paths, differingPaths(at+"."+key, want[key], got[key])...)
			}
			for key := range got {
				if _, both := want[key]; !both {
					paths = append(paths, at+"."+key)
				}
			}
			return paths
		}
	case []any:
		if got, ok := got.([]any); ok && len(got) == len(want) {
			for i := range want {
				paths = append(paths, differingPaths(at+"[]", want[i], got[i])...)
			}
			return paths
		}
	}
	return []string{at}
}
