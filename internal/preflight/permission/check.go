package permission

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
)

// Clients act as the ServiceAccount that is checked. None of them writes.
type Clients struct {
	Authorization authorizationv1client.AuthorizationV1Interface
	RBAC          rbacv1client.RbacV1Interface

	// Mapper knows what the cluster serves.
	Mapper meta.RESTMapper
}

// Report is what there is to say about a ServiceAccount that lacks nothing, or
// beside what it lacks.
type Report struct {
	// Advised are rights that it does without: to list and to watch, for want of
	// which changes are noticed late, and to update the extension's finalizers.
	Advised []Rule
}

// Check holds the rights of the ServiceAccount against what the content takes. It
// fails with [*MissingError] if there are too few; other errors are those of the
// mapper and of the API server, and objects that cannot be read.
//
// It takes a request for the whole cluster and, unless the rights that hold there
// are enough, one for each namespace that has content. Others follow only for bindings to roles that are not among the
// objects, unless the ServiceAccount may bind them, and where authorizers do not
// tell their rules.
func Check(ctx context.Context, clients Clients, subject Subject, content Content) (Report, error) {
	needs, err := NeedsOf(Served(clients.Mapper), subject, content)
	if err != nil {
		return Report{}, err
	}
	held, err := heldFor(ctx, clients.Authorization, needs)
	if err != nil {
		return Report{}, err
	}
	has := held.authority()
	if held.Incomplete {
		if has.allowed, err = ask(ctx, clients.Authorization, questions(needs, has)); err != nil {
			return Report{}, err
		}
	}
	if needs.Escalations, err = readRoles(ctx, clients.RBAC, needs.Escalations, has); err != nil {
		return Report{}, err
	}
	report := Report{Advised: missing(Needs{Access: needs.Advice}, has)}
	if rules := missing(needs, has); len(rules) > 0 {
		return report, &MissingError{Rules: rules}
	}
	return report, nil
}

// heldFor asks for no more than it takes: many ServiceAccounts have all rights
// everywhere.
func heldFor(ctx context.Context, client authorizationv1client.AuthorizationV1Interface, needs Needs) (Held, error) {
	everywhere, err := Review(ctx, client, []string{""})
	if err != nil {
		return Held{}, err
	}
	wanted := Needs{Access: slices.Concat(needs.Access, needs.Advice), Escalations: needs.Escalations}
	if len(missing(wanted, everywhere.authority())) == 0 {
		return everywhere, nil
	}
	namespaces := slices.DeleteFunc(needs.Namespaces(), func(namespace string) bool { return namespace == "" })
	held, err := Review(ctx, client, namespaces)
	held.Everywhere, held.Incomplete = everywhere.Everywhere, held.Incomplete || everywhere.Incomplete
	return held, err
}
