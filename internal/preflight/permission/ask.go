package permission

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// maxQuestions is how many rights are asked for one by one. It is reached only by
// large bundles: where an authorizer other than RBAC grants rights by name, or in many
// namespaces.
const maxQuestions = 512

// questions are the rights that an authorizer that does not tell its rules may
// allow nevertheless, sorted.
func questions(needs Needs, has authority) []right {
	var open []Rule
	for _, rule := range slices.Concat(needs.managed(), needs.Advice) {
		open = append(open, rulesOf(has.refused(rule))...)
	}
	for _, escalation := range needs.Escalations {
		if len(escalation.lacking(has)) > 0 {
			open = append(open, Rule{Namespace: escalation.Namespace, PolicyRule: escalation.Permit})
		}
	}
	return rightsOf(open)
}

// ask gives those of the rights that the API server allows. It asks for a right
// on all names first, and by name only where that is refused. Rights beyond the
// bound count as allowed: to hold back what may well be allowed would be worse
// than to have the API server refuse it.
func ask(ctx context.Context, client authorizationv1client.AuthorizationV1Interface, rights []right) (map[right]struct{}, error) {
	general := withoutNames(rights)
	bound := min(maxQuestions, len(general))
	found, err := allowed(ctx, client, general[:bound])
	if err != nil {
		return nil, err
	}
	for _, r := range general[bound:] {
		found[r] = struct{}{}
	}
	var named []right
	for _, r := range rights {
		if r.name != "" && !includesMore(found, r) {
			named = append(named, r)
		}
	}
	bound = min(maxQuestions-bound, len(named))
	byName, err := allowed(ctx, client, named[:bound])
	if err != nil {
		return nil, err
	}
	maps.Copy(found, byName)
	for _, r := range named[bound:] {
		found[r] = struct{}{}
	}
	return found, nil
}

// withoutNames is what to ask first.
func withoutNames(rights []right) []right {
	general := make([]right, len(rights))
	for i, r := range rights {
		general[i] = r
		general[i].name = ""
	}
	slices.SortFunc(general, compareRights)
	return slices.Compact(general)
}

// allowed asks for each of the rights, some at a time.
func allowed(ctx context.Context, client authorizationv1client.AuthorizationV1Interface, rights []right) (map[right]struct{}, error) {
	answers := make([]bool, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, r := range rights {
		group.Go(func() error {
			answer, err := client.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: r.attributes()},
			}, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("asking whether the ServiceAccount may %s %s: %w", r.verb, r.resource, err)
			}
			answers[i] = answer.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := map[right]struct{}{}
	for i, r := range rights {
		if answers[i] {
			found[r] = struct{}{}
		}
	}
	return found, nil
}
