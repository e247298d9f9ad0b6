package object

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRan(t *testing.T) {
	t.Parallel()
	job := func(kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "batch/v1", "kind": kind, "metadata": map[string]any{"namespace": "ns", "name": name}, "spec": spec,
		}}
	}
	expiring := map[string]any{"ttlSecondsAfterFinished": int64(0), "backoffLimit": int64(1)}
	noted := job("Job", "a", expiring)
	ran := Ran{}
	ran.Note(KeyOf(noted), noted)
	other := job("Job", "a", expiring)
	other.SetLabels(map[string]string{"version": "2"})
	for name, tc := range map[string]struct {
		manifest     *unstructured.Unstructured
		has, expires bool
	}{
		"F18: the same":                {noted, true, true},
		"F18: with a label":            {other, true, true},
		"F18: as another writer of it": {job("Job", "a", map[string]any{"ttlSecondsAfterFinished": float64(0), "backoffLimit": float64(1)}), true, true},
		"F18: with another spec":       {job("Job", "a", map[string]any{"ttlSecondsAfterFinished": int64(0)}), false, true},
		"F18: that does not expire":    {job("Job", "a", map[string]any{"backoffLimit": int64(1)}), false, false},
		"F18: with an empty field":     {job("Job", "a", map[string]any{"ttlSecondsAfterFinished": nil}), false, false},
		"F18: another":                 {job("Job", "b", expiring), false, true},
		"F18: of another kind":         {job("CronJob", "a", expiring), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if has := ran.Has(KeyOf(tc.manifest), tc.manifest); has != tc.has {
				t.Errorf("it ran: %t", has)
			}
			if expires := Expires(tc.manifest); expires != tc.expires {
				t.Errorf("it expires: %t", expires)
			}
		})
	}
	if Ran(nil).Has(KeyOf(noted), noted) {
		t.Error("an unknown Job counts as done")
	}
}
