package applier

import (
	"maps"
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

const (
	// firstLook is how long a workload may be on its way before its pods are looked at, and
	// the least time between two looks. Most are there by then.
	firstLook = 5 * time.Second

	// maxLookInterval is the most. The time between two looks doubles until then.
	maxLookInterval = 10 * time.Minute

	// changedLook is the least time between two looks at a workload that changes all the
	// time.
	changedLook = 30 * time.Second

	// manyLooks is after how many looks a workload is one that does.
	manyLooks = 4

	// maxLooks is how many workloads are looked at in one pass; the others in the next one.
	maxLooks = 4

	// nextPass is when that is.
	nextPass = time.Second
)

// diagnoses is what is known of why workloads of one extension do not serve, and when to
// look again.
type diagnoses struct {
	of     map[object.Key]diagnosis
	denied denials
}

// diagnosis is of one workload.
type diagnosis struct {
	// workload is as it was when it was looked at, or found not to serve.
	workload health.Workload
	cause    health.Cause

	// looks are how many there were, looked is the last one; zero before the first.
	looks        int
	looked, next time.Time
}

func newDiagnoses() diagnoses {
	return diagnoses{of: map[object.Key]diagnosis{}, denied: denials{}}
}

// due gives the workloads that are to be looked at now, at most [maxLooks]. Those that
// serve are forgotten.
func (d diagnoses) due(workloads []health.Workload, now time.Time) []health.Workload {
	wanted := map[object.Key]struct{}{}
	var due []health.Workload
	for _, workload := range workloads {
		if !workload.MayBeExplained() {
			continue
		}
		wanted[workload.Key] = struct{}{}
		found, known := d.of[workload.Key]
		switch {
		case !known:
			found = diagnosis{workload: workload, next: firstLookAt(workload, now)}
		case found.workload != workload:
			found.workload = workload
			found.next = found.nextAfterChange()
		}
		d.of[workload.Key] = found
		if !now.Before(found.next) {
			due = append(due, workload)
		}
	}
	// Who has waited longest is first, so that every one has its turn.
	slices.SortStableFunc(due, func(a, b health.Workload) int { return d.of[a.Key].next.Compare(d.of[b.Key].next) })
	due = due[:min(len(due), maxLooks)]
	maps.DeleteFunc(d.of, func(key object.Key, _ diagnosis) bool {
		_, keep := wanted[key]
		return !keep
	})
	return due
}

// nextAfterChange is soon, but for a workload that was looked at often.
func (d diagnosis) nextAfterChange() time.Time {
	wait := firstLook
	if d.looks >= manyLooks {
		wait = changedLook
	}
	if soon := d.looked.Add(wait); !d.looked.IsZero() && soon.Before(d.next) {
		return soon
	}
	return d.next
}

// firstLookAt is at once for a workload that has not served for a while when this process
// first sees it: a restart is not to change what is told.
func firstLookAt(workload health.Workload, now time.Time) time.Time {
	at, latest := workload.Since.Add(firstLook), now.Add(firstLook)
	if workload.Since.IsZero() || at.After(latest) {
		return latest
	}
	return at
}

// note takes in what a look has found. A cause that could not be read stays.
func (d diagnoses) note(workload health.Workload, cause health.Cause, err error, now time.Time) {
	found := d.of[workload.Key]
	if err == nil {
		found.cause = cause.Keep(found.cause)
	}
	wait := firstLook
	for range found.looks {
		wait = min(2*wait, maxLookInterval)
	}
	found.looks++
	found.looked, found.next = now, now.Add(wait)
	d.of[workload.Key] = found
}

// next is when the next workload is to be looked at; zero for never.
func (d diagnoses) next(now time.Time) time.Duration {
	if len(d.of) == 0 {
		return 0
	}
	first := slices.MinFunc(slices.Collect(maps.Values(d.of)), func(a, b diagnosis) int { return a.next.Compare(b.next) })
	return max(first.next.Sub(now), nextPass)
}

// explain puts what is known into the reasons of workloads.
func (d diagnoses) explain(workloads []health.Workload) []health.Workload {
	for i, workload := range workloads {
		if workload.MayBeExplained() {
			workloads[i] = workload.With(d.of[workload.Key].cause)
		}
	}
	return workloads
}
