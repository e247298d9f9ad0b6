package crdupgrade

import (
	"cmp"
	"slices"
)

// Kind is what there is to do about a finding.
type Kind string

const (
	// Blocks: it cannot be undone, or the API server refuses it, whatever is stored.
	Blocks Kind = "Blocks"
	// NeedsData: it breaks only if stored objects break it.
	NeedsData Kind = "NeedsData"
	// Note: it is worth telling, and never blocks.
	Note Kind = "Note"
)

// rank orders kinds, the worst first.
func (k Kind) rank() int { return slices.Index([]Kind{Blocks, NeedsData, Note}, k) }

// Finding is one thing that an upgrade of a CustomResourceDefinition changes. It
// can be compared with ==.
type Finding struct {
	// CRD is the name of the definition.
	CRD string `json:"crd"`
	// Version is the version whose schema changes. "v1 -> v2" is how v2 differs
	// from v1 in the new definition, between which objects are not converted.
	// Empty: it is about the whole definition.
	Version string `json:"version,omitempty"`
	// Path is the field from the root of an object: ^.spec.list.items.name. Empty:
	// it is not about a field.
	Path string `json:"path,omitempty"`
	// Check is one of [Checks].
	Check string `json:"check"`
	// Detail is one line: what changed, from what to what.
	Detail string `json:"detail"`
	// Advice is one line: what to do.
	Advice string `json:"advice"`
	// Kind is what this finding does to the upgrade.
	Kind Kind `json:"kind"`
}

// String is the line about the finding, in the form that the message has it.
func (f Finding) String() string { return prefix(f.CRD) + f.Line() }

// Line is the finding without the name of its definition.
func (f Finding) Line() string {
	text := f.Check + ": " + f.Detail
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	if f.Version != "" {
		text = f.Version + ": " + text
	}
	return text
}

// Sort puts what blocks first, then what depends on data, then notes; within
// each by definition, version, path and check. Equal findings become one.
func Sort(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.Kind.rank(), b.Kind.rank()),
			cmp.Compare(a.CRD, b.CRD),
			cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Check, b.Check),
			cmp.Compare(a.Detail, b.Detail),
			cmp.Compare(a.Advice, b.Advice),
		)
	})
	return slices.Compact(findings)
}
