package patches_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sampledChanges is how many fields of an object are changed if not all are.
const sampledChanges = 15

// holdChanges changes each field of the object on the API server, one at a time: if the
// manifest sets it, a patch puts it back, and if not, nothing is sent.
func (s *subject) holdChanges(t *testing.T) {
	var count changes
	places := s.places()
	if !*thorough {
		s.random().Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		places = places[:min(sampledChanges, len(places))]
	}
	for _, place := range places {
		s.change(t, place, &count)
	}
	t.Logf("%d changes are undone, %d are left, %d cannot be undone, %d fields cannot be changed", count.undone, count.left, count.stuck, count.refused)
	if count.undone == 0 && *thorough {
		t.Error("not a single change was undone")
	}
}

// changes counts what came of changes of an object.
type changes struct{ undone, left, stuck, refused int }

// places are the changes to make, those for one field together, of which one is enough.
func (s *subject) places() (all [][]edit) {
	each(s.first.Object, typeOf(s.kind), nil, func(path []any, value any, t reflect.Type) {
		if !isSettable(path) {
			return
		}
		switch value := value.(type) {
		case map[string]any:
		case []any:
			if len(value) > 0 && mergeKeyAt(typeOf(s.kind), path) == "" {
				all = append(all, []edit{{path: path, value: value[0], add: true}})
			}
			return
		default:
			var others []edit
			for _, other := range otherValues(value) {
				others = append(others, edit{path: path, value: other})
			}
			all = append(all, others)
		}
		all = append(all, []edit{{path: path, remove: true}})
	})
	return all
}

// change makes the first of the changes that is accepted and has an effect.
func (s *subject) change(t *testing.T, places []edit, count *changes) {
	t.Helper()
	for _, edit := range places {
		before := s.live(t)
		changed, err := s.put(t.Context(), edited(before, edit))
		if err != nil || s.isSame(before, changed) {
			continue
		}
		s.undo(t, edit, changed, count)
		s.reset(t)
		return
	}
	count.refused++
}

// undo repairs the object. There are changes that the API server lets nobody undo.
func (s *subject) undo(t *testing.T, edit edit, changed *unstructured.Unstructured, count *changes) {
	t.Helper()
	lacking := s.lacks(s.written(t, s.manifest), s.first, changed)
	sent, err := s.repair(t.Context(), s.manifest)
	switch {
	case lacking != "" && apierrors.IsInvalid(err):
		count.stuck++
	case err != nil:
		t.Errorf("%s: %v", edit, err)
	case lacking == "" && len(sent) > 0:
		t.Errorf("%s: sent although all is as wanted:\n%s", edit, strings.Join(sent, "\n"))
	case lacking == "":
		count.left++
	case len(sent) == 0:
		t.Errorf("%s: nothing is sent, although %s is not as wanted", edit, lacking)
	default:
		count.undone++
		s.isUndone(t, edit, changed, sent)
	}
}

// isUndone holds that the object is stored again as it was.
func (s *subject) isUndone(t *testing.T, edit edit, changed *unstructured.Unstructured, sent []string) {
	t.Helper()
	live := s.live(t)
	if live.GetResourceVersion() == changed.GetResourceVersion() {
		t.Errorf("%s: the patch has changed nothing", edit)
	}
	if lacking := s.lacks(s.written(t, s.manifest), s.first, live); lacking != "" {
		t.Errorf("%s: %s is not as it was after\n%s", edit, lacking, strings.Join(sent, "\n"))
	}
}

// written is a manifest as it is written.
func (s *subject) written(t *testing.T, manifest *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	item, err := s.item(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return item.Object
}

// alternatives are words in the place of which another one of the group can be.
var alternatives = [][]string{
	{"TCP", "UDP", "SCTP"},
	{"Always", "IfNotPresent", "Never", "OnFailure"},
	{"RollingUpdate", "Recreate", "OnDelete"},
	{"ClusterFirst", "Default"},
	{"File", "FallbackToLogsOnError"},
	{"HTTP", "HTTPS"},
	{"Exists", "Equal"},
	{"In", "NotIn"},
	{"NoSchedule", "NoExecute", "PreferNoSchedule"},
	{"ScheduleAnyway", "DoNotSchedule"},
	{"Fail", "Ignore"},
	{"Exact", "Equivalent"},
	{"None", "NoneOnDryRun"},
	{"Never", "IfNeeded"},
	{"*", "Namespaced", "Cluster"},
	{"CREATE", "UPDATE", "DELETE"},
	{"Cluster", "Local"},
	{"None", "ClientIP"},
	{"Forbid", "Replace", "Allow"},
	{"Ingress", "Egress"},
	{"Prefix", "Exact"},
	{"Retain", "Delete"},
	{"ReadWriteOnce", "ReadOnlyMany"},
	{"Delete", "Retain"},
	{"Normal", "Warning"},
	{"Deny", "Audit"},
	{"User", "Group"},
	{"ByUser", "ByNamespace"},
	{"A", "B"},
	{"integer", "number"},
	{"Memory", ""},
	{"Persistent", "Ephemeral"},
	{"Container", "Pod"},
	{"RuntimeDefault", "Unconfined"},
	{"AlwaysAllow", "IfHealthyBudget"},
	{"Directory", ""},
	{"Utilization", "AverageValue"},
	{"ALL", "KILL"},
	{"Pods", "Percent"},
	{"Max", "Min"},
	{"Invalid", "Forbidden"},
	{"True", "False"},
	{"v1", "v1beta1"},
}

// otherValues are values to put in the place of one, the likely ones first.
func otherValues(value any) []any {
	switch value := value.(type) {
	case bool:
		return []any{!value}
	case int64:
		return []any{value + 1, value - 1}
	case float64:
		return []any{value + 1}
	case string:
		var others []any
		for _, group := range alternatives {
			if slices.Contains(group, value) {
				for _, other := range group {
					if other != value {
						others = append(others, other)
					}
				}
			}
		}
		return append(others, value+"x", "x"+value, value+"0", "/x"+value, "eHh4eA==", "2025-01-01T00:00:00Z", "2025-01-01T00:00:00.000000Z",
			"10.2.0.0/16", "51%", value+" || true", "1 1 1 1 1")
	}
	return nil
}
