package controller

import (
	"slices"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// UninstallPlan is how a deletion of an extension would go by its uninstall policy.
type UninstallPlan struct {
	Owner  object.Owner
	Policy UninstallPolicy

	// ByFlag says that the spec leaves it to a flag of the controller, and Policy is that of
	// a controller without the flag.
	ByFlag bool

	// KeepsDefinitions says that definitions and all custom resources stay, and KeepsAll
	// that everything does.
	KeepsDefinitions, KeepsAll bool

	// Order says what happens, a line for each thing, in the order in which it does.
	Order []string

	// Refused says why nothing goes for now; empty if it would go.
	Refused string
}

// PlanUninstall makes the plan for an extension, from the uses that are known. Those that
// could not be counted refuse nothing here: the controller counts with other rights than
// whoever asks.
func PlanUninstall(ext *ocv1.ClusterExtension, uses []installation.Use) UninstallPlan {
	wanted, _ := translate(ext) // the owner does not depend on what is invalid
	plan := UninstallPlan{Owner: wanted.Owner, Policy: uninstallPolicyOf(ext, ""), ByFlag: ext.Spec.Uninstall == nil}
	plan.KeepsAll = plan.Policy == UninstallOrphan
	plan.KeepsDefinitions = plan.KeepsAll || plan.Policy == UninstallKeep
	plan.Order = uninstallOrder(plan.Policy)
	counted := slices.DeleteFunc(slices.Clone(uses), func(use installation.Use) bool { return use.Err != nil })
	if uninstallStepOf(plan.Policy, counted, true) == stepRefuse {
		plan.Refused = refusedText(plan.Policy, counted)
	}
	return plan
}

// uninstallOrder says what [Reconciler.uninstall] does.
func uninstallOrder(policy UninstallPolicy) []string {
	const all = "everything goes at the same time: custom resources, the operator, and the rest"
	switch policy {
	case UninstallDeleteFirst:
		return []string{
			"custom resources go, while the operator runs",
			"the operator goes, which is its Deployments",
			"the rest goes at the same time",
		}
	case UninstallKeep:
		return []string{"definitions are let go of, and stay with all custom resources but those of the extension itself", "the rest goes at the same time"}
	case UninstallRefuseWhileInUse:
		return []string{"nothing goes while there are custom resources that the extension has not installed itself", all}
	case UninstallOrphan:
		return []string{"everything is let go of, and stays"}
	case UninstallDelete:
	}
	return []string{all}
}
