package permission

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// parallel is how many requests are under way at a time.
const parallel = 8

// nowhere is a namespace that cannot exist, because it is no DNS label. A review
// needs a namespace and mixes the rules of that one with those that hold
// everywhere; of this one there are none, so that the latter are left.
const nowhere = "-"

// Review asks which rules hold in the namespaces for whoever the client acts as:
// one request for each namespace, where the empty one stands for the whole
// cluster. Rules that came by groups, aggregation and any binding are among them.
func Review(ctx context.Context, client authorizationv1client.AuthorizationV1Interface, namespaces []string) (Held, error) {
	answers := make([]authorizationv1.SubjectRulesReviewStatus, len(namespaces))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, namespace := range namespaces {
		group.Go(func() (err error) {
			answers[i], err = review(ctx, client, namespace)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Held{}, err
	}
	held := Held{Namespaces: map[string][]rbacv1.PolicyRule{}}
	for i, namespace := range namespaces {
		if namespace == "" {
			held.Everywhere = policyRules(answers[i])
		} else {
			held.Namespaces[namespace] = policyRules(answers[i])
		}
		held.Incomplete = held.Incomplete || answers[i].Incomplete
	}
	return held, nil
}

func review(ctx context.Context, client authorizationv1client.AuthorizationV1Interface, namespace string) (authorizationv1.SubjectRulesReviewStatus, error) {
	where := fmt.Sprintf("in namespace %q", namespace)
	if namespace == "" {
		namespace, where = nowhere, "in the whole cluster"
	}
	answer, err := client.SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}, metav1.CreateOptions{})
	if err != nil {
		return authorizationv1.SubjectRulesReviewStatus{}, fmt.Errorf("asking for the rights of the ServiceAccount %s: %w", where, err)
	}
	return answer.Status, nil
}

// policyRules leaves the evaluation error aside. Authorizers that cannot tell their
// rules also make the answer incomplete, and bindings to roles that do not exist,
// the other cause, grant nothing.
func policyRules(status authorizationv1.SubjectRulesReviewStatus) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, 0, len(status.ResourceRules)+len(status.NonResourceRules))
	for _, rule := range status.ResourceRules {
		rules = append(rules, rbacv1.PolicyRule{
			Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
		})
	}
	for _, rule := range status.NonResourceRules {
		rules = append(rules, rbacv1.PolicyRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
	}
	return rules
}
