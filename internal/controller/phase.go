package controller

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// phase is where an extension stands, for those who wait for it: at rest, at
// work, or stuck. It decides on Ready, Reconciling and Stalled, of which at most
// one is True.
type phase struct {
	// working and stalled are not both set. With neither it is at rest, whether
	// or not the workloads are available.
	working, stalled bool

	// reason and message say what the work waits for, or why there is none.
	reason, message string

	// remaining is what is left of the time for the work; zero for no end.
	remaining time.Duration
}

// phaseOf looks at what a pass came to and, for how long that has been so, at the
// status that it will replace.
func phaseOf(ext *ocv1.ClusterExtension, outcome Outcome, v verdict, now time.Time) phase {
	switch {
	case v.disposition == Blocked:
		return phase{stalled: true, reason: v.reason, message: v.message}
	case v.disposition == Settled && !outcome.unfinished() && !rollingOut(outcome.Workloads):
		return phase{reason: v.reason, message: v.message}
	}
	p := phase{working: true, reason: v.reason, message: v.message}
	if v.disposition == Settled {
		p.reason, p.message = ocv1.ReasonRollingOut, rolloutText(outcome)
	}
	deadline := time.Duration(ext.Spec.ProgressDeadlineMinutes) * time.Minute
	if deadline == 0 {
		return p
	}
	if p.remaining = deadline - now.Sub(workingSince(ext, now)); p.remaining <= 0 {
		return phase{
			stalled: true, reason: ocv1.ReasonProgressDeadlineExceeded,
			message: fmt.Sprintf("not done within %d minutes: %s", ext.Spec.ProgressDeadlineMinutes, p.message),
		}
	}
	return p
}

// rolloutText is what a rollout waits for.
func rolloutText(outcome Outcome) string {
	if outcome.unfinished() {
		return settledText(outcome)
	}
	_, reasons := availability(outcome)
	return oneLine(named(reasons))
}

// workingSince is when the work for the present spec began. It is the one thing
// that is read from our own status: nothing else on the cluster remembers it.
// When it is lost the time begins anew.
func workingSince(ext *ocv1.ClusterExtension, now time.Time) time.Time {
	exceeded := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeStalled)
	if isOf(exceeded, ext) && exceeded.Reason == ocv1.ReasonProgressDeadlineExceeded {
		return time.Time{}
	}
	if working := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReconciling); isOf(working, ext) {
		return working.LastTransitionTime.Time
	}
	return now
}

func isOf(condition *metav1.Condition, ext *ocv1.ClusterExtension) bool {
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == ext.Generation
}

// rollingOut says that workloads are on their way to the installed revision.
func rollingOut(workloads []Workload) bool {
	for _, workload := range workloads {
		if !workload.RolledOut && !workload.Stuck {
			return true
		}
	}
	return false
}

// availability of all workloads together, and the reasons of those that are not
// available, or not rolled out.
func availability(outcome Outcome) (metav1.ConditionStatus, []string) {
	if outcome.WorkloadsUnseen {
		return metav1.ConditionUnknown, []string{"they could not be looked at yet"}
	}
	status := metav1.ConditionTrue
	var reasons []string
	for _, workload := range outcome.Workloads {
		switch {
		case workload.Available == metav1.ConditionFalse:
			status = metav1.ConditionFalse
		case workload.Available == metav1.ConditionUnknown && status == metav1.ConditionTrue:
			status = metav1.ConditionUnknown
		}
		if workload.Available != metav1.ConditionTrue || !workload.RolledOut {
			reasons = append(reasons, fmt.Sprintf("%s: %s", workload.Name, workload.Reason))
		}
	}
	return status, reasons
}
