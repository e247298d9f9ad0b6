package permission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
)

// readRoles finds out what bindings to roles of the cluster grant, as far as it
// matters. It returns the escalations that are left to look at.
func readRoles(ctx context.Context, client rbacv1client.RbacV1Interface, escalations []Escalation, has authority) ([]Escalation, error) {
	read := slices.Clone(escalations)
	granted := make([]bool, len(read))
	external := 0
	for _, escalation := range escalations {
		if escalation.external != nil {
			external++
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range read {
		if read[i].external == nil || len(read[i].lacking(has)) == 0 {
			continue
		}
		group.Go(func() (err error) {
			granted[i], err = readRole(ctx, client, &read[i], maxGranted/external)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var left []Escalation
	for i, escalation := range read {
		if !granted[i] {
			left = append(left, escalation)
		}
	}
	return left, nil
}

// readRole fills in what the role of a binding grants, or reports that the API
// server would take the binding as it is. Of a role that does not exist nothing
// is known: it can be bound only by who may bind it unseen. One that grants more
// rights than the limit is not compared: the API server is asked.
func readRole(ctx context.Context, client rbacv1client.RbacV1Interface, escalation *Escalation, limit int) (granted bool, err error) {
	key := escalation.external.role
	var rules []rbacv1.PolicyRule
	if key.namespace == "" {
		var role *rbacv1.ClusterRole
		if role, err = client.ClusterRoles().Get(ctx, key.name, metav1.GetOptions{}); err == nil {
			rules = role.Rules
		}
	} else {
		var role *rbacv1.Role
		if role, err = client.Roles(key.namespace).Get(ctx, key.name, metav1.GetOptions{}); err == nil {
			rules = role.Rules
		}
	}
	switch {
	case err == nil && sizeOfAll(rules, limit) > limit:
		return tryBinding(ctx, client, escalation.external.item)
	case err == nil:
		escalation.Grants = rules
		return false, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return tryBinding(ctx, client, escalation.external.item)
	default:
		return false, fmt.Errorf("reading the role %q: %w", key.name, err)
	}
}

// tryBinding asks the API server to take a binding without keeping it. Only a
// refusal tells of rights; whatever else is wrong shows when it is written.
func tryBinding(ctx context.Context, client rbacv1client.RbacV1Interface, item item) (granted bool, err error) {
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if item.namespace == "" {
		var wanted rbacv1.ClusterRoleBinding
		if err := item.into(&wanted); err != nil {
			return false, err
		}
		_, err = client.ClusterRoleBindings().Create(ctx, &wanted, options)
	} else {
		var wanted rbacv1.RoleBinding
		if err := item.into(&wanted); err != nil {
			return false, err
		}
		_, err = client.RoleBindings(item.namespace).Create(ctx, &wanted, options)
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return !apierrors.IsForbidden(err) && !isNoRole(err), nil
}

// isNoRole tells a role that is not there from a namespace that is not. The answer
// has the name of what is missing; its kind is that of the request, unless it is a
// namespace.
func isNoRole(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind != "namespaces"
}
