package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/clusterextensions/operator-controller/test/judge"
)

// Facts are what was amiss on the cluster when a status was written. With none
// the world was as wanted.
type Facts struct {
	// Content is what was amiss with records and objects, or with what a catalog
	// serves.
	Content []string

	// Workloads are those of what is installed that did not serve, and Rollouts
	// those of which other pods served than those of the installed revision.
	Workloads, Rollouts []string
}

// amiss is all of it in one text, empty if the world was as wanted.
func (f Facts) amiss() string {
	return strings.Join(slices.Concat(f.Content, f.Workloads, f.Rollouts), "; ")
}

// The columns of kubectl get that say whether all is well.
const (
	columnReady       = "READY"
	columnInstalled   = "INSTALLED"
	columnProgressing = "PROGRESSING"
)

// Judge compares what a status tells to everybody who reads it with the facts at
// that moment, and gives the lies in it.
func Judge(capture Capture, facts Facts) []string {
	lies := judge.Status(capture.Reading)
	lie := func(format string, args ...any) { lies = append(lies, fmt.Sprintf(format, args...)) }
	if capture.IsDeleted() {
		// What is being deleted is never well, whatever is still there.
		if column := greenRow(capture); column != "" {
			lie("kubectl get prints %s: it is being deleted", column)
		}
		return lies
	}
	if amiss := facts.amiss(); amiss != "" {
		if capture.Kstatus() == kstatus.CurrentStatus {
			lie("kstatus says Current: %s", amiss)
		}
		if capture.WaitReturns("Ready") {
			lie("kubectl wait for Ready returns: %s", amiss)
		}
		if column := greenRow(capture); column != "" {
			lie("kubectl get prints %s: %s", column, amiss)
		}
	}
	if _, found := capture.Row[columnReady]; !found {
		lie("kubectl get has no column %s", columnReady)
	}
	progressing := capture.Condition("Progressing")
	if len(facts.Content) > 0 && progressing.Is("True", "Succeeded") && capture.WaitReturns("Progressing") {
		lie("Progressing is Succeeded: %s", strings.Join(facts.Content, "; "))
	}
	if len(facts.Workloads) > 0 && capture.WaitReturns("Available") {
		lie("Available is True: %s", strings.Join(facts.Workloads, "; "))
	}
	return lies
}

// greenRow names the cells that make a row look as if all were well. A row has no
// place for generations: one that the controller could not have written yet is left
// alone.
func greenRow(capture Capture) string {
	ready, found := capture.Row[columnReady]
	switch {
	case !capture.Observed():
		return ""
	case found && ready == "True":
		return columnReady + " True"
	case !found && capture.Row[columnInstalled] == "True" && capture.Row[columnProgressing] == "True":
		return columnInstalled + " True, " + columnProgressing + " True"
	}
	return ""
}

// Overdue is the lie in captures of a situation in which a person has to act since
// a time: who waits with kstatus is to hear of it within the bound, and to hear
// nothing else afterwards. It is empty if there is none.
func Overdue(captures []Capture, since time.Time, bound time.Duration) string {
	var failed *Capture
	for i, capture := range captures {
		switch {
		case capture.At.Before(since):
		case capture.Kstatus() == kstatus.FailedStatus:
			if failed == nil {
				failed = &captures[i]
			}
		case failed != nil:
			return fmt.Sprintf("kstatus says %s after it said Failed, while a person has to act", capture.Kstatus())
		}
	}
	switch {
	case failed == nil:
		return "kstatus never says Failed, while a person has to act"
	case failed.At.Sub(since) > bound:
		return fmt.Sprintf("kstatus says Failed after %s, while a person has to act; it may take %s", failed.At.Sub(since).Round(time.Second), bound)
	}
	return ""
}
