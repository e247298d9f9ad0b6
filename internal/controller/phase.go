package controller

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// phase is where an extension stands, for those who wait for it: at rest, at
// work, or stuck. It decides on Ready, Reconciling and Stalled, of which at most
// one is True.
type phase struct {
	// working and stalled are not both set. With neither it is at rest, whether
	// or not the workloads are available.
	working, stalled bool

	// overdue says that the deadline of the spec has passed.
	overdue bool

	// reason and message say what the work waits for, or why there is none. whole
	// is the message for Progressing, if that is not the one of the verdict.
	reason, message, whole string

	// remaining is when the phase changes though nothing happens; zero for never.
	remaining time.Duration

	// efforts are for the next pass.
	efforts efforts
}

// stallAfter is how long each try, or each look, may come to the same before a
// person has to act. A controller that retries does not know what goes away by
// itself; that nothing changes for so long tells that whoever waits should look.
const stallAfter = 2 * time.Minute

// efforts are what is remembered of the passes over one generation of a spec, and
// what time is measured by.
type efforts struct {
	generation int64

	// since is when the work began; zero when there is none.
	since time.Time

	// answers are what passes came to since same, each once; none when there is nothing
	// to wait for, or when it gets on.
	answers []string
	same    time.Time
}

// maxAnswers is how many answers count as new. A cause that has another text each time
// would otherwise be waited for without end, as would several that take turns.
const maxAnswers = 8

// with takes in what a pass came to. The time begins anew with what was not heard
// before.
func (e efforts) with(answer string, now time.Time) (answers []string, same time.Time) {
	if len(e.answers) > 0 && (slices.Contains(e.answers, answer) || len(e.answers) >= maxAnswers) {
		return e.answers, e.same
	}
	return append(slices.Clip(e.answers), answer), now
}

// phaseOf looks at what a pass came to and at how long that has been so.
func phaseOf(ext *ocv1.ClusterExtension, outcome Outcome, v verdict, before efforts, now time.Time) phase {
	if before.generation != ext.Generation {
		before = recall(ext, now)
	}
	p, clocks := workOf(outcome, v)
	settled := p.remaining
	p.efforts.generation = ext.Generation
	if clocks.deadline {
		p.efforts.since = before.since
		if before.since.IsZero() {
			p.efforts.since = now
		}
		deadline := deadlineOf(ext)
		if p.remaining = deadline - now.Sub(p.efforts.since); deadline > 0 && p.remaining <= 0 {
			late := overdue(ext, v, p)
			late.remaining = settled
			return late
		}
		p.remaining = sooner(max(p.remaining, 0), settled)
	}
	if clocks.answer {
		p.efforts.answers, p.efforts.same = before.with(answerOf(p.reason, p.message), now)
		left := stallAfter - now.Sub(p.efforts.same)
		if left <= 0 {
			p.working, p.stalled = false, true
		} else {
			p.remaining = sooner(p.remaining, left)
		}
	}
	return p
}

// overdue is the phase of work that has taken too long.
func overdue(ext *ocv1.ClusterExtension, v verdict, working phase) phase {
	prefix := fmt.Sprintf("not done within %d minutes: ", ext.Spec.ProgressDeadlineMinutes)
	whole := working.message
	if v.disposition != Settled {
		whole = v.message
	}
	return phase{
		stalled: true, overdue: true, reason: ocv1.ReasonProgressDeadlineExceeded, efforts: working.efforts,
		message: excerpt.Line(prefix+working.message, maxText), whole: prefix + whole,
	}
}

// clocks are what time is measured for.
type clocks struct{ deadline, answer bool }

// workOf is the phase as far as it does not depend on time.
func workOf(outcome Outcome, v verdict) (phase, clocks) {
	available, _ := availability(outcome)
	text := workloadsText(outcome)
	switch {
	case v.disposition == Blocked:
		return phase{stalled: true, reason: v.reason, message: v.summary}, clocks{}
	case v.disposition == Working:
		return phase{working: true, reason: v.reason, message: v.summary}, clocks{deadline: true}
	case v.disposition != Settled:
		return phase{working: true, reason: v.reason, message: v.summary}, clocks{deadline: true, answer: true}
	case outcome.Suspended != nil:
		// What runs goes on running, and nobody works on it.
		if available == metav1.ConditionTrue {
			return phase{reason: ocv1.ReasonSuspended, message: v.message}, clocks{}
		}
		return phase{reason: availableReasons[available], message: text}, clocks{}
	case outcome.waitsForHook():
		return phase{working: true, reason: ocv1.ReasonRollingOut, message: v.message}, clocks{deadline: true}
	case outcome.hasMore():
		return phase{working: true, reason: ocv1.ReasonRollingOut, message: settledText(outcome)}, clocks{deadline: true}
	case hasFailed(outcome):
		return phase{stalled: true, reason: ocv1.ReasonRolloutFailed, message: "a rollout has failed: " + text}, clocks{deadline: true}
	case slices.ContainsFunc(outcome.Workloads, func(w health.Workload) bool { return w.RollingOut }):
		return phase{working: true, reason: ocv1.ReasonRollingOut, message: text}, clocks{deadline: true}
	case available != metav1.ConditionTrue:
		return phase{reason: availableReasons[available], message: text}, clocks{answer: true}
	case outcome.Settling.Recovered:
		// It is unavailable until it stays: one that ends again and again is the same all along.
		return phase{reason: ocv1.ReasonUnavailable, message: settlingText(outcome), remaining: outcome.Settling.Left}, clocks{answer: true}
	case outcome.isSettling():
		return phase{working: true, reason: ocv1.ReasonRollingOut, message: settlingText(outcome), remaining: outcome.Settling.Left}, clocks{deadline: true}
	default:
		return phase{reason: ocv1.ReasonSucceeded, message: v.summary}, clocks{}
	}
}

// workloadsText is what is amiss with the workloads, and where to look if somebody
// has to.
func workloadsText(outcome Outcome) string {
	status, reasons := availability(outcome)
	text := excerpt.Of(reasons, maxWorkloads)
	if status == metav1.ConditionFalse || hasFailed(outcome) {
		text += "; " + lookAt(outcome)
	}
	return text
}

// isSettling says that all there is to wait for is that workloads stay available.
func (o *Outcome) isSettling() bool { return len(o.Settling.Keys) > 0 }

// settlingText does not change while time passes.
func settlingText(outcome Outcome) string {
	names := make([]string, len(outcome.Settling.Keys))
	for i, key := range outcome.Settling.Keys {
		names[i] = key.String()
	}
	return fmt.Sprintf("available, and has to stay so for %s: %s", outcome.Settling.For, excerpt.Of(names, maxList))
}

// hasFailed says that a rollout gets no further.
func hasFailed(outcome Outcome) bool {
	return slices.ContainsFunc(outcome.Workloads, func(w health.Workload) bool { return w.Stuck })
}

func deadlineOf(ext *ocv1.ClusterExtension) time.Duration {
	return time.Duration(ext.Spec.ProgressDeadlineMinutes) * time.Minute
}

func answerOf(reason, message string) string { return reason + ": " + excerpt.Message(message) }

// recall makes up for efforts that no process remembers, and begins those of another
// generation, from our own status. What has passed of a time that is not over is
// forgotten where it does not say: what is shown once stays shown, and the rest comes
// later.
func recall(ext *ocv1.ClusterExtension, now time.Time) efforts {
	known := efforts{generation: ext.Generation}
	stalled := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeStalled)
	working := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReconciling)
	switch {
	case isOf(stalled, ext) && stalled.Reason == ocv1.ReasonProgressDeadlineExceeded:
		known.since = now.Add(-deadlineOf(ext))
	case isOf(stalled, ext):
		known.same = stalled.LastTransitionTime.Add(-stallAfter)
		known.since, known.answers = known.same, []string{answerOf(stalled.Reason, stalled.Message)}
	case isOf(working, ext):
		known.since = working.LastTransitionTime.Time
	}
	return known
}

func isOf(condition *metav1.Condition, ext *ocv1.ClusterExtension) bool {
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == ext.Generation
}

// availability of all workloads together, and what is amiss with them.
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
		if workload.Reason != "" {
			reasons = append(reasons, fmt.Sprintf("%s: %s", workload.Key, workload.Reason))
		}
	}
	return status, reasons
}
