package classic

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxNames bounds lists of names in findings, in bytes.
const maxNames = 500

// checkInstalled is M1: there is something to take over, and classic OLM is not amid changing it.
func checkInstalled(e *Examination) []Finding {
	op := e.Operator
	status := &op.Subscription.Status
	switch {
	case status.InstalledCSV == "":
		return one(finding("M1", Blocks, op.subscriptionKey(), "nothing is installed by it: wait for classic OLM, approve its InstallPlan, or delete the Subscription and install with a ClusterExtension"))
	case op.CSV == nil && e.Cluster.copiedFrom(op.Subscription) != "":
		return one(finding("M1", Blocks, op.keyOf(operatorsv1alpha1.ClusterServiceVersionKind, status.InstalledCSV), "it is a copy of %s/%s: move the Subscription in namespace %[1]q, and delete this one, which keeps the operator",
			e.Cluster.copiedFrom(op.Subscription), status.InstalledCSV))
	case op.CSV == nil:
		return one(finding("M1", Blocks, op.keyOf(operatorsv1alpha1.ClusterServiceVersionKind, status.InstalledCSV), "it is installed as the Subscription says, and there is none: let classic OLM install it again"))
	}
	var found []Finding
	switch phase := op.CSV.Status.Phase; phase {
	case operatorsv1alpha1.CSVPhaseSucceeded:
	case operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVPhaseUnknown:
		found = append(found, finding("M1", Attention, op.csvKey(), "its phase is %s: %s; what is there is taken over as it is", phase, op.CSV.Status.Message))
	default:
		found = append(found, finding("M1", Blocks, op.csvKey(), "its phase is %q, so that classic OLM is amid changing it: wait until it has Succeeded", phase))
	}
	if plan := op.planUnderWay(); plan != nil {
		key := op.keyOf(operatorsv1alpha1.InstallPlanKind, plan.Name)
		found = append(found, finding("M1", Blocks, key, "classic OLM is carrying it out, and would make again what has gone: wait until it is complete"))
	}
	if _, err := op.Identity(); err != nil {
		found = append(found, finding("M1", Blocks, op.csvKey(), "%v", err))
	}
	switch state := status.State; state {
	case operatorsv1alpha1.SubscriptionStateAtLatest:
	case operatorsv1alpha1.SubscriptionStateUpgradePending:
		found = append(found, finding("M1", Note, op.subscriptionKey(), "an upgrade to %q is pending: %q is what moves, and the pending InstallPlan goes", status.CurrentCSV, status.InstalledCSV))
	default:
		found = append(found, finding("M1", Attention, op.subscriptionKey(), "its state is %q and neither AtLatestKnown nor UpgradePending: see its conditions, and wait if classic OLM is upgrading", state))
	}
	return found
}

// planUnderWay is an InstallPlan that brings what is installed, and is being carried out; nil for none.
func (o *Operator) planUnderWay() *operatorsv1alpha1.InstallPlan {
	for _, plan := range o.allPlans {
		if plan.Spec.Approved && IsUnderWay(plan.Status.Phase) && slices.Contains(plan.Spec.ClusterServiceVersionNames, o.CSV.Name) {
			return plan
		}
	}
	return nil
}

// IsUnderWay says of an InstallPlan that is approved that classic OLM has not done with it: it carries out all steps
// again until it has.
func IsUnderWay(phase operatorsv1alpha1.InstallPlanPhase) bool {
	return phase != operatorsv1alpha1.InstallPlanPhaseComplete && phase != operatorsv1alpha1.InstallPlanPhaseFailed
}

// checkDependency is M2: classic OLM has installed it for others.
func checkDependency(e *Examination) []Finding {
	op := e.Operator
	if !op.IsDependency() {
		return nil
	}
	var staying []string
	for _, name := range e.Cluster.dependents(op) {
		if e.Moves == nil || !e.Moves(name) {
			staying = append(staying, name.Name)
		}
	}
	if len(staying) == 0 {
		return one(finding("M2", Note, op.subscriptionKey(), "classic OLM has installed it as a dependency: it becomes an extension of its own, which others require"))
	}
	return one(finding("M2", Attention, op.subscriptionKey(), "classic OLM has installed it as a dependency of %s, and may do so again when these are upgraded: move them in the same go", excerpt.Of(staying, maxNames)))
}

// dependents are the Subscriptions of the namespace whose operators require a package, or a kind
// of it.
func (c *Cluster) dependents(op *Operator) []types.NamespacedName {
	if op.CSV == nil {
		return nil
	}
	var found []types.NamespacedName
	for i := range c.Subscriptions {
		other := &c.Subscriptions[i]
		if other.Namespace != op.Name.Namespace || other.Name == op.Name.Name {
			continue
		}
		for k := range c.CSVs {
			if csv := &c.CSVs[k]; csv.Namespace == other.Namespace && csv.Name == other.Status.InstalledCSV && op.isRequiredBy(csv) {
				found = append(found, nameOf(other))
			}
		}
	}
	return found
}

func (o *Operator) isRequiredBy(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	dependent := Operator{CSV: csv}
	for _, one := range dependent.properties() {
		var of struct {
			PackageName string `json:"packageName"`
			Group       string `json:"group"`
			Kind        string `json:"kind"`
		}
		if json.Unmarshal(one.Value, &of) != nil {
			continue
		}
		switch one.Type {
		case propertyPackageRequired:
			if of.PackageName == o.Package() {
				return true
			}
		case propertyGVKRequired:
			for _, owned := range o.CSV.Spec.CustomResourceDefinitions.Owned {
				if _, group, _ := strings.Cut(owned.Name, "."); group == of.Group && owned.Kind == of.Kind {
					return true
				}
			}
		}
	}
	return false
}

// Properties by which a bundle requires others.
const (
	propertyPackageRequired = "olm.package.required"
	propertyGVKRequired     = "olm.gvk.required"
	propertyConstraint      = "olm.constraint"
)

// readable writes out what Go escapes in JSON for the sake of HTML: version ranges are full of it.
var readable = strings.NewReplacer(`\u003e`, ">", `\u003c`, "<", `\u0026`, "&")

// checkRequirements is M4: what the bundle requires is a requirement of the extension.
func checkRequirements(e *Examination) []Finding {
	op := e.Operator
	var texts []string
	for _, one := range op.properties() {
		switch one.Type {
		case propertyPackageRequired, propertyGVKRequired, propertyConstraint:
			texts = append(texts, one.Type+" "+excerpt.Line(readable.Replace(string(one.Value)), maxNames))
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return one(finding("M4", Note, op.csvKey(), "it has requirements, which the controller checks against the cluster and installs nothing for: %s", excerpt.Of(texts, maxNames)))
}

// checkAPIs is M5: servers of APIs.
func checkAPIs(e *Examination) []Finding {
	op := e.Operator
	if op.CSV == nil || len(op.CSV.Spec.APIServiceDefinitions.Owned) == 0 {
		return nil
	}
	return one(finding("M5", Note, op.csvKey(), "it serves %d APIs by APIServices, which are taken over: move it while classic OLM is stopped, which is the default", len(op.CSV.Spec.APIServiceDefinitions.Owned)))
}

// checkNamespaces is M6: the namespaces that the operator watches.
func checkNamespaces(e *Examination) []Finding {
	op := e.Operator
	if op.CSV == nil {
		return nil
	}
	group := op.Group()
	if group == nil {
		return one(finding("M6", Blocks, op.subscriptionKey(), "there are %d OperatorGroups in namespace %q, and there has to be one", len(op.Groups), op.Name.Namespace))
	}
	if selector := group.Spec.Selector; selector != nil && len(group.Spec.TargetNamespaces) == 0 && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
		return one(finding("M6", Blocks, op.groupKey(), "it selects namespaces by labels, and an extension names those to watch: set spec.targetNamespaces to %s and remove the selector", excerpt.Of(group.Status.Namespaces, maxNames)))
	}
	watched := op.Watched()
	switch {
	case len(group.Status.Namespaces) == 0:
		return one(finding("M6", Blocks, op.groupKey(), "classic OLM has not said which namespaces it targets: wait for status.namespaces"))
	case len(watched) > bundle.MaxWatchNamespaces:
		return one(finding("M6", Blocks, op.groupKey(), "it targets %d namespaces, and an extension can watch %d, or all", len(watched), bundle.MaxWatchNamespaces))
	}
	mode := op.installMode()
	if !op.supports(mode) {
		return one(finding("M6", Blocks, op.groupKey(), "its namespaces take the install mode %s, which the bundle does not support: change the OperatorGroup", mode))
	}
	if len(watched) == 0 {
		return nil
	}
	return one(finding("M6", Note, op.groupKey(), "the extension watches the same namespaces: %s", excerpt.Of(watched, maxNames)))
}

// installMode is the one that a bundle has to support for the namespaces that the operator watches.
func (o *Operator) installMode() operatorsv1alpha1.InstallModeType {
	watched := o.Watched()
	switch {
	case len(watched) == 0:
		return operatorsv1alpha1.InstallModeTypeAllNamespaces
	case len(watched) > 1 || o.supports(operatorsv1alpha1.InstallModeTypeMultiNamespace):
		return operatorsv1alpha1.InstallModeTypeMultiNamespace
	case watched[0] == o.Name.Namespace:
		return operatorsv1alpha1.InstallModeTypeOwnNamespace
	}
	return operatorsv1alpha1.InstallModeTypeSingleNamespace
}

// checkAccount is M7: the ServiceAccount of the OperatorGroup is that of the extension.
func checkAccount(e *Examination) []Finding {
	op := e.Operator
	account := op.ServiceAccount()
	switch {
	case account == "" || e.Prospect == nil:
		return nil
	case e.Prospect.NoAccount:
		return one(finding("M7", Blocks, op.groupKey(), "its ServiceAccount %q does not exist: create it", account))
	case len(e.Prospect.Missing) > 0:
		return one(finding("M7", Blocks, op.groupKey(), "its ServiceAccount %q installs the extension and lacks %d rights: %s; grant them, `kubectl extension bundle rbac` prints all that it takes",
			account, len(e.Prospect.Missing), excerpt.Of(e.Prospect.Missing, maxNames)))
	}
	return one(finding("M7", Note, op.groupKey(), "its ServiceAccount %q is that of the extension", account))
}

// checkConditions is M8: what the operator says of itself.
func checkConditions(e *Examination) []Finding {
	op := e.Operator
	if op.Condition == nil || len(op.Condition.Spec.Conditions)+len(op.Condition.Spec.Overrides)+len(op.Condition.Status.Conditions) == 0 {
		return nil
	}
	key := op.keyOf(object.OperatorConditionKind.Kind, op.Condition.Name)
	spec := &op.Condition.Spec
	for _, list := range [][]metav1.Condition{spec.Overrides, spec.Conditions, op.Condition.Status.Conditions} {
		said := meta.FindStatusCondition(list, operatorsv2.Upgradeable)
		if said == nil {
			continue
		}
		if said.Status == metav1.ConditionFalse {
			return one(finding("M8", Blocks, key, "Upgradeable is False: %s: %s; wait until the operator agrees, or override it in spec.overrides", said.Reason, said.Message))
		}
		break
	}
	return one(finding("M8", Note, key, "the operator reports conditions, and keeps the object: the extension gets operatorConditions"))
}

// checkDefinitions is M10: a definition is of one extension.
func checkDefinitions(e *Examination) []Finding {
	op := e.Operator
	if op.CSV == nil {
		return nil
	}
	var found []Finding
	for _, owned := range op.CSV.Spec.CustomResourceDefinitions.Owned {
		for i := range e.Cluster.CSVs {
			other := &e.Cluster.CSVs[i]
			isOther := other.Namespace != op.CSV.Namespace || e.Cluster.isInstalledByOther(op, other.Name)
			if isOther && slices.ContainsFunc(other.Spec.CustomResourceDefinitions.Owned, func(one operatorsv1alpha1.CRDDescription) bool { return one.Name == owned.Name }) {
				key := object.Key{GroupKind: object.DefinitionKind, Name: owned.Name}
				found = append(found, finding("M10", Blocks, key, "ClusterServiceVersion %q in namespace %q owns it too, and a definition belongs to one extension: remove one of the two", other.Name, other.Namespace))
			}
		}
	}
	return found
}

// isInstalledByOther says that another Subscription of the namespace has installed it.
func (c *Cluster) isInstalledByOther(op *Operator, csv string) bool {
	return slices.ContainsFunc(c.Subscriptions, func(one operatorsv1alpha1.Subscription) bool {
		return one.Namespace == op.Name.Namespace && one.Name != op.Name.Name && one.Status.InstalledCSV == csv && csv != op.CSV.Name
	})
}

// checkConversion is M11: conversion must not stop for an instant.
func checkConversion(e *Examination) []Finding {
	op := e.Operator
	if !op.converts() {
		return nil
	}
	return one(finding("M11", Note, op.csvKey(), "it converts custom resources, which classic OLM would switch off while it runs: move it while classic OLM is stopped, which is the default; in live mode its annotation olm.targetNamespaces goes first"))
}

// checkCleanup is M12: no version of classic OLM that is known has ever carried it out.
func checkCleanup(e *Examination) []Finding {
	op := e.Operator
	if op.CSV == nil || !op.CSV.Spec.Cleanup.Enabled {
		return nil
	}
	return one(finding("M12", Note, op.csvKey(), "spec.cleanup.enabled asks for custom resources to be deleted with it: classic OLM has no code for that, and nothing is deleted"))
}

// checkSelector is M13: what was never honoured is dropped.
func checkSelector(e *Examination) []Finding {
	op := e.Operator
	if spec := op.Subscription.Spec; spec == nil || spec.Config == nil || spec.Config.Selector == nil {
		return nil
	}
	return one(finding("M13", Note, op.subscriptionKey(), "spec.config.selector is dropped: classic OLM has never honoured it"))
}

// annotationBytes are what the API server takes in all annotations of an object, in bytes.
const annotationBytes = 256 << 10

// checkAnnotations is M14: pods of classic OLM have all annotations of the ClusterServiceVersion, with those of
// their own, which together may be too many for an object, while neither is.
func checkAnnotations(e *Examination) []Finding {
	op := e.Operator
	if op.CSV == nil {
		return nil
	}
	most := 0
	for i := range op.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		merged := map[string]string{}
		maps.Copy(merged, op.CSV.Annotations)
		maps.Copy(merged, op.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i].Spec.Template.Annotations)
		size := 0
		for name, value := range merged {
			size += len(name) + len(value)
		}
		most = max(most, size)
	}
	if most <= annotationBytes {
		return nil
	}
	return one(finding("M14", Note, op.csvKey(), "its annotations and those of its pods have %d bytes, more than an object can: the pods of the extension go without those that are for catalogs", most))
}

// checkInstaller is M15: who installs where the OperatorGroup names nobody.
func checkInstaller(e *Examination) []Finding {
	op := e.Operator
	if op.ServiceAccount() != "" || e.Prospect == nil {
		return nil
	}
	account := cmp.Or(e.Choice.ServiceAccount, e.extensionName()+"-installer")
	key := op.subscriptionKey()
	switch {
	case e.Prospect.NoAccount:
		return one(finding("M15", Attention, key, "classic OLM has installed it by its own rights: ServiceAccount %q is to do it, which does not exist and is made with the least rights that it takes, or name another one with --service-account", account))
	case len(e.Prospect.Missing) > 0:
		return one(finding("M15", Blocks, key, "ServiceAccount %q lacks %d rights: %s; grant them, `kubectl extension bundle rbac` prints all that it takes", account, len(e.Prospect.Missing), excerpt.Of(e.Prospect.Missing, maxNames)))
	}
	return nil
}

// checkChangedRights is M15, too: it finds rights that somebody has changed by hand: what was added there does not move.
func checkChangedRights(e *Examination) []Finding {
	var found []Finding
	for _, content := range e.Operator.Content {
		noted := content.Meta.Labels[labelRightsHash]
		actual := e.Cluster.rightsHashes(content)
		if noted == "" || len(actual) == 0 || slices.Contains(actual, noted) {
			continue
		}
		found = append(found, finding("M15", Attention, content.Key, "somebody has changed it since classic OLM made it, and it is deleted: grant what was added anew, in a role of your own"))
	}
	return found
}

// rightsHashes are what classic OLM can have noted of a role or a binding that is as it is now; none
// of what is neither. In a group of all namespaces it makes cluster-wide copies, with the note
// of the original: a role gets a rule about namespaces, and a binding another role.
func (c *Cluster) rightsHashes(of Object) []string {
	uid := of.Meta.UID
	for i := range c.Roles {
		if c.Roles[i].UID == uid {
			return hashes(RulesHash(c.Roles[i].Rules))
		}
	}
	for i := range c.ClusterRoles {
		if rules := c.ClusterRoles[i].Rules; c.ClusterRoles[i].UID == uid {
			found := hashes(RulesHash(rules))
			if last := len(rules) - 1; last >= 0 && slices.Equal(rules[last].Resources, []string{"namespaces"}) {
				found = append(found, hashes(RulesHash(rules[:last]))...)
			}
			return found
		}
	}
	for i := range c.RoleBindings {
		if binding := &c.RoleBindings[i]; binding.UID == uid {
			return hashes(BindingHash(binding.RoleRef, binding.Subjects))
		}
	}
	for i := range c.ClusterRoleBindings {
		if binding := &c.ClusterRoleBindings[i]; binding.UID == uid {
			original := binding.RoleRef
			original.Kind = kindRole
			return append(hashes(BindingHash(binding.RoleRef, binding.Subjects)), hashes(BindingHash(original, binding.Subjects))...)
		}
	}
	return nil
}

// hashes has none for what cannot be hashed.
func hashes(hash string, err error) []string {
	if err != nil {
		return nil
	}
	return []string{hash}
}

// checkName is G16: the name and the package are free.
func checkName(e *Examination) []Finding {
	name := e.extensionName()
	for i := range e.Cluster.Extensions {
		switch ext := &e.Cluster.Extensions[i]; {
		case ext.Name == name:
			return one(finding("G16", Blocks, extensionKey(name), "there is one already, which was not made from the Subscription: give another name with --name"))
		case ext.Package() == e.Operator.Package():
			return one(finding("G16", Blocks, extensionKey(ext.Name), "it has package %q already, which can be on a cluster once: delete the Subscription, which keeps the operator; to delete the extension deletes its CRDs with all custom resources", ext.Package()))
		}
	}
	var copies []Finding
	for i := range e.Cluster.Subscriptions {
		other := nameOf(&e.Cluster.Subscriptions[i])
		if e.Cluster.hasCopyOf(&e.Cluster.Subscriptions[i], e.Operator) {
			copies = append(copies, finding("G16", Attention, e.Operator.subscriptionKey(), "Subscription %q in namespace %q has a copy of this ClusterServiceVersion, and classic OLM may install the operator there once this one has moved: delete that Subscription", other.Name, other.Namespace))
			continue
		}
		if spec := e.Cluster.Subscriptions[i].Spec; other != e.Operator.Name && spec != nil && spec.Package == e.Operator.Package() {
			if e.Moves != nil && e.Moves(other) {
				return one(finding("G16", Blocks, e.Operator.subscriptionKey(), "Subscription %q in namespace %q is for the same package, which can be on a cluster once: move one of the two, and delete the other", other.Name, other.Namespace))
			}
			// Whoever makes a Subscription in a namespace of theirs is not to keep others from moving.
			return one(finding("G16", Attention, e.Operator.subscriptionKey(), "Subscription %q in namespace %q is for the same package, and classic OLM may install it there once this one has moved: delete it, as a package can be on a cluster once", other.Name, other.Namespace))
		}
		if other != e.Operator.Name && e.Choice.Name == "" && ExtensionName(other) == name {
			return one(finding("G16", Blocks, e.Operator.subscriptionKey(), "the Subscription in namespace %q has the same name, and extensions have no namespace: give a name with --name", other.Namespace))
		}
	}
	return copies
}

// checkProspect has what the controller itself would say.
func checkProspect(e *Examination) []Finding {
	if e.Prospect == nil {
		return nil
	}
	key := extensionKey(e.extensionName())
	var found []Finding
	if refused := e.Prospect.Refused; refused != "" {
		about := finding("M3", Blocks, key, "the controller would not choose the installed bundle: %s", refused)
		if len(e.Prospect.Unmet) > 0 {
			about = finding("M4", Blocks, key, "what the bundle requires is not there: %s; name the operator that brings it, too, or use --all: what moves in the same go counts", excerpt.Of(e.Prospect.Unmet, maxNames))
		}
		found = append(found, about)
	}
	for _, text := range e.Prospect.InTheWay {
		found = append(found, finding("plan", Blocks, key, "%s", text))
	}
	for _, text := range e.Prospect.Unknown {
		found = append(found, finding("plan", Attention, key, "not known: %s", text))
	}
	return found
}
