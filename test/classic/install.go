package classic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Group is an OperatorGroup named "group", for all namespaces if no targets are given, after
// any changes that the caller wants.
func Group(namespace string, targets []string, changes ...func(*operatorsv1.OperatorGroup)) *operatorsv1.OperatorGroup {
	group := &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: targets},
	}
	for _, change := range changes {
		change(group)
	}
	return group
}

// Subscription is one to the default channel of a package in a catalog of [OLM.Serve], with
// the name of the package, after any changes that the caller wants.
func Subscription(namespace, catalog, pkg string, changes ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
	subscription := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pkg},
		Spec: &v1alpha1.SubscriptionSpec{
			CatalogSource: catalog, CatalogSourceNamespace: Namespace, Package: pkg,
			InstallPlanApproval: v1alpha1.ApprovalAutomatic,
		},
	}
	for _, change := range changes {
		change(subscription)
	}
	return subscription
}

// Subscribe creates an OperatorGroup, Subscriptions in its namespace, and all namespaces that
// are missing for it. Classic OLM does the rest, which [OLM.AwaitSucceeded] waits for.
func (o *OLM) Subscribe(ctx context.Context, group *operatorsv1.OperatorGroup, subscriptions ...*v1alpha1.Subscription) error {
	namespaces := map[string]bool{group.Namespace: true}
	for _, name := range group.Spec.TargetNamespaces {
		namespaces[name] = true
	}
	for name := range namespaces {
		if err := o.createNamespace(ctx, name); err != nil {
			return err
		}
	}
	if err := o.Admin.Create(ctx, group); err != nil {
		return fmt.Errorf("creating OperatorGroup %s/%s: %w", group.Namespace, group.Name, err)
	}
	for _, subscription := range subscriptions {
		if err := o.Admin.Create(ctx, subscription); err != nil {
			return fmt.Errorf("creating Subscription %s/%s: %w", subscription.Namespace, subscription.Name, err)
		}
	}
	return nil
}

// AwaitSucceeded waits, as long as the context lasts, until what a Subscription has
// installed is Succeeded and its InstallPlan complete, and gives its CSV. A Subscription with a configuration has its
// Deployment changed once more after that.
func (o *OLM) AwaitSucceeded(ctx context.Context, of client.ObjectKey) (csv *v1alpha1.ClusterServiceVersion, err error) {
	err = o.until(ctx, fmt.Sprintf("Subscription %s to be installed", of), func(ctx context.Context) (err error) {
		csv, err = o.Succeeded(ctx, of)
		return err
	})
	return csv, err
}

// Succeeded is the CSV of a Subscription, if it is Succeeded and its InstallPlan complete. The error says what there is in
// its place, with all that classic OLM has to say about it.
func (o *OLM) Succeeded(ctx context.Context, of client.ObjectKey) (*v1alpha1.ClusterServiceVersion, error) {
	if err := o.Running(); err != nil {
		return nil, err
	}
	subscription := &v1alpha1.Subscription{}
	if err := o.Admin.Get(ctx, of, subscription); err != nil {
		return nil, err
	}
	status := subscription.Status
	if status.InstalledCSV == "" {
		return nil, fmt.Errorf("nothing is installed, state %q: %s%s", status.State, conditions(status.Conditions), o.plan(ctx, of.Namespace, status.InstallPlanRef))
	}
	csv := &v1alpha1.ClusterServiceVersion{}
	if err := o.Admin.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: status.InstalledCSV}, csv); err != nil {
		return nil, err
	}
	if csv.Status.Phase != v1alpha1.CSVPhaseSucceeded {
		return nil, fmt.Errorf("CSV %s is %s: %s%s", csv.Name, cmp.Or(csv.Status.Phase, "new"), csv.Status.Message, unmet(csv))
	}
	return csv, o.checkComplete(ctx, csv)
}

// checkComplete is an error while an InstallPlan is being carried out that has a CSV.
func (o *OLM) checkComplete(ctx context.Context, csv *v1alpha1.ClusterServiceVersion) error {
	plans := &v1alpha1.InstallPlanList{}
	if err := o.Admin.List(ctx, plans, client.InNamespace(csv.Namespace)); err != nil {
		return err
	}
	for i := range plans.Items {
		plan := &plans.Items[i]
		if plan.Spec.Approved && plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete && slices.Contains(plan.Spec.ClusterServiceVersionNames, csv.Name) {
			return fmt.Errorf("InstallPlan %s of CSV %s is %s", plan.Name, csv.Name, cmp.Or(plan.Status.Phase, "new"))
		}
	}
	return nil
}

// plan is what an InstallPlan says about what it has come to.
func (o *OLM) plan(ctx context.Context, namespace string, ref *corev1.ObjectReference) string {
	plan := &v1alpha1.InstallPlan{}
	if ref == nil || o.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, plan) != nil {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "; InstallPlan %s is %s: %s", plan.Name, plan.Status.Phase, plan.Status.Message)
	for _, one := range plan.Status.Conditions {
		fmt.Fprintf(&text, "; %s=%s %s", one.Type, one.Status, one.Message)
	}
	return text.String()
}

// unmet lists what a CSV waits for.
func unmet(csv *v1alpha1.ClusterServiceVersion) string {
	var text strings.Builder
	for _, one := range csv.Status.RequirementStatus {
		if one.Status != v1alpha1.RequirementStatusReasonPresent {
			fmt.Fprintf(&text, "; %s %s %s: %s", one.Kind, one.Name, one.Status, one.Message)
		}
	}
	return text.String()
}

func conditions(all []v1alpha1.SubscriptionCondition) string {
	var texts []string
	for _, one := range all {
		texts = append(texts, fmt.Sprintf("%s=%s %s", one.Type, one.Status, cmp.Or(one.Message, one.Reason)))
	}
	return strings.Join(texts, "; ")
}

var errNoPlan = errors.New("there is no InstallPlan that waits for approval")

// Approve waits until an InstallPlan in a namespace waits for approval, as with a
// Subscription that is Manual, and approves it.
func (o *OLM) Approve(ctx context.Context, namespace string) error {
	return o.until(ctx, "an InstallPlan in namespace "+namespace, func(ctx context.Context) error {
		plans := &v1alpha1.InstallPlanList{}
		if err := o.Admin.List(ctx, plans, client.InNamespace(namespace)); err != nil {
			return err
		}
		i := slices.IndexFunc(plans.Items, func(p v1alpha1.InstallPlan) bool {
			return p.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval && !p.Spec.Approved
		})
		if i < 0 {
			return errNoPlan
		}
		plans.Items[i].Spec.Approved = true
		return o.Admin.Update(ctx, &plans.Items[i])
	})
}
