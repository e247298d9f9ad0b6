package applier

import (
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Workloads are the objects of the installed release that run something, sorted,
// as they were seen last, with the causes that [Applier.Diagnose] has found; false if
// they were not looked at in this process yet. It makes no request.
func (a *Applier) Workloads(owner object.Owner) ([]health.Workload, bool) {
	memory := a.memory(owner)
	known := memory.drift
	looked := known.LookedAt()
	if looked.IsZero() {
		return known.Workloads(), false
	}
	if a.config.Now().Sub(looked) > maxUnseen && slices.ContainsFunc(a.watches.Denied(owner.Name), health.IsKindWithStatus) {
		return health.Unseen(known.Workloads()), true
	}
	workloads, _ := health.Starting(known.Workloads(), a.config.Now())
	return memory.diagnoses.explain(workloads), true
}

// maxUnseen is how long workloads that are not watched are taken to be as they were.
// By then the repair that follows after [recheckInterval] has failed to read them.
const maxUnseen = recheckInterval + time.Minute
