package permission

import (
	"context"
	"slices"

	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
)

// Clients act as the ServiceAccount that is checked. None of them writes.
type Clients struct {
	Authorization authorizationv1client.AuthorizationV1Interface
	RBAC          rbacv1client.RbacV1Interface
}

// Check holds the rights of the ServiceAccount against needs, without what they only
// advise. It fails with [*MissingError] if there are too few; other errors are those
// of the API server.
//
// It takes a request for the whole cluster and, unless the rights that hold there
// are enough, one for each namespace that has content. Others follow only for
// bindings to roles that are not among the objects, unless the ServiceAccount may
// bind them, and where authorizers do not tell their rules.
func Check(ctx context.Context, clients Clients, needs Needs) error {
	held, err := heldFor(ctx, clients.Authorization, needs)
	if err != nil {
		return err
	}
	has := held.authority()
	if held.Incomplete {
		if has.allowed, err = ask(ctx, clients.Authorization, questions(needs, has)); err != nil {
			return err
		}
	}
	if needs.Escalations, err = readRoles(ctx, clients.RBAC, needs.Escalations, has); err != nil {
		return err
	}
	if rules := missing(needs, has); len(rules) > 0 {
		return &MissingError{Rules: rules}
	}
	return nil
}

// heldFor asks for no more than it takes: many ServiceAccounts have all rights
// everywhere.
func heldFor(ctx context.Context, client authorizationv1client.AuthorizationV1Interface, needs Needs) (Held, error) {
	everywhere, err := Review(ctx, client, []string{""})
	if err != nil {
		return Held{}, err
	}
	if len(missing(needs, everywhere.authority())) == 0 {
		return everywhere, nil
	}
	namespaces := slices.DeleteFunc(needs.Namespaces(), func(namespace string) bool { return namespace == "" })
	held, err := Review(ctx, client, namespaces)
	held.Everywhere, held.Incomplete = everywhere.Everywhere, held.Incomplete || everywhere.Incomplete
	return held, err
}
