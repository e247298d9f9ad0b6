package classic

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// State is whether an operator can become a ClusterExtension.
type State string

// States.
const (
	// Eligible operators can be moved.
	Eligible State = "Eligible"
	// Ineligible ones cannot, until what blocks is mended.
	Ineligible State = "Ineligible"
	// AlreadyMigrated ones have an extension, and no Subscription any more.
	AlreadyMigrated State = "AlreadyMigrated"
	// Conflict: there are both, or a move has not ended. It is to be completed or taken back.
	Conflict State = "Conflict"
)

// Severity is what a finding comes to.
type Severity string

// Severities.
const (
	// Blocks: the operator is not moved.
	Blocks Severity = "blocks"
	// Attention: a person has to know, and to agree.
	Attention Severity = "needs attention"
	// Note: worth knowing.
	Note Severity = "note"
)

// Finding is one answer of a check.
type Finding struct {
	// Check is the number of the check.
	Check    string
	Severity Severity
	// Object is what the finding is about.
	Object object.Key
	// Text says what it is, and what to do; in one line.
	Text string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s %s: %s: %s", f.Check, f.Severity, f.Object, f.Text)
}

// maxFinding bounds the text of a finding in bytes.
const maxFinding = 1000

// Offer is a ClusterCatalog that is served and has the package of an operator.
type Offer struct {
	Catalog  string
	Priority int32
	// Image is what it serves, as it is written there.
	Image string

	DefaultChannel string
	// Channels are those that have the installed bundle, sorted; none if the catalog has it not.
	Channels []string
}

// Prospect is what the controller would do with the extension, as far as somebody has asked.
type Prospect struct {
	// Refused says why it would choose no bundle; empty if it would choose the installed one.
	// Unmet is what the bundle requires, if it is for that, a line each.
	Refused string
	Unmet   []string
	// InTheWay are other reasons why it would do nothing, such as objects of others.
	InTheWay []string

	// NoAccount says that there is no such ServiceAccount. Otherwise Missing are the rights that
	// it lacks.
	NoAccount bool
	Missing   []string
	// Unknown is what could not be found out.
	Unknown []string
}

// Examination is all that the checks are held against.
type Examination struct {
	Cluster  *Cluster
	Operator *Operator
	Choice   Choice

	// Offers are the catalogs that have the package, and Unread are those that could not be read,
	// with why.
	Offers []Offer
	Unread []string

	// Prospect is nil where nobody has asked.
	Prospect *Prospect

	// Moves says of a Subscription that it moves in the same go.
	Moves func(types.NamespacedName) bool
}

// Verdict is what the checks have come to.
type Verdict struct {
	State    State
	Findings []Finding
}

// Verdict holds an operator against all checks. Findings are in the order of the checks.
func (e *Examination) Verdict() Verdict {
	op := e.Operator
	switch {
	case op.Extension != nil && (op.Subscription != nil || isMoving(op.Extension)):
		if op.Subscription != nil && hasMoved(op.Extension) {
			return Verdict{State: Conflict, Findings: []Finding{finding("G17", Blocks, op.subscriptionKey(),
				"ClusterExtension %q has moved, and somebody has made its Subscription again, so that both have the operator: `kubectl extension migrate rollback %s` gives it to classic OLM; before you move it once more, take the Subscription out of where it comes from, such as git",
				op.Extension.Name, op.Extension.Name)}}
		}
		text := fmt.Sprintf("ClusterExtension %q was made from it, and its move has not ended; `kubectl extension migrate cleanup %s` completes it, and `kubectl extension migrate rollback %s` takes it back",
			op.Extension.Name, op.Extension.Name, op.Extension.Name)
		return Verdict{State: Conflict, Findings: []Finding{finding("G17", Blocks, op.subscriptionKey(), "%s", text)}}
	case op.Subscription == nil:
		return Verdict{State: AlreadyMigrated}
	}
	found := Verdict{State: Eligible}
	for _, check := range []func(*Examination) []Finding{
		checkInstalled, checkDependency, checkOffers, checkRequirements, checkAPIs, checkNamespaces, checkAccount,
		checkConditions, checkRightsToClassic, checkDefinitions, checkConversion, checkCleanup, checkSelector,
		checkAnnotations, checkInstaller, checkChangedRights, checkName, checkProspect,
	} {
		found.Findings = append(found.Findings, check(e)...)
	}
	if slices.ContainsFunc(found.Findings, func(one Finding) bool { return one.Severity == Blocks }) {
		found.State = Ineligible
	}
	return found
}

// isMoving says that a move of the extension was begun and has not ended. One that another tool has made has no
// record, and neither does one of which the record is damaged say that it has ended.
func isMoving(ext *ocv1.ClusterExtension) bool {
	record, err := RecordOf(ext)
	return err != nil || record != nil && !record.Done
}

// hasMoved says that a move of the extension has come to its end.
func hasMoved(ext *ocv1.ClusterExtension) bool {
	record, err := RecordOf(ext)
	return err == nil && record != nil && record.Done
}

// finding makes one whose text is one line.
func finding(check string, severity Severity, about object.Key, format string, args ...any) Finding {
	return Finding{Check: check, Severity: severity, Object: about, Text: excerpt.Line(fmt.Sprintf(format, args...), maxFinding)}
}

func one(found Finding) []Finding { return []Finding{found} }

// extensionName is the name of the extension that the operator would get.
func (e *Examination) extensionName() string {
	if e.Choice.Name != "" {
		return e.Choice.Name
	}
	return ExtensionName(e.Operator.Name)
}

// ExtensionName is the name that the extension of a Subscription gets by default.
func ExtensionName(subscription types.NamespacedName) string {
	return object.Shortened(subscription.Name, maxExtensionName)
}

func extensionKey(name string) object.Key {
	return object.Key{GroupKind: ocv1.GroupVersion.WithKind(ocv1.ClusterExtensionKind).GroupKind(), Name: name}
}
