package migration

import (
	"cmp"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/manifest"
)

// schemaVersion changes when what programs read of a report does.
const schemaVersion = 1

// Report is the result of a check for programs.
type Report struct {
	SchemaVersion int              `json:"schemaVersion"`
	Operators     []OperatorReport `json:"operators"`
	Unknown       []string         `json:"unknown,omitempty"`
}

// OperatorReport is what was found of one operator.
type OperatorReport struct {
	Subscription SubscriptionName `json:"subscription"`
	Package      string           `json:"package,omitempty"`
	Bundle       string           `json:"bundle,omitempty"`
	Version      string           `json:"version,omitempty"`
	State        classic.State    `json:"state"`
	Findings     []FindingReport  `json:"findings,omitempty"`

	// Extension is the ClusterExtension that there would be, or the name of the one that there
	// is already.
	Extension     map[string]any `json:"extension,omitempty"`
	ExtensionName string         `json:"extensionName,omitempty"`

	// Adopted, Created and Deleted are what would become of objects, and Stays are those that
	// lose the marks of classic OLM and nothing else.
	Adopted   []object.Reference `json:"adopted,omitempty"`
	Created   []object.Reference `json:"created,omitempty"`
	Deleted   []object.Reference `json:"deleted,omitempty"`
	Stays     []object.Reference `json:"stays,omitempty"`
	Restarted []object.Reference `json:"restarted,omitempty"`
	// Unmarked are among those that are adopted, and are to be labelled before.
	Unmarked []object.Reference `json:"unmarked,omitempty"`

	Missing []string `json:"missingRights,omitempty"`
	Dropped []string `json:"dropped,omitempty"`
}

// SubscriptionName is the name of a Subscription.
type SubscriptionName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// FindingReport is one finding.
type FindingReport struct {
	Check    string           `json:"check"`
	Severity classic.Severity `json:"severity"`
	Object   object.Reference `json:"object"`
	Text     string           `json:"text"`
}

// Report is the result for programs. The error is one of an extension that JSON cannot have.
func (r Result) Report() (Report, error) {
	report := Report{SchemaVersion: schemaVersion, Operators: []OperatorReport{}, Unknown: r.Unknown}
	for i := range r.Operators {
		one, err := r.Operators[i].report()
		if err != nil {
			return Report{}, err
		}
		report.Operators = append(report.Operators, one)
	}
	return report, nil
}

func (c *Checked) report() (OperatorReport, error) {
	op := c.Operator
	pkg, installed := c.Installed()
	report := OperatorReport{
		Subscription: SubscriptionName{Namespace: op.Name.Namespace, Name: op.Name.Name}, State: c.State,
		Package: pkg, Bundle: installed.Name, Version: installed.Version,
		Adopted: referencesTo(c.Fates.Adopted), Deleted: referencesTo(c.Fates.Deleted), Stays: referencesTo(c.Fates.Stays),
		Created: references(c.Created), Restarted: c.Restarted, Unmarked: references(c.Unmarked), Missing: c.Missing, Dropped: c.Translation.Dropped,
	}
	for _, finding := range c.Findings {
		report.Findings = append(report.Findings, FindingReport{
			Check: finding.Check, Severity: finding.Severity, Object: object.ReferenceTo(finding.Object), Text: finding.Text,
		})
	}
	if op.Extension != nil {
		report.ExtensionName = op.Extension.Name
	}
	if c.Translation.Extension == nil {
		return report, nil
	}
	var err error
	report.ExtensionName = c.Translation.Extension.Name
	report.Extension, err = manifest.Written(c.Translation.Extension)
	return report, err
}

// Installed is what classic OLM has installed, or the extension of an operator that has moved; empty for nothing.
func (c *Checked) Installed() (pkg string, installed ocv1.BundleMetadata) {
	op := c.Operator
	pkg = op.Package()
	if identity, err := op.Identity(); err == nil {
		return pkg, ocv1.BundleMetadata{Name: identity.Name, Version: identity.Version}
	}
	if op.Extension == nil {
		return pkg, ocv1.BundleMetadata{}
	}
	if op.Extension.Status.Install != nil {
		installed = op.Extension.Status.Install.Bundle
	}
	return cmp.Or(pkg, op.Extension.Package()), installed
}

func references(keys []object.Key) []object.Reference {
	var found []object.Reference
	for _, key := range keys {
		found = append(found, object.ReferenceTo(key))
	}
	return found
}

func referencesTo(objects []classic.Object) []object.Reference {
	var found []object.Reference
	for i := range objects {
		found = append(found, object.ReferenceTo(objects[i].Key))
	}
	return found
}
