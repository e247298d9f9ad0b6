package resolve

import (
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// Resolution is the bundle that answers a request.
type Resolution struct {
	Identity bundle.Identity

	// Image reference as the catalog has it.
	Image string

	// Catalog that the bundle comes from.
	Catalog string

	// AlsoIn are further catalogs of the same priority that offer the very same
	// bundle, sorted.
	AlsoIn []string

	// Deprecations of the package in Catalog, in the order of the catalog. The
	// slice is shared: do not change it.
	Deprecations []Deprecation

	// LeftOut are all other bundles of the package: catalogs with a high
	// priority first, preferred bundles first within one.
	LeftOut []LeftOut

	// Missing is what the bundle requires and the cluster no longer has. Only a
	// bundle that is installed already is chosen in spite of it.
	Missing []requirement.Unmet

	// Awaited is the newer one of LeftOut that would have been the answer if the
	// cluster had what it requires; nil if there is none.
	Awaited *LeftOut

	// Unreadable are the catalogs that could not be read and might lead away from
	// the chosen bundle, which is installed and deprecated; sorted. There are none
	// otherwise: a catalog that could not have won has no part in the answer.
	Unreadable []string
}

// LeftOut is a bundle that was not chosen.
type LeftOut struct {
	Name    string
	Version string
	Catalog string

	// Reason is the first rule that spoke against the bundle.
	Reason Reason

	// Detail is one line for people, with the operands of the rule.
	Detail string

	// Missing is what the bundle requires and the cluster does not have
	// ([RequirementNotMet]).
	Missing []requirement.Unmet
}

// Reason why a bundle was not chosen.
type Reason string

// The rules, in the order in which they apply.
const (
	// NotInChannel: no entry in any of the requested channels.
	NotInChannel Reason = "NotInChannel"

	// InvalidVersion: the version is missing or cannot be parsed, so that it is
	// in no range and comes after every bundle with a version.
	InvalidVersion Reason = "InvalidVersion"

	// OutsideRange: the version is not in the requested range, or the bundle not exactly the
	// requested one.
	OutsideRange Reason = "OutsideRange"

	// NoUpgradeEdge: nothing in the requested channels declares the bundle an
	// upgrade of the installed one.
	NoUpgradeEdge Reason = "NoUpgradeEdge"

	// RequirementNotMet: the cluster does not have what the bundle requires.
	RequirementNotMet Reason = "RequirementNotMet"

	// DeadEnd: a newer bundle would be chosen if the cluster had what it
	// requires, and no upgrade leads there from this one.
	DeadEnd Reason = "DeadEnd"

	// Deprecated: a bundle that is not deprecated was preferred.
	Deprecated Reason = "Deprecated"

	// LowerPriority: a catalog with a higher priority has a suitable bundle.
	LowerPriority Reason = "LowerPriority"

	// LowerVersion: the same catalog has a suitable bundle with a higher
	// version, or with the same one and preferred by name.
	LowerVersion Reason = "LowerVersion"

	// CatalogUnreadable: a catalog that could not be read might have a better
	// one. Only on errors of kind [Unreadable].
	CatalogUnreadable Reason = "CatalogUnreadable"

	// Tied: another catalog of the same priority offers another bundle. Only
	// on errors of kind [Ambiguous].
	Tied Reason = "Tied"

	// RequirementUnknown: it cannot be told whether the cluster has what the
	// bundle requires. Only on errors of kind [Unchecked].
	RequirementUnknown Reason = "RequirementUnknown"
)

// qualifies is the absence of a reason.
const qualifies Reason = ""
