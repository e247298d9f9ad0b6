package controller

import (
	"context"
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
)

const (
	// maxLogged is how many repaired objects of a pass have lines of their own.
	maxLogged = 100

	// maxFields bounds what a line says of the fields of an object, in bytes.
	maxFields = 300
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
	values := []any{keyObject, loggedObject{key.Kind, key.Namespace, key.Name}, "missing", difference.Missing}
	if len(difference.Fields) > 0 {
		values = append(values, "fields", excerpt.Of(difference.Fields, maxFields))
	}
	if len(difference.Managers) > 0 {
		values = append(values, "writtenBy", excerpt.Of(difference.Managers, maxFields))
	}
	return line{"repaired", values}
}

func appliedLine(outcome Outcome) line {
	counts, installed := outcome.Applied.Counts(), outcome.Installed.Bundle
	values := []any{
		keyBundle, installed.Name, keyVersion, installed.Version,
		"created", counts[object.Created], "changed", counts[object.Updated], "removed", counts[object.Deleted],
	}
	if before := outcome.Observed.Installation.Installed; before != nil {
		return line{"upgraded", append([]any{"from", before.Bundle.Version}, values...)}
	}
	return line{"installed", values}
}

func logChanges(ctx context.Context, outcome Outcome) {
	for _, line := range changesOf(outcome) {
		log.FromContext(ctx).Info(line.text, line.values...)
	}
}

// logReason logs why a pass has left the world as it is, which is told at V(0) when it is
// news.
func logReason(ctx context.Context, outcome Outcome, isNews bool) {
	logger := log.FromContext(ctx).WithValues(
		keyAction, outcome.Target.Action,
		keyBundle, outcome.Target.Bundle.Name,
		keyVersion, outcome.Target.Bundle.Version,
	)
	reasons := logger.V(1)
	if isNews {
		reasons = logger
	}
	switch {
	case outcome.Err != nil:
		reasons.Info("not as wanted", keyStage, outcome.Stage, keyReason, loggable(outcome.Err))
	case outcome.Pending != nil:
		reasons.Info("waits for approval", keyReason, loggable(outcome.Pending))
	case outcome.Applied == nil:
		logger.V(1).Info("as wanted")
	}
}

// loggable is an error as one value of a log line. The whole text is in the status.
func loggable(err error) string { return excerpt.Line(excerpt.Message(err.Error()), maxText) }
