package overview

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// SchemaVersion is that of the form that programs read. It changes when a program that
// knows the one before would be wrong.
const SchemaVersion = 1

const (
	// maxRows is how many extensions a table has.
	maxRows = 10_000

	// maxMessageBytes is how long the message of a row or an object is, in bytes.
	maxMessageBytes = 4_000

	// maxValueBytes is how long any other text of a row is, in bytes.
	maxValueBytes = 100
)

// Health is where an extension stands, in one word.
type Health string

// Of these, an extension has the first one that is so.
const (
	// Stalled is one that a person has to look at.
	Stalled Health = "Stalled"

	// Terminating is one that is being deleted.
	Terminating Health = "Terminating"

	// Waiting is one whose spec no controller has looked at yet.
	Waiting Health = "Waiting"

	// Suspended is one whose spec suspends it, without another problem.
	Suspended Health = "Suspended"

	// Reconciling is one that is being worked on.
	Reconciling Health = "Reconciling"

	// Ready is one that is as wanted.
	Ready Health = "Ready"

	// NotReady is one that is not, with nothing under way.
	NotReady Health = "NotReady"

	// Unknown is one of which its status does not tell.
	Unknown Health = "Unknown"

	// Deleted is one that is gone. [HealthOf] never says so: whoever follows extensions does.
	Deleted Health = "Deleted"
)

// What an upgrade waits for.
const (
	// ForApproval is that a person agrees to it.
	ForApproval = "approval"

	// ForOperator is that the operator which is installed lets it go.
	ForOperator = "operator"
)

// Row is an extension as a line of a table. Texts are printable, in one line.
type Row struct {
	Name string `json:"name"`

	// Package is empty for an extension that is from no catalog.
	Package string `json:"package,omitempty"`

	// Installed is the version that is; empty for none.
	Installed string `json:"installed,omitempty"`

	// Available is the version of the upgrade that waits for approval; empty for none, and for
	// one that the operator holds, of which no status says it.
	Available string `json:"available,omitempty"`

	// Pending is what an upgrade waits for; empty if none waits. Since is from when on, if
	// that is known.
	Pending string     `json:"pending,omitempty"`
	Since   *time.Time `json:"since,omitempty"`

	Health  Health `json:"health"`
	Message string `json:"message,omitempty"`
}

// Table is a list of extensions.
type Table struct {
	SchemaVersion int   `json:"schemaVersion"`
	Extensions    []Row `json:"extensions"`

	// More is how many there are besides.
	More int `json:"more,omitempty"`
}

// Make makes a table of extensions, by their names.
func Make(extensions []ocv1.ClusterExtension) Table {
	table := Table{SchemaVersion: SchemaVersion, Extensions: make([]Row, 0, len(extensions))}
	for i := range extensions {
		table.Extensions = append(table.Extensions, RowOf(&extensions[i]))
	}
	slices.SortFunc(table.Extensions, func(a, b Row) int { return cmp.Compare(a.Name, b.Name) })
	if len(table.Extensions) > maxRows {
		table.Extensions, table.More = table.Extensions[:maxRows], len(extensions)-maxRows
	}
	return table
}

// RowOf is the line of one extension.
func RowOf(ext *ocv1.ClusterExtension) Row {
	row := Row{Name: line(ext.Name), Package: line(ext.Package())}
	if installed := ext.Status.Install; installed != nil {
		row.Installed = line(installed.Bundle.Version)
	}
	ready := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReady)
	if pending := ext.Status.Pending; pending != nil {
		since := pending.Since.UTC()
		row.Available, row.Pending, row.Since = line(pending.Bundle.Version), ForApproval, &since
	} else if ready != nil && ready.Reason == ocv1.ReasonUpgradeHeld {
		row.Pending = ForOperator
	}
	health, message := HealthOf(ext.Status.Conditions, LifecycleOf(ext))
	row.Health = health
	row.Message = excerpt.Line(message, maxMessageBytes)
	return row
}

func line(text string) string { return excerpt.Line(text, maxValueBytes) }

// LifecycleOf is that of an extension.
func LifecycleOf(ext *ocv1.ClusterExtension) Lifecycle {
	return Lifecycle{
		IsCurrent: ext.Status.ObservedGeneration >= ext.Generation,
		Deleting:  !ext.DeletionTimestamp.IsZero(),
		Suspended: meta.IsStatusConditionTrue(ext.Status.Conditions, ocv1.TypeSuspended),
	}
}

// Lifecycle is what decides about the health of an extension or a catalog besides its conditions.
type Lifecycle struct {
	// IsCurrent says that the conditions are about the spec as it is.
	IsCurrent bool
	// Deleting says that it is on its way out, Suspended that its spec wants nothing to be done.
	Deleting, Suspended bool
}

// HealthOf is how an extension or a catalog is by its conditions, and the message of the one
// that decides.
func HealthOf(conditions []metav1.Condition, at Lifecycle) (Health, string) {
	ready := meta.FindStatusCondition(conditions, ocv1.TypeReady)
	message := ""
	if ready != nil {
		message = ready.Message
	}
	stalled := meta.FindStatusCondition(conditions, ocv1.TypeStalled)
	isCurrent := at.IsCurrent && len(conditions) > 0
	switch {
	case isCurrent && stalled != nil && stalled.Status == metav1.ConditionTrue:
		return Stalled, cmp.Or(stalled.Message, message)
	case at.Deleting:
		return Terminating, message
	case !isCurrent:
		return Waiting, "no controller has looked at this spec yet"
	case at.Suspended && !isProblem(ready):
		return Suspended, message
	case meta.IsStatusConditionTrue(conditions, ocv1.TypeReconciling):
		return Reconciling, message
	case ready == nil:
		return Unknown, "its status has no condition Ready"
	case ready.Status == metav1.ConditionTrue:
		return Ready, message
	case ready.Status == metav1.ConditionFalse:
		return NotReady, message
	}
	return Unknown, message
}

// isProblem reports whether Ready says more than that the extension is suspended.
func isProblem(ready *metav1.Condition) bool {
	return ready != nil && ready.Status != metav1.ConditionTrue && ready.Reason != ocv1.ReasonSuspended
}
