package health_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestSettlingOf(t *testing.T) {
	t.Parallel()
	const least = 5 * time.Second
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	key := func(name string) object.Key { return object.Key{GroupKind: health.DeploymentKind, Name: name} }
	since := func(name string, ago time.Duration) health.Workload {
		return health.Workload{Key: key(name), Available: metav1.ConditionTrue, Since: now.Add(-ago)}
	}
	recovered := func(name string, ago time.Duration) health.Workload {
		workload := since(name, ago)
		workload.Recovered = true
		return workload
	}
	down := since("d", time.Second)
	down.Available = metav1.ConditionFalse
	tests := map[string]struct {
		reason    string
		workloads []health.Workload
		least     time.Duration
		want      health.Settling
	}{
		"none":                 {least: least},
		"long ago":             {workloads: []health.Workload{since("a", time.Hour)}, least: least},
		"just long enough":     {workloads: []health.Workload{since("a", least)}, least: least},
		"the cluster says not": {workloads: []health.Workload{{Key: key("a"), Available: metav1.ConditionTrue}}, least: least},
		"nothing is asked for": {workloads: []health.Workload{since("a", 0)}},
		"it does not serve":    {workloads: []health.Workload{down}, least: least},
		"not yet": {
			workloads: []health.Workload{since("a", 2*time.Second)}, least: least,
			want: health.Settling{Keys: []object.Key{key("a")}, For: least, Left: 3 * time.Second},
		},
		"the last one counts": {
			workloads: []health.Workload{since("a", 4*time.Second), since("b", time.Minute), since("c", time.Second)}, least: least,
			want: health.Settling{Keys: []object.Key{key("a"), key("c")}, For: least, Left: 4 * time.Second},
		},
		"all were down for a while": {
			workloads: []health.Workload{recovered("a", 2*time.Second), since("b", time.Hour)}, least: least,
			want: health.Settling{Keys: []object.Key{key("a")}, For: least, Left: 3 * time.Second, Recovered: true},
		},
		"one of two was down for a while": {
			workloads: []health.Workload{recovered("a", 2*time.Second), since("b", time.Second)}, least: least,
			want: health.Settling{Keys: []object.Key{key("a"), key("b")}, For: least, Left: 4 * time.Second},
		},
		"the clock of the cluster is a little ahead": {
			workloads: []health.Workload{since("a", -time.Second)}, least: least,
			want: health.Settling{Keys: []object.Key{key("a")}, For: least, Left: 6 * time.Second},
		},
		"the clock of the cluster is an hour ahead": {
			reason:    "who waits for Ready must not wait for that",
			workloads: []health.Workload{since("a", -time.Hour)}, least: least,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, health.SettlingOf(tc.workloads, tc.least, now)); diff != "" {
				t.Errorf("SettlingOf() (-want +got):\n%s\n%s", diff, tc.reason)
			}
		})
	}
}
