package classic

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// A record is in an annotation, and whoever may edit the extension may write one. Who completes a move or
// takes it back does so with rights that those may not have: nothing is believed of a record that leads beyond the
// operator that the extension comes after.

// problem says what a record of an extension names that is no business of its; empty for nothing.
func (r *Record) problem(ext *ocv1.ClusterExtension) string {
	of := r.Subscription
	is := func(ref Ref, kind string) bool {
		return ref.Group == object.ClassicGroup && ref.Kind == kind && ref.Namespace == ext.Spec.Namespace
	}
	switch from, _ := ext.MigratedFrom(); {
	case !is(of, operatorsv1alpha1.SubscriptionKind) || from.Namespace != of.Namespace || from.Name != of.Name:
		return of.Key().String() + ", and the extension comes after another one"
	case !is(r.CSV, operatorsv1alpha1.ClusterServiceVersionKind):
		return r.CSV.Key().String() + ", which is not in the namespace of the extension"
	case !slices.Contains([]Mode{Quiet, Live, Strip}, r.Mode):
		return fmt.Sprintf("mode %q, which there is not", r.Mode)
	case r.Label != (object.Predecessor{Namespace: ext.Spec.Namespace, Package: ext.Package()}).ComponentLabel():
		return fmt.Sprintf("label %q, which is not that of the components of package %q", r.Label, ext.Package())
	}
	for _, ref := range r.Deleted {
		if !r.mayDelete(ref, ext.Package()) {
			return ref.Key().String() + ", which no move deletes"
		}
	}
	return ""
}

// mayDelete says that an object is one of those of which [Operator.Fates] has some deleted.
func (r *Record) mayDelete(ref Ref, pkg string) bool {
	switch ref.Group {
	case rbacv1.GroupName:
		return slices.Contains([]string{kindRole, kindRoleBinding, kindClusterRole, kindClusterRoleBinding}, ref.Kind)
	case "admissionregistration.k8s.io":
		return ref.Kind == kindMutating || ref.Kind == kindValidating
	case object.ClassicGroup:
		switch ref.Kind {
		case "Operator":
			return ref.Namespace == "" && ref.Name == operatorObjectName(pkg, r.CSV.Namespace)
		case object.OperatorConditionKind.Kind:
			return ref.Namespace == r.CSV.Namespace && ref.Name == r.CSV.Name
		}
		return ref.Kind == operatorsv1alpha1.InstallPlanKind && ref.Namespace == r.CSV.Namespace
	}
	return false
}

// Has says that an object which is to be deleted is the operator's by its own marks, which others than those
// who may edit it cannot have put there. InstallPlans and what there is one of need none.
func (r *Record) Has(ref Ref, live *metav1.ObjectMeta) bool {
	if ref.Group == object.ClassicGroup {
		return true
	}
	if r.IsOfAnother(live) {
		return false
	}
	_, isComponent := live.Labels[r.Label]
	isServing := live.Namespace == metav1.NamespaceSystem && strings.HasSuffix(live.Name, authReaderName("-service"))
	return isComponent || live.Labels[object.LabelClassicOwner] == r.CSV.Name ||
		live.Namespace == r.CSV.Namespace && (live.Name == r.CSV.Name || live.Labels[object.LabelClassicManaged] != "") || isServing && live.Labels[object.LabelClassicManaged] != ""
}

// IsOfAnother says that the marks of an object name another operator of classic OLM, and not this one.
func (r *Record) IsOfAnother(live *metav1.ObjectMeta) bool {
	if _, isComponent := live.Labels[r.Label]; isComponent {
		return false
	}
	if live.Labels[object.LabelClassicOwner] != "" {
		op := Operator{CSV: &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: r.CSV.Namespace, Name: r.CSV.Name}}}
		return !op.isOwnerIn(live.Labels)
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(live.Labels)), func(label string) bool { return strings.HasPrefix(label, object.PrefixClassicComponent) })
}
