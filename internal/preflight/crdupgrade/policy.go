package crdupgrade

import "slices"

// Enforcement is what findings do to an upgrade.
type Enforcement string

const (
	// Strict lets them stop it.
	Strict Enforcement = "Strict"
	// Warn only tells them.
	Warn Enforcement = "Warn"
	// None ignores them.
	None Enforcement = "None"
)

// Policy is what its owner wants of the comparison. The zero value is Strict.
type Policy struct {
	Enforcement Enforcement
	Exceptions  []Exception
}

// Exception is what must not stop an upgrade.
type Exception struct {
	// CRD is the name of a definition; empty: any.
	CRD string
	// Check is one of [Checks]; empty: any. One that does not exist excepts nothing.
	Check string
}

func (e Exception) covers(f Finding) bool {
	return (e.CRD == "" || e.CRD == f.CRD) && (e.Check == "" || e.Check == f.Check)
}

// Apply returns findings, sorted, as the policy wants them: with None there are
// none, with Warn all are notes, and otherwise those that are excepted. Those who
// look at stored objects may apply it before or after.
func (p Policy) Apply(findings []Finding) []Finding {
	if p.Enforcement == None {
		return nil
	}
	applied := slices.Clone(findings)
	for i, finding := range applied {
		excepted := func(e Exception) bool { return e.covers(finding) }
		if p.Enforcement == Warn || slices.ContainsFunc(p.Exceptions, excepted) {
			applied[i].Kind = Note
		}
	}
	return Sort(applied)
}
