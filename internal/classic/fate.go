package classic

import (
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Fates are what becomes of the objects of an operator that moves, each list sorted.
type Fates struct {
	// Adopted are objects that the extension takes over, with their UIDs.
	Adopted []Object
	// Deleted are those by which classic OLM manages the operator, and those that it has made
	// under names that nobody else uses. Their UIDs are known, and nothing else of that name
	// is to be deleted.
	Deleted []Object
	// Stays are all others. They lose the marks of classic OLM.
	Stays []Object
}

// Fates are those for an extension that renders objects of such keys.
func (o *Operator) Fates(rendered []object.Key) Fates {
	isRendered := map[object.Key]bool{}
	for _, key := range rendered {
		isRendered[key] = true
	}
	names := o.roleNames()
	var found Fates
	for _, one := range o.Content {
		switch {
		case isRendered[one.Key]:
			found.Adopted = append(found.Adopted, one)
		case o.isOfCondition(one) && isRendered[o.conditionKey()]:
			// OLM v0 creates it again as long as the OperatorCondition exists. The garbage collector deletes it afterwards.
		case o.isLeftover(one, names):
			found.Deleted = append(found.Deleted, one)
		default:
			found.Stays = append(found.Stays, one)
		}
	}
	for _, one := range o.management() {
		if isRendered[one.Key] { // an OperatorCondition, if the extension has one
			found.Adopted = append(found.Adopted, one)
		} else {
			found.Deleted = append(found.Deleted, one)
		}
	}
	for _, list := range [][]Object{found.Adopted, found.Deleted, found.Stays} {
		slices.SortFunc(list, func(a, b Object) int { return a.Key.Compare(b.Key) })
	}
	return found
}

// management are the objects by which classic OLM manages the operator. OperatorGroups are not
// among them: others in the namespace may need theirs.
func (o *Operator) management() []Object {
	var found []Object
	if o.Subscription != nil {
		found = append(found, objectOf(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.SubscriptionKind), &o.Subscription.ObjectMeta))
	}
	if o.CSV != nil {
		found = append(found, objectOf(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind), &o.CSV.ObjectMeta))
	}
	for _, plan := range o.Plans {
		found = append(found, objectOf(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.InstallPlanKind), &plan.ObjectMeta))
	}
	if o.Condition != nil {
		found = append(found, objectOf(object.OperatorConditionKind.WithVersion("v2"), &o.Condition.ObjectMeta))
	}
	if o.OperatorObject != nil {
		found = append(found, objectOf(operatorsv1.SchemeGroupVersion.WithKind("Operator"), &o.OperatorObject.ObjectMeta))
	}
	return append(found, o.Copies...)
}

// isLeftover says that classic OLM has made the object itself, and that an extension has another
// one in its place or none. What came with the bundle is not: nothing of it is deleted.
func (o *Operator) isLeftover(one Object, roles map[string]struct{}) bool {
	labels := one.Meta.Labels
	switch one.Key.Kind {
	case kindMutating, kindValidating:
		return labels[labelWebhookName] != "" && o.isOwnerIn(labels)
	case kindRole, kindRoleBinding:
		if one.Key.Group != rbacv1.GroupName {
			return false
		}
		if o.isOfCondition(one) || o.isOfServing(one) {
			return true
		}
	case kindClusterRole, kindClusterRoleBinding:
		if one.Key.Group != rbacv1.GroupName {
			return false
		}
		if o.isOfServing(one) {
			return true
		}
	default:
		return false
	}
	_, isNamed := roles[one.Key.Name]
	return o.isOwnerIn(labels) && (isNamed || labels[labelRightsHash] != "")
}

func (o *Operator) conditionKey() object.Key {
	return object.Key{GroupKind: object.OperatorConditionKind, Namespace: o.CSV.Namespace, Name: o.CSV.Name}
}

// isOfCondition says that the object is the right of the operator to write its OperatorCondition.
func (o *Operator) isOfCondition(one Object) bool {
	isOwned := slices.ContainsFunc(one.Meta.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return strings.HasPrefix(owner.APIVersion, object.OperatorConditionKind.Group+"/") && owner.Kind == object.OperatorConditionKind.Kind
	})
	return isOwned && one.Key.Namespace == o.CSV.Namespace && one.Key.Name == o.CSV.Name
}

// isOfServing says that the object has to do with what the API server calls: the right to a
// certificate, and the rights that a server of APIs needs, which classic OLM gives to others too.
func (o *Operator) isOfServing(one Object) bool {
	if one.Meta.Labels[object.LabelClassicManaged] == "" {
		return false
	}
	for _, deployment := range o.servingDeployments() {
		for _, service := range serviceNames(deployment) {
			var isOne bool
			switch one.Key.Kind {
			case kindRole:
				isOne = one.Key.Namespace == o.CSV.Namespace && one.Key.Name == certificateName(service)
			case kindRoleBinding:
				isOne = one.Key.Namespace == o.CSV.Namespace && one.Key.Name == certificateName(service) ||
					one.Key.Namespace == metav1.NamespaceSystem && one.Key.Name == authReaderName(service)
			case kindClusterRoleBinding:
				isOne = one.Key.Name == authDelegatorName(service) && o.isOwnerIn(one.Meta.Labels)
			}
			if isOne {
				return true
			}
		}
	}
	return false
}

// roleNames are those that classic OLM gives to what carries the rights of the bundle. What
// cannot be hashed has no name.
func (o *Operator) roleNames() map[string]struct{} {
	found := map[string]struct{}{}
	if o.CSV == nil {
		return found
	}
	strategy := &o.CSV.Spec.InstallStrategy.StrategySpec
	for _, permission := range strategy.Permissions {
		if name, err := RoleName(o.CSV.Name, permission); err == nil {
			found[name] = struct{}{}
		}
	}
	for _, permission := range strategy.ClusterPermissions {
		if name, err := ClusterRoleName(o.CSV.Name, o.CSV.Namespace, permission); err == nil {
			found[name] = struct{}{}
		}
	}
	return found
}
