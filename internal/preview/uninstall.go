package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// UninstallFacts are what a preview of a deletion is made from. All but the owner and the
// policy may be empty.
type UninstallFacts struct {
	// Owner is the extension, and Installed its bundle.
	Owner     object.Owner
	Installed *Bundle

	// Policy is the uninstall policy by its name. ByFlag says that the spec has none, and
	// that Policy is the one of a controller that has no flag for it.
	Policy string
	ByFlag bool

	// HasPolicyInForce says that ByFlag, the controller holds the deletion all the same: its
	// flag has another policy than Delete.
	HasPolicyInForce bool

	// Deleting says that the extension is being deleted already, and how far that is; empty if
	// it is not.
	Deleting string

	// KeepsDefinitions says that definitions and their custom resources stay, and KeepsAll
	// that everything does.
	KeepsDefinitions, KeepsAll bool

	// Order says what happens, in the order in which it does.
	Order []string

	// Objects are what is on the cluster of all that was ever installed, definitions
	// included.
	Objects []InstalledObject

	// Uses are those of all definitions that the extension owns.
	Uses []installation.Use

	// Namespaces lists the Namespaces that would be deleted.
	Namespaces []installation.NamespaceUse

	// Partial says that there may be more objects, which are not known.
	Partial bool

	// Unchecked says that the policy may refuse to let the extension go, and that it could not
	// be found out whether it does.
	Unchecked bool

	// Obstacles are why it would not go, and Unknown is what could not be found out, a line
	// each.
	Obstacles, Unknown []string

	// Warning names custom resources that may be kept because of their finalizers; empty if there are none.
	Warning string
}

// InstalledObject is an object that an extension has installed.
type InstalledObject struct {
	Key object.Key

	// Foreign says that the extension does not own it, Shared that others own it too, and
	// Unread that this is not known.
	Foreign, Shared, Unread bool

	// Kept is set if the object has a policy of its own, see [object.IsKept].
	Kept bool
}

// Uninstall is what a deletion would do. Lists are sorted, but for the order, and bounded;
// the last line of one that was cut says how much is missing.
type Uninstall struct {
	SchemaVersion int     `json:"schemaVersion"`
	Extension     string  `json:"extension"`
	Installed     *Bundle `json:"installed,omitempty"`

	// Policy is the uninstall policy that this is about. PolicyUnknown says why it may be
	// another one; empty if it is that of the spec.
	Policy        string `json:"policy"`
	PolicyUnknown string `json:"policyUnknown,omitempty"`

	// Deleting says that the extension is being deleted already; empty if it is not.
	Deleting string `json:"deleting,omitempty"`

	// Order says what happens, in the order in which it does.
	Order []string `json:"order"`

	// Counts are how many objects go and stay, also of those that are not listed; without
	// custom resources that the extension has not installed.
	Counts UninstallCounts `json:"counts"`

	// Partial says that there may be more than is counted and listed.
	Partial bool `json:"partial,omitempty"`

	// Objects are what the extension has installed.
	Objects []UninstalledObject `json:"objects"`

	// Definitions are those among the objects, with what there is of their kinds.
	Definitions []UsedDefinition `json:"definitions,omitempty"`

	// Namespaces are those among the objects that would be deleted with objects of others.
	Namespaces []UsedNamespace `json:"namespaces,omitempty"`

	// Obstacles say why it would not go for now, one for each cause.
	Obstacles []string `json:"obstacles,omitempty"`

	// Warning names custom resources that may be kept because of their finalizers.
	Warning string `json:"warning,omitempty"`

	// Unchecked says that something may be in the way of which it could not be found out
	// whether it is.
	Unchecked bool `json:"unchecked,omitempty"`

	// Unknown is what could not be found out.
	Unknown []string `json:"unknown,omitempty"`
}

// Sum is what the deletion comes to, in a line.
func (u Uninstall) Sum() string {
	switch {
	case !u.Partial:
		return u.Counts.String()
	case u.Counts == UninstallCounts{}:
		return "it is not known what would go and what would stay"
	}
	return "as far as is known, " + u.Counts.String() + "; there may be more"
}

// UninstallCounts are numbers of objects by what would become of them.
type UninstallCounts struct {
	Delete int `json:"delete"`
	Keep   int `json:"keep"`
}

// String has both numbers: 3 to delete, 1 to keep.
func (c UninstallCounts) String() string {
	return fmt.Sprintf("%d to delete, %d to keep", c.Delete, c.Keep)
}

// UninstalledObject is an object, and what would become of it: [Delete] or [Keep].
type UninstalledObject struct {
	object.Reference

	Action Action `json:"action"`

	// Detail says why; empty if it is the policy.
	Detail string `json:"detail,omitempty"`
}

// UsedDefinition is a definition with its custom resources, which have the same fate but where
// OwnAction says otherwise.
type UsedDefinition struct {
	Name   string `json:"name"`
	Action Action `json:"action"`

	// Count is how many custom resources there are, and Own how many of them the extension
	// has installed itself. They say nothing if Unknown does.
	Count int64 `json:"count"`
	Own   int64 `json:"own"`

	// OwnAction is what would become of those; empty if it is the same as of the others.
	OwnAction Action `json:"ownAction,omitempty"`

	// First are up to [installation.MaxFirst] of them, with their finalizers where they wait
	// for those.
	First []string `json:"first,omitempty"`

	// Unknown says why they could not be counted.
	Unknown string `json:"unknown,omitempty"`
}

// String is the definition with the number of its custom resources and the first of them, in
// one line.
func (d UsedDefinition) String() string {
	if d.Unknown != "" {
		return fmt.Sprintf("%s: not known how many", d.Name)
	}
	var text string
	switch {
	case d.OwnAction != "":
		text = fmt.Sprintf("%s: %d to %s, and %d to %s, which the extension has installed itself", d.Name, d.Count-d.Own, d.Action, d.Own, d.OwnAction)
	case d.Own > 0:
		text = fmt.Sprintf("%s: %d to %s, %d of them of the extension itself", d.Name, d.Count, d.Action, d.Own)
	default:
		text = fmt.Sprintf("%s: %d to %s", d.Name, d.Count, d.Action)
	}
	if d.OwnAction != "" && len(d.First) > 0 {
		text += "; the first"
	}
	if len(d.First) > 0 {
		text += ": " + strings.Join(d.First, ", ")
	}
	if more := d.Count - int64(len(d.First)); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// UsedNamespace is a Namespace with the objects in it that the extension does not own, and that would be
// deleted with it.
type UsedNamespace struct {
	Name string `json:"name"`

	// Count is the number of objects; meaningless if Unknown is set.
	Count int64 `json:"count"`

	// First lists up to [installation.MaxFirst] of them.
	First []string `json:"first,omitempty"`

	// Unknown is the error if they could not be counted.
	Unknown string `json:"unknown,omitempty"`
}

// String is the Namespace with the number of these objects and the first of them, in one line.
func (n UsedNamespace) String() string {
	if n.Unknown != "" {
		return fmt.Sprintf("%s: unknown", n.Name)
	}
	text := fmt.Sprintf("%s: %d to delete: %s", n.Name, n.Count, strings.Join(n.First, ", "))
	if more := n.Count - int64(len(n.First)); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// addNamespaces leaves out those with nothing of others, and returns why the others are not known.
func (u *Uninstall) addNamespaces(facts UninstallFacts) (unknown []string) {
	for _, use := range facts.Namespaces {
		if facts.KeepsAll || use.Err == nil && use.Count == 0 || len(u.Namespaces) == maxObjects {
			continue
		}
		used := UsedNamespace{Name: use.Namespace, Count: use.Count}
		for _, key := range use.First {
			used.First = append(used.First, excerpt.Line(fmt.Sprintf("%s %q", key.Kind, key.Name), maxLineBytes))
		}
		if use.Err != nil {
			used.Unknown = excerpt.Line(use.Err.Error(), maxLineBytes)
			unknown = append(unknown, fmt.Sprintf("what Namespace %q contains: %v", use.Namespace, use.Err))
		}
		u.Namespaces = append(u.Namespaces, used)
	}
	return unknown
}

// MakeUninstall makes a preview of a deletion.
func MakeUninstall(facts UninstallFacts) Uninstall {
	made := Uninstall{
		SchemaVersion: SchemaVersion,
		Extension:     facts.Owner.Name,
		Installed:     facts.Installed,
		Policy:        facts.Policy,
		Order:         facts.Order,
		Deleting:      excerpt.Line(facts.Deleting, maxLineBytes),
		Partial:       facts.Partial,
		Unchecked:     facts.Unchecked,
		Objects:       []UninstalledObject{},
		Obstacles:     bounded(facts.Obstacles),
		Warning:       excerpt.Line(facts.Warning, maxLineBytes),
	}
	made.PolicyUnknown = policyUnknown(facts)
	unknown := slices.Clone(facts.Unknown)
	for _, use := range slices.SortedFunc(slices.Values(facts.Uses), func(a, b installation.Use) int { return strings.Compare(a.Definition, b.Definition) }) {
		if use.Err != nil {
			unknown = append(unknown, fmt.Sprintf("how many custom resources of %s there are: %v", use.Definition, use.Err))
		}
		if len(made.Definitions) < maxObjects {
			made.Definitions = append(made.Definitions, usedDefinitionOf(use, facts))
		}
	}
	unknown = append(unknown, made.addNamespaces(facts)...)
	if cut := made.addObjects(facts); cut > 0 {
		unknown = append(unknown, fmt.Sprintf("%d more objects are not listed", cut))
	}
	made.Unknown = bounded(unknown)
	return made
}

func policyUnknown(facts UninstallFacts) string {
	const left = "spec.uninstall is left out, so that --default-uninstall-policy of the controller decides, which is not known here; "
	switch {
	case !facts.ByFlag:
		return ""
	case facts.HasPolicyInForce:
		return fmt.Sprintf(left+"it is another one than %[1]q, as the controller holds the extension by its finalizer for uninstall policies, or blocks the deletion; "+
			"this is about %[1]q all the same", facts.Policy)
	}
	return fmt.Sprintf(left+"this is about %q, which is that of a controller without the flag", facts.Policy)
}

// addObjects gives how many are not listed.
func (u *Uninstall) addObjects(facts UninstallFacts) (cut int) {
	for _, one := range slices.SortedFunc(slices.Values(facts.Objects), func(a, b InstalledObject) int { return a.Key.Compare(b.Key) }) {
		shown := uninstalledObjectOf(one, facts)
		switch shown.Action {
		case Keep:
			u.Counts.Keep++
		default:
			u.Counts.Delete++
		}
		if len(u.Objects) == maxObjects {
			cut++
			continue
		}
		u.Objects = append(u.Objects, shown)
	}
	return cut
}

func uninstalledObjectOf(one InstalledObject, facts UninstallFacts) UninstalledObject {
	shown := UninstalledObject{Reference: object.ReferenceTo(one.Key), Action: Delete}
	switch {
	case one.Foreign:
		shown.Action, shown.Detail = Keep, "it does not belong to the extension"
	case one.Kept && !facts.KeepsAll:
		shown.Action, shown.Detail = Keep, "it has the annotation helm.sh/resource-policy: keep"
	case one.Shared && !facts.KeepsAll:
		shown.Action, shown.Detail = Keep, "others own it too, and it stays as long as they are there"
	case facts.KeepsAll, facts.KeepsDefinitions && one.Key.GroupKind == object.DefinitionKind:
		shown.Action = Keep
	}
	if one.Unread {
		shown.Detail = "unless it is gone or belongs to others: you may not read it"
	}
	return shown
}

func usedDefinitionOf(use installation.Use, facts UninstallFacts) UsedDefinition {
	used := UsedDefinition{Name: use.Definition, Action: Delete, Count: use.Count, Own: use.Own}
	if facts.KeepsDefinitions || use.Shared {
		used.Action = Keep
	}
	if use.Own > 0 && used.Action == Keep && !facts.KeepsAll {
		used.OwnAction = Delete
	}
	for _, stored := range use.First {
		used.First = append(used.First, excerpt.Line(stored.String(), maxLineBytes))
	}
	if use.Err != nil {
		used.Unknown = excerpt.Line(use.Err.Error(), maxLineBytes)
	}
	return used
}
