package health

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Settling are the workloads that are available, and not yet for long enough to tell that
// they stay so.
type Settling struct {
	// Keys are sorted; none if there is nothing to wait for.
	Keys []object.Key

	// For is how long they have to be available, and Left when all of them will have been.
	For, Left time.Duration

	// Recovered says that none of them comes from a rollout.
	Recovered bool
}

// SettlingOf tells of sorted workloads which have been available for less than a time; zero
// is for no time. The times are those of the cluster, so that a process which has just
// started comes to the same. If they are that far in the future that the clocks of the two
// must differ, they are not waited for.
func SettlingOf(workloads []Workload, least time.Duration, now time.Time) Settling {
	found := Settling{For: least, Recovered: true}
	for _, workload := range workloads {
		left := workload.Since.Add(least).Sub(now)
		if least <= 0 || workload.Available != metav1.ConditionTrue || left <= 0 || left > 2*least {
			continue
		}
		found.Keys = append(found.Keys, workload.Key)
		found.Left = max(found.Left, left)
		found.Recovered = found.Recovered && workload.Recovered
	}
	if len(found.Keys) == 0 {
		return Settling{}
	}
	return found
}
