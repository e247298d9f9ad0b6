package controller

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

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
	// maxLogged is how many repaired objects of a pass have lines of their own.
	maxLogged = 100

	// maxLoggedManagers is how many field managers a line names of one object.
	maxLoggedManagers = 5

	// maxLoggedName bounds each name, and all that a line says of fields, in bytes.
	maxLoggedName = 300
)

// line is one of the log.
type line struct {
	text   string
	values []any
}

// changesOf are the lines about what a pass has changed in the world, one for each change.
func changesOf(outcome Outcome) []line {
	var lines []line
	if n := outcome.Repair.TakenOver(); n > 0 {
		lines = append(lines, line{"took over", []any{keyObjects, n}})
	}
	// Of a certificate that was issued it is told where that happens.
	repaired := slices.DeleteFunc(outcome.Repair.Repaired(), func(key object.Key) bool {
		difference := outcome.Repair.Differences[key]
		return !difference.Missing && len(difference.Fields) == 0
	})
	for _, key := range repaired[:min(len(repaired), maxLogged)] {
		lines = append(lines, repairedLine(key, outcome.Repair.Differences[key]))
	}
	if more := len(repaired) - maxLogged; more > 0 {
		lines = append(lines, line{"repaired more", []any{keyObjects, more}})
	}
	if outcome.Applied != nil {
		lines = append(lines, appliedLine(outcome))
	}
	return lines
}

// loggedObject is an object as a value of a line.
type loggedObject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func repairedLine(key object.Key, difference object.Difference) line {
	named := loggedObject{Kind: inLine(key.Kind), Namespace: inLine(key.Namespace), Name: inLine(key.Name)}
	values := []any{keyObject, named, "missing", difference.Missing}
	if len(difference.Fields) > 0 {
		fields := excerpt.Of(difference.Fields, maxLoggedName)
		if difference.More > 0 {
			fields = fmt.Sprintf("%s, of %d", fields, len(difference.Fields)+difference.More)
		}
		values = append(values, "fields", fields)
	}
	if len(difference.Managers) > 0 {
		values = append(values, "writtenBy", writersOf(difference.Managers))
	}
	return line{"repaired", values}
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

func logChanges(ctx context.Context, outcome Outcome) {
	for _, line := range changesOf(outcome) {
		log.FromContext(ctx).Info(line.text, line.values...)
	}
}

// logReason logs why a pass has left the world as it is: at V(0) if that is another reason
// than the one that was logged last. Of a reason that many extensions have in common it is
// logged each time that they have become twice as many. What waits for approval asks a person
// for each.
func (r *Reconciler) logReason(ctx context.Context, extension string, outcome Outcome, member membership) {
	reason := reasonOf(outcome)
	if reason.text == "" {
		r.reasons.Delete(extension)
		if outcome.Applied == nil {
			log.FromContext(ctx).V(1).Info("as wanted", reason.values...)
		}
		return
	}
	verbosity, text := 0, fmt.Sprint(reason)
	before, known := r.reasons.Swap(extension, text)
	if isOld := known && before == text; isOld || member.size > 1 && !member.doubled && outcome.Pending == nil {
		verbosity = 1
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
		return line{"waits for approval", append(values, keyReason, loggable(outcome.Pending))}
	default:
		return line{"", values}
	}
}

// loggable is an error as one value of a log line. The whole text is in the status.
func loggable(err error) string {
	return excerpt.Line(excerpt.Scrub(excerpt.Message(err.Error())), maxText)
}
