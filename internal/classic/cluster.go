package classic

import (
	"maps"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Cluster is what was read of a cluster on which there is classic OLM.
type Cluster struct {
	Subscriptions []operatorsv1alpha1.Subscription
	// CSVs are those of operators that run in their namespace; Copies are the others, which
	// only tell that an operator somewhere else watches the namespace.
	CSVs   []operatorsv1alpha1.ClusterServiceVersion
	Copies []Object
	Groups []operatorsv1.OperatorGroup
	// Plans need not have the manifests of their steps.
	Plans      []operatorsv1alpha1.InstallPlan
	Conditions []operatorsv2.OperatorCondition
	// OperatorObjects are those of the kind Operator, each of which lists the components of one.
	OperatorObjects []operatorsv1.Operator
	Sources         []operatorsv1alpha1.CatalogSource

	// Deployments, Roles and bindings are read as a whole, as their content counts.
	Deployments         []appsv1.Deployment
	Roles               []rbacv1.Role
	RoleBindings        []rbacv1.RoleBinding
	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	// Objects are those of all other kinds that an operator can consist of.
	Objects []Object

	Extensions []ocv1.ClusterExtension
	Catalogs   []ocv1.ClusterCatalog

	claimed map[object.Key]struct{} // what is of an operator; nil before [Cluster.Operators]
}

// Object is what is known of an object that may belong to an operator.
type Object struct {
	Key  object.Key
	Meta metav1.ObjectMeta
}

// Operators are those of the cluster: one for each Subscription, and one for each
// ClusterExtension that was migrated from a Subscription that is gone. They are sorted by
// namespace and name of the Subscription.
func (c *Cluster) Operators() []Operator {
	objects := c.index()
	c.claimed = map[object.Key]struct{}{}
	var found []Operator
	subscribed := map[types.NamespacedName]struct{}{}
	for i := range c.Subscriptions {
		name := nameOf(&c.Subscriptions[i])
		subscribed[name] = struct{}{}
		found = append(found, c.operator(name, &c.Subscriptions[i], objects))
		for _, one := range found[len(found)-1].Content {
			c.claimed[one.Key] = struct{}{}
		}
	}
	for i := range c.Extensions {
		from, isMigrated := c.Extensions[i].MigratedFrom()
		if _, isSubscribed := subscribed[from]; isMigrated && !isSubscribed {
			found = append(found, Operator{Name: from, Extension: &c.Extensions[i]})
		}
	}
	slices.SortFunc(found, func(a, b Operator) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	return found
}

// copiedFrom returns the namespace of the original if a Subscription has only a copy of a ClusterServiceVersion; empty
// otherwise.
func (c *Cluster) copiedFrom(subscription *operatorsv1alpha1.Subscription) string {
	for _, one := range c.Copies {
		if one.Key.Namespace == subscription.Namespace && one.Key.Name == subscription.Status.InstalledCSV {
			return one.Meta.Labels[operatorsv1alpha1.CopiedLabelKey]
		}
	}
	return ""
}

// hasCopyOf reports whether a Subscription has a copy of the ClusterServiceVersion of an operator.
func (c *Cluster) hasCopyOf(subscription *operatorsv1alpha1.Subscription, op *Operator) bool {
	return op.CSV != nil && subscription.Status.InstalledCSV == op.CSV.Name && c.copiedFrom(subscription) == op.CSV.Namespace
}

// nameOf is the name of an object with its namespace.
func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// index is every object that can belong to an operator, by its key.
func (c *Cluster) index() map[object.Key]Object {
	found := map[object.Key]Object{}
	add := func(one Object) { found[one.Key] = one }
	for i := range c.Deployments {
		add(objectOf(appsv1.SchemeGroupVersion.WithKind("Deployment"), &c.Deployments[i].ObjectMeta))
	}
	for i := range c.Roles {
		add(objectOf(rbacv1.SchemeGroupVersion.WithKind(kindRole), &c.Roles[i].ObjectMeta))
	}
	for i := range c.RoleBindings {
		add(objectOf(rbacv1.SchemeGroupVersion.WithKind(kindRoleBinding), &c.RoleBindings[i].ObjectMeta))
	}
	for i := range c.ClusterRoles {
		add(objectOf(rbacv1.SchemeGroupVersion.WithKind(kindClusterRole), &c.ClusterRoles[i].ObjectMeta))
	}
	for i := range c.ClusterRoleBindings {
		add(objectOf(rbacv1.SchemeGroupVersion.WithKind(kindClusterRoleBinding), &c.ClusterRoleBindings[i].ObjectMeta))
	}
	for _, one := range c.Objects {
		add(one)
	}
	return found
}

func objectOf(kind schema.GroupVersionKind, meta *metav1.ObjectMeta) Object {
	return Object{Key: object.Key{GroupKind: kind.GroupKind(), Namespace: meta.Namespace, Name: meta.Name}, Meta: *meta}
}

// operator puts together what belongs to a Subscription.
func (c *Cluster) operator(name types.NamespacedName, subscription *operatorsv1alpha1.Subscription, objects map[object.Key]Object) Operator {
	op := Operator{Name: name, Subscription: subscription}
	csv := types.NamespacedName{Namespace: name.Namespace, Name: subscription.Status.InstalledCSV}
	op.CSV = first(c.CSVs, func(one *operatorsv1alpha1.ClusterServiceVersion) bool { return nameOf(one) == csv })
	op.Condition = first(c.Conditions, func(one *operatorsv2.OperatorCondition) bool { return nameOf(one) == csv })
	op.OperatorObject = first(c.OperatorObjects, func(one *operatorsv1.Operator) bool { return one.Name == op.operatorObjectName() })
	op.Source = first(c.Sources, func(one *operatorsv1alpha1.CatalogSource) bool { return refersTo(subscription, one) })
	op.Extension = first(c.Extensions, func(one *ocv1.ClusterExtension) bool {
		from, isMigrated := one.MigratedFrom()
		return isMigrated && from == name
	})
	op.Groups = all(c.Groups, func(one *operatorsv1.OperatorGroup) bool { return one.Namespace == name.Namespace })
	op.allPlans = all(c.Plans, func(one *operatorsv1alpha1.InstallPlan) bool { return one.Namespace == name.Namespace })
	op.Plans = c.plansOf(&op)
	for _, one := range c.Copies {
		if op.CSV != nil && one.Key.Name == csv.Name && one.Meta.Labels[operatorsv1alpha1.CopiedLabelKey] == name.Namespace {
			op.Copies = append(op.Copies, one)
		}
	}
	op.Content = op.collect(c, objects)
	op.Deployments = all(c.Deployments, func(deployment *appsv1.Deployment) bool {
		return slices.ContainsFunc(op.Content, func(one Object) bool { return one.Meta.UID == deployment.UID })
	})
	return op
}

// all are the items of a list that are as they should be; nil for none.
func all[T any](list []T, is func(*T) bool) []*T {
	var found []*T
	for i := range list {
		if is(&list[i]) {
			found = append(found, &list[i])
		}
	}
	return found
}

// first is the first item of a list that is as it should be; nil if none is.
func first[T any](list []T, is func(*T) bool) *T {
	if found := all(list, is); len(found) > 0 {
		return found[0]
	}
	return nil
}

// refersTo says that a Subscription chooses from a CatalogSource.
func refersTo(subscription *operatorsv1alpha1.Subscription, source *operatorsv1alpha1.CatalogSource) bool {
	spec := subscription.Spec
	return spec != nil && spec.CatalogSource == source.Name && spec.CatalogSourceNamespace == source.Namespace
}

// plansOf are the InstallPlans that are about nothing but this operator and what is not installed
// any more or not yet: a plan for others as well is theirs until they move.
func (c *Cluster) plansOf(op *Operator) []*operatorsv1alpha1.InstallPlan {
	others := map[string]struct{}{}
	for i := range c.Subscriptions {
		if one := &c.Subscriptions[i]; one.Namespace == op.Name.Namespace && one.Name != op.Name.Name {
			others[one.Status.InstalledCSV], others[one.Status.CurrentCSV] = struct{}{}, struct{}{}
		}
	}
	var found []*operatorsv1alpha1.InstallPlan
	for _, plan := range op.allPlans {
		names := plan.Spec.ClusterServiceVersionNames
		isOthers := slices.ContainsFunc(names, func(name string) bool { _, is := others[name]; return is })
		if !isOthers && op.isPlanOf(plan) {
			found = append(found, plan)
		}
	}
	return found
}

// isPlanOf says that a plan has to do with the operator.
func (o *Operator) isPlanOf(plan *operatorsv1alpha1.InstallPlan) bool {
	status := &o.Subscription.Status
	if status.InstallPlanRef != nil && status.InstallPlanRef.UID == plan.UID {
		return true
	}
	_, isLabelled := plan.Labels[o.ComponentLabel()]
	return isLabelled || slices.ContainsFunc(plan.Spec.ClusterServiceVersionNames, func(name string) bool {
		return name != "" && (name == status.InstalledCSV || name == status.CurrentCSV)
	})
}

// collect finds the objects of an operator by all that ties them to it: its object of the kind
// Operator, labels, owner references and the steps of its plans. None of these alone knows of all.
func (o *Operator) collect(c *Cluster, objects map[object.Key]Object) []Object {
	if o.CSV == nil {
		return nil
	}
	found := map[object.Key]Object{}
	add := func(key object.Key) {
		if one, exists := objects[key]; exists && o.canHave(c, one) {
			found[key] = one
		}
	}
	for _, key := range o.named() {
		add(key)
	}
	for key, one := range objects {
		if o.hasMarked(one) {
			add(key)
		}
	}
	definitions := map[types.UID]struct{}{}
	for key, one := range found {
		if key.GroupKind == object.DefinitionKind {
			definitions[one.Meta.UID] = struct{}{}
		}
	}
	for key, one := range objects {
		for _, owner := range one.Meta.OwnerReferences {
			if _, isOurs := definitions[owner.UID]; isOurs && one.Meta.Labels[object.LabelClassicManaged] != "" {
				add(key)
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Object) int { return a.Key.Compare(b.Key) })
}

// canHave says that an object is where classic OLM makes something for the operator: in no namespace, in that of the
// operator, a copy of a role in one that it watches, or the right to be called by the API server. Anybody can mark
// objects of theirs in other namespaces: many of them would hold up the move, and all would come into its backup.
func (o *Operator) canHave(c *Cluster, one Object) bool {
	switch namespace := one.Key.Namespace; {
	case namespace == "" || namespace == o.CSV.Namespace:
		return true
	case one.Key.GroupKind == schema.GroupKind{Group: rbacv1.GroupName, Kind: kindRoleBinding} && namespace == metav1.NamespaceSystem && o.isOfServing(one):
		return !c.isForOthers(one, o.CSV.Namespace)
	}
	isRole := one.Key.Group == rbacv1.GroupName && (one.Key.Kind == kindRole || one.Key.Kind == kindRoleBinding)
	return isRole && one.Meta.Labels[operatorsv1alpha1.CopiedLabelKey] == o.CSV.Namespace && slices.Contains(o.Watched(), one.Key.Namespace)
}

// isForOthers says that a binding is for somebody who is not of a namespace: its name is that of a deployment, which
// operators of several namespaces can have.
func (c *Cluster) isForOthers(one Object, namespace string) bool {
	binding := first(c.RoleBindings, func(binding *rbacv1.RoleBinding) bool { return binding.UID == one.Meta.UID })
	return binding != nil && slices.ContainsFunc(binding.Subjects, func(subject rbacv1.Subject) bool { return subject.Namespace != namespace })
}

// Claim adds an object of its bundle to an operator of [Cluster.Operators], which has been called
// before: classic OLM has made the object, and nothing that is left says for whom. InstallPlans have said
// so, of which classic OLM keeps only the last ones. It is false for what somebody else has
// made, or is of another operator.
func (c *Cluster) Claim(op *Operator, one Object) bool {
	if _, isClaimed := c.claimed[one.Key]; isClaimed || !IsMarked(&one.Meta) {
		return false
	}
	for label := range one.Meta.Labels {
		if strings.HasPrefix(label, object.PrefixClassicComponent) && label != op.ComponentLabel() {
			return false
		}
	}
	if one.Meta.Labels[object.LabelClassicOwner] != "" && !op.isOwnerIn(one.Meta.Labels) || slices.ContainsFunc(one.Meta.OwnerReferences, isManagement) {
		return false
	}
	c.claimed[one.Key] = struct{}{}
	op.Content = append(op.Content, one)
	slices.SortFunc(op.Content, func(a, b Object) int { return a.Key.Compare(b.Key) })
	return true
}

// Named are the keys of everything that InstallPlans and objects of the kind Operator name, whatever
// operator it is of and whether or not it is there.
func (c *Cluster) Named() map[object.Key]struct{} {
	found := map[object.Key]struct{}{}
	for i := range c.OperatorObjects {
		for _, key := range refsOf(&c.OperatorObjects[i]) {
			found[key] = struct{}{}
		}
	}
	for i := range c.Plans {
		for _, step := range c.Plans[i].Status.Plan {
			for _, key := range keysOf(step, c.Plans[i].Namespace) {
				found[key] = struct{}{}
			}
		}
	}
	return found
}

// named are the keys that other objects of classic OLM name, whether or not there are such objects.
func (o *Operator) named() []object.Key {
	var keys []object.Key
	if o.OperatorObject != nil {
		keys = refsOf(o.OperatorObject)
	}
	for _, plan := range o.allPlans {
		for _, step := range plan.Status.Plan {
			if step != nil && step.Resolving == o.CSV.Name {
				keys = append(keys, keysOf(step, plan.Namespace)...)
			}
		}
	}
	for _, deployment := range o.servingDeployments() {
		for _, name := range serviceNames(deployment) {
			keys = append(keys,
				object.Key{GroupKind: schema.GroupKind{Group: rbacv1.GroupName, Kind: kindRoleBinding}, Namespace: metav1.NamespaceSystem, Name: authReaderName(name)},
				object.Key{GroupKind: schema.GroupKind{Group: rbacv1.GroupName, Kind: kindClusterRoleBinding}, Name: authDelegatorName(name)})
		}
	}
	return keys
}

// refsOf are the components that an object of the kind Operator lists.
func refsOf(listing *operatorsv1.Operator) []object.Key {
	if listing.Status.Components == nil {
		return nil
	}
	var keys []object.Key
	for _, ref := range listing.Status.Components.Refs {
		if ref.ObjectReference != nil {
			keys = append(keys, object.Key{GroupKind: ref.GroupVersionKind().GroupKind(), Namespace: ref.Namespace, Name: ref.Name})
		}
	}
	return keys
}

// keysOf are those that what a step has made can have: it does not say whether its kind has a
// namespace, and there is an object of one of the two at most.
func keysOf(step *operatorsv1alpha1.Step, namespace string) []object.Key {
	if step == nil {
		return nil
	}
	key := object.Key{GroupKind: schema.GroupKind{Group: step.Resource.Group, Kind: step.Resource.Kind}, Name: step.Resource.Name}
	switch {
	case step.Resource.Kind == kindBundleSecret:
		key.GroupKind = schema.GroupKind{Kind: "Secret"}
	case step.Resource.Group == "core": // both spellings occur
		key.Group = ""
	}
	inNamespace := key
	inNamespace.Namespace = namespace
	return []object.Key{key, inNamespace}
}
