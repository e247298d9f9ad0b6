package controller

import (
	"fmt"
	"slices"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// UninstallContent is what a deletion is about, as far as that is known.
type UninstallContent struct {
	// Uses are those of the definitions of the extension.
	Uses []installation.Use

	// Namespaces lists the Namespaces that would be deleted.
	Namespaces []installation.NamespaceUse

	// ServesAPIs says that API services are installed.
	ServesAPIs bool

	// Converts reports whether a webhook of the extension converts custom resources.
	Converts bool

	// Hooks are those of the chart that is installed, and Progress is how far those of its deletion
	// have come; nil before they have begun.
	Hooks    []hook.Hook
	Progress *hook.Progress
}

// UninstallPlan is how a deletion of an extension would go by its uninstall policy.
type UninstallPlan struct {
	Owner  object.Owner
	Policy UninstallPolicy

	// ByFlag says that the spec leaves it to a flag of the controller, and Policy is that of
	// a controller without the flag.
	ByFlag bool

	// DeletesNamespaces is set if Namespaces are deleted with all objects in them.
	DeletesNamespaces bool

	// KeepsDefinitions says that definitions and all custom resources stay, and KeepsAll
	// that everything does.
	KeepsDefinitions, KeepsAll bool

	// Order says what happens, a line for each thing, in the order in which it does.
	Order []string

	// Refused says why nothing goes for now, and FailedHook which hook holds the deletion; empty
	// if none does.
	Refused, FailedHook string

	// Warning names custom resources whose finalizers the operator may not remove any more; empty if there are none.
	Warning string

	// RefusedNamespaces names the Namespaces that block the deletion; empty if none does.
	RefusedNamespaces string
}

// PlanUninstall makes the plan for an extension, from what is known. Uses that could not be
// counted refuse nothing here: the controller counts with other rights than whoever asks.
func PlanUninstall(ext *ocv1.ClusterExtension, content UninstallContent) UninstallPlan {
	wanted, _ := translate(ext) // the owner does not depend on what is invalid
	plan := UninstallPlan{Owner: wanted.Owner, Policy: uninstallPolicyOf(ext, ""), ByFlag: ext.Spec.Uninstall == nil}
	plan.KeepsAll = plan.Policy == UninstallOrphan
	plan.KeepsDefinitions = plan.KeepsAll || plan.Policy == UninstallKeep
	before, after := namesAt(hook.PreDelete, content.Hooks), namesAt(hook.PostDelete, content.Hooks)
	plan.Order = uninstallOrder(plan.Policy, content, before, after)
	if config := ext.Spec.Uninstall; config != nil && config.Hooks == ocv1.HooksUninstallPolicySkip && !plan.KeepsAll {
		plan.Order = uninstallOrder(plan.Policy, content, nil, nil)
		if len(before)+len(after) > 0 {
			plan.Order = append([]string{"the hooks of the chart are left out, by spec.uninstall.hooks"}, plan.Order...)
		}
	} else if !plan.KeepsAll {
		plan.FailedHook = failedDeletionHook(content)
	}
	counted := slices.DeleteFunc(slices.Clone(content.Uses), func(use installation.Use) bool { return use.Err != nil })
	if uninstallStepOf(plan.Policy, counted, true) == stepRefuse {
		plan.Refused = refusedText(plan.Policy, counted)
	} else if plan.Policy == UninstallDelete || plan.Policy == UninstallRefuseWhileInUse {
		plan.Warning = heldText(ext.Name, unshared(counted))
	}
	if plan.DeletesNamespaces = mayDeleteNamespaces(ext, plan.Policy); !plan.DeletesNamespaces {
		plan.RefusedNamespaces = namespacesText(slices.DeleteFunc(slices.Clone(content.Namespaces), func(use installation.NamespaceUse) bool { return use.Err != nil }))
	}
	return plan
}

// heldText warns of custom resources with finalizers that are deleted at the same time as the operator.
func heldText(extension string, uses []installation.Use) string {
	var count int64
	var first []string
	for _, use := range uses {
		count += use.HeldCount
		for _, held := range use.Held {
			first = append(first, held.WithFinalizers())
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("custom resources with finalizers: %d: %s. The operator is deleted at the same time, and loses its permissions. "+
		"If it removes these finalizers, they are kept for ever, and so are their CRDs. To delete custom resources first, run "+
		"`kubectl patch clusterextension %s --type=merge --patch '{\"spec\":{\"uninstall\":{\"customResources\":\"DeleteFirst\"}}}'`",
		count, excerpt.Of(first, maxList), extension)
}

// namesAt names the hooks of an event, in their order.
func namesAt(event hook.Event, hooks []hook.Hook) []string {
	due := hook.At(event, hooks)
	names := make([]string, len(due))
	for i, one := range due {
		names[i] = object.KeyOf(one.Object).String()
	}
	return names
}

// failedDeletionHook is empty unless the record says that one has failed.
func failedDeletionHook(content UninstallContent) string {
	progress := content.Progress
	if progress == nil || progress.FailedAt == nil {
		return ""
	}
	due := hook.At(progress.Event(), content.Hooks)
	if progress.Done >= len(due) {
		return ""
	}
	failed := due[progress.Done]
	return fmt.Sprintf("the %s hook %s has failed: %s; %s; %s", progress.Event(), object.KeyOf(failed.Object), progress.Why, progress.Remedy(failed), nextSkip)
}

// uninstallOrder says what [Reconciler.uninstall] does, with the hooks before and after it.
func uninstallOrder(policy UninstallPolicy, content UninstallContent, hooksBefore, hooksAfter []string) []string {
	const all = "everything goes at the same time: custom resources, the operator, and the rest"
	var before []string
	after := []string{all}
	switch policy {
	case UninstallDeleteFirst:
		before = []string{"custom resources go, while the operator runs"}
		after = []string{"the operator goes, which is its Deployments", "the rest goes at the same time"}
	case UninstallKeep:
		before = []string{"definitions are let go of, and stay with all custom resources but those of the extension itself"}
		after = []string{"the rest goes at the same time"}
	case UninstallRefuseWhileInUse:
		before = []string{"nothing goes while there are custom resources that the extension has not installed itself"}
	case UninstallOrphan:
		return []string{"everything is let go of, and stays"}
	case UninstallDelete:
	}
	if len(hooksBefore) > 0 {
		run := "hooks run before all else that goes: " + excerpt.Of(hooksBefore, maxList)
		switch policy {
		case UninstallRefuseWhileInUse:
			before = append(before, run)
		case UninstallDelete, UninstallKeep, UninstallDeleteFirst, UninstallOrphan:
			before = append([]string{run}, before...)
		}
	}
	if len(hooksAfter) > 0 {
		after = append(after, "hooks run when that is gone: "+excerpt.Of(hooksAfter, maxList))
	}
	if content.Converts && (policy == UninstallDelete || policy == UninstallRefuseWhileInUse) {
		before = append(before, "CRDs with a conversion webhook are deleted with their custom resources, while the operator runs, which may take a minute")
	}
	if content.ServesAPIs {
		before = append(before, "API services go, so that nobody is asked who does not answer any more")
	}
	return append(before, after...)
}
