package controller

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Keys of log lines.
const (
	keyStage   = "stage"
	keyAction  = "action"
	keyBundle  = "bundle"
	keyVersion = "version"
	keyObject  = "object"
	keyObjects = "objects"
	keyReason  = "reason"

	// keyExtensions is how many extensions have a reason in common.
	keyExtensions = "extensions"
)

const (
	// maxLogged is how many objects that a pass has repaired, and how many that it has written
	// otherwise, have lines of their own.
	maxLogged = 100

	// maxLoggedManagers is how many field managers a line names of one object.
	maxLoggedManagers = 5

	// maxLoggedName bounds each name, in bytes.
	maxLoggedName = 300
)

// line is one of the log.
type line struct {
	text   string
	values []any
}

// changesOf are the lines about what a pass has changed in the world: one for each object
// that it has written, and one for the whole.
func changesOf(outcome Outcome) []line {
	lines := append(repairedLines(outcome.Repair), warningLines(outcome.Repair)...)
	if n := outcome.Repair.TakenOver(); n > 0 {
		lines = append(lines, line{"took over", []any{keyObjects, n}})
	}
	if outcome.Applied != nil {
		lines = append(lines, writtenLines(*outcome.Applied)...)
		lines = append(lines, appliedLine(outcome))
		lines = append(lines, warningLines(*outcome.Applied)...)
	}
	return lines
}

// repairedLines are about what was put back, and then about what was written otherwise:
// objects that were only taken over, or were deferred, are not repaired.
func repairedLines(repair installation.Result) []line {
	var repaired, others []line
	for _, key := range object.KeysOf(repair.Differences) {
		difference := repair.Differences[key]
		switch isEmpty := !difference.Missing && len(difference.Fields) == 0; {
		case isEmpty:
		case difference.Due && difference.Missing:
			others = append(others, lineAbout("created", key, difference))
		case difference.Due, difference.OnlyOwners:
			others = append(others, lineAbout("changed", key, difference))
		default:
			repaired = append(repaired, repairedLine(key, difference))
		}
	}
	others = append(others, certifiedLines(repair)...)
	return append(bounded(repaired, "repaired more"), bounded(others, "wrote more")...)
}

// writtenLines are about what an installation or an upgrade has written. What was deleted
// comes first, and is told of in any case before what was only changed.
func writtenLines(applied installation.Result) []line {
	var deleted, others []line
	for _, key := range object.KeysOf(applied.Changes) {
		if applied.Changes[key] == object.Deleted {
			deleted = append(deleted, lineAbout("deleted", key, object.Difference{}))
		}
		if applied.Changes[key] == object.Released {
			deleted = append(deleted, lineAbout("released", key, object.Difference{}))
		}
	}
	for _, key := range object.KeysOf(applied.Differences) {
		switch difference := applied.Differences[key]; {
		case difference.Replaced:
			deleted = append(deleted, lineAbout("replaced", key, difference))
		case difference.Missing:
			others = append(others, lineAbout("created", key, difference))
		default:
			others = append(others, lineAbout("changed", key, difference))
		}
	}
	return bounded(slices.Concat(deleted, others, certifiedLines(applied), voidLines(applied)), "wrote more")
}

func certifiedLines(result installation.Result) []line {
	var lines []line
	for _, key := range object.KeysOf(result.Certified) {
		for _, difference := range result.Certified[key] {
			lines = append(lines, lineAbout("changed", key, difference))
		}
	}
	return lines
}

// warningLines are about what the API server had to say about requests.
func warningLines(result installation.Result) []line {
	var lines []line
	for _, text := range result.Warnings {
		lines = append(lines, line{"the API server warns", []any{keyReason, excerpt.Line(excerpt.Scrub(text), maxText)}})
	}
	return bounded(lines, "the API server warns of more")
}

// voidLines are about requests that have changed nothing: nothing else tells of these, and
// the API server pays for them.
func voidLines(result installation.Result) []line {
	var lines []line
	for _, key := range object.KeysOf(result.Void) {
		lines = append(lines, lineAbout("a patch changed nothing", key, result.Void[key]))
	}
	return lines
}

// bounded are lines of which there may be any number, and what is said of those left out.
func bounded(lines []line, more string) []line {
	if left := len(lines) - maxLogged; left > 0 {
		return append(lines[:maxLogged:maxLogged], line{more, []any{keyObjects, left}})
	}
	return lines
}

// lineAbout names an object and the fields of it that are concerned, and has some values
// in between.
func lineAbout(text string, key object.Key, difference object.Difference, values ...any) line {
	values = append([]any{keyObject, key.Logged()}, values...)
	if len(difference.Fields) > 0 {
		values = append(values, "fields", difference.LoggedFields())
	}
	return line{text, values}
}

func repairedLine(key object.Key, difference object.Difference) line {
	made := lineAbout("repaired", key, difference, "missing", difference.Missing)
	if len(difference.Managers) > 0 {
		made.values = append(made.values, "writtenBy", writersOf(difference.Managers))
	}
	return made
}

func writersOf(managers []string) string {
	named := inLine(object.NameManagers(managers[:min(len(managers), maxLoggedManagers)]))
	if more := len(managers) - maxLoggedManagers; more > 0 {
		return fmt.Sprintf("%s and %d others", named, more)
	}
	return named
}

func inLine(name string) string { return excerpt.Line(name, maxLoggedName) }

// appliedLine is about a revision, or about the part of it that was written before
// something went wrong.
func appliedLine(outcome Outcome) line {
	counts, applied := outcome.Applied.Counts(), outcome.Target.Bundle
	values := []any{
		keyBundle, applied.Name, keyVersion, applied.Version,
		"created", counts[object.Created], "changed", counts[object.Updated], "removed", counts[object.Deleted],
	}
	before := outcome.Observed.Installation.Installed
	if before != nil && before.Bundle != applied {
		values = append([]any{"from", before.Bundle.Version}, values...)
	}
	switch {
	case outcome.Began:
		return line{"applied in part", values}
	case before == nil:
		return line{"installed", values}
	case before.Bundle == applied:
		return line{"applied anew", values}
	default:
		return line{"upgraded", values}
	}
}

// logChanges logs the void patches of a repair at V(1): there is one each time that somebody
// touches such an object, and nothing slows that down.
func logChanges(ctx context.Context, outcome Outcome) {
	logger := log.FromContext(ctx)
	for _, line := range changesOf(outcome) {
		logger.Info(line.text, line.values...)
	}
	for _, line := range bounded(voidLines(outcome.Repair), "more patches changed nothing") {
		logger.V(1).Info(line.text, line.values...)
	}
}

// logReason logs why a pass has left the world as it is: at V(0) if that is another reason
// than the one that was logged there last. Of a reason that many extensions have in common it
// is logged each time that they have become twice as many, and for the one that is left alone
// with it. What waits for somebody to agree asks them for each.
func (r *Reconciler) logReason(ctx context.Context, extension string, outcome Outcome, member membership) {
	reason := reasonOf(outcome)
	if reason.text == "" {
		r.reasons.Delete(extension)
		if outcome.Applied == nil {
			log.FromContext(ctx).V(1).Info("as wanted", reason.values...)
		}
		return
	}
	verbosity, text := 1, fmt.Sprint(reason)
	before, known := r.reasons.Load(extension)
	if isOld := known && before == text; !isOld && (r.cohorts.tell(extension) || member.size <= 1 || outcome.waitsFor() != nil) {
		verbosity = 0
		r.reasons.Store(extension, text)
	}
	if member.size > 1 {
		reason.values = append(reason.values, keyExtensions, member.size)
	}
	log.FromContext(ctx).V(verbosity).Info(reason.text, reason.values...)
}

// reasonOf is without a text if nothing stands in the way.
func reasonOf(outcome Outcome) line {
	target := outcome.Target
	values := []any{keyAction, target.Action, keyBundle, target.Bundle.Name, keyVersion, target.Bundle.Version}
	switch {
	case outcome.Err != nil:
		return line{"not as wanted", append(values, keyStage, outcome.Stage, keyReason, loggable(outcome.Err))}
	case outcome.Pending != nil:
		waits := outcome.Pending.Bundle
		values = []any{keyAction, target.Action, keyBundle, waits.Name, keyVersion, waits.Version}
		return line{"waits for approval", append(values, keyReason, loggable(outcome.Pending))}
	case outcome.Veto != nil:
		return line{"waits for the operator", append(values, keyReason, loggable(outcome.Veto))}
	default:
		return line{"", values}
	}
}

// loggable is an error as one value of a log line. The whole text is in the status.
func loggable(err error) string {
	return excerpt.Line(excerpt.Scrub(excerpt.Message(err.Error())), maxText)
}
