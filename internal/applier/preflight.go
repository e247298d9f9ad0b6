package applier

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// checkPermissions asks, as the ServiceAccount, for the rights to all of an
// operation.
func (a *Applier) checkPermissions(ctx context.Context, history *release.History, desired installation.Desired, before []*unstructured.Unstructured) (notes []string, err error) {
	owner := history.Owner()
	clients, err := a.permissionClients(owner.Account())
	if err != nil {
		return nil, err
	}
	hooksBefore, err := history.InstalledHooks(ctx)
	// Of hooks that cannot be read it is not known what they gave: all of it counts as new.
	if _, isUnreadable := errors.AsType[*release.UnreadableHooksError](err); err != nil && !isUnreadable {
		return nil, err
	}
	givenUp, err := givenUpBy(ctx, history, desired.Revision)
	if err != nil {
		return nil, err
	}
	return preflight.Permissions(ctx, clients, desired.Preflight.Growth, preflight.Install{
		Mapper: a.config.Mapper,
		Subject: permission.Subject{
			Extension: owner.Name, Namespace: owner.Namespace, ServiceAccount: owner.ServiceAccount,
		},
		Content: permission.Content{
			Wanted: desired.Objects, Hooks: hook.WithoutTests(desired.Hooks), GivenUp: givenUp, Before: before, Inherited: owner.InheritedIn(before), HooksBefore: hook.WithoutTests(hooksBefore),
			Replaceable: owner.Replaceable,
		},
		Version: desired.Bundle.Version,
	})
}

// givenUpBy are the hooks of another revision that may run while one is to be applied.
func givenUpBy(ctx context.Context, history *release.History, wanted installation.Revision) ([]hook.Hook, error) {
	hooks, err := history.HooksBefore(ctx)
	if err != nil || !hooks.AreLeft() || hooks.MadeAs.IsMadeAs(wanted) {
		return nil, err
	}
	return hooks.All[hooks.Progress.Done : hooks.Progress.Done+1], nil
}

func (a *Applier) permissionClients(account types.NamespacedName) (permission.Clients, error) {
	authorization, err := impersonation.As(a.clients, account, authorizationv1client.NewForConfigAndClient)
	if err != nil {
		return permission.Clients{}, err
	}
	rbac, err := impersonation.As(a.clients, account, rbacv1client.NewForConfigAndClient)
	return permission.Clients{Authorization: authorization, RBAC: rbac}, err
}

// checkGroups fails with [*object.ConflictError] if the plan registers APIs of groups that the
// cluster or another extension serves. It makes no request if there is nothing to register.
func (a *Applier) checkGroups(ctx context.Context, planned *plan.Plan) error {
	conflicts, err := a.groupConflicts(ctx, planned)
	if err != nil || len(conflicts) == 0 {
		return err
	}
	return &object.ConflictError{Claimant: planned.Owner, Conflicts: conflicts}
}

func (a *Applier) groupConflicts(ctx context.Context, planned *plan.Plan) ([]object.Conflict, error) {
	client, err := impersonation.Listing(a.clients, metadata.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	return usage.GroupConflicts(ctx, client, planned.Owner, planned.Registered())
}

// checkDefinitions asks what the plan does to definitions that exist and to what
// is stored.
func (a *Applier) checkDefinitions(ctx context.Context, policy preflight.Policy, plan *plan.Plan) (notes []string, err error) {
	verdict, err := a.judgeDefinitions(ctx, policy, plan)
	if err != nil {
		return nil, err
	}
	for _, note := range verdict.Notes() {
		notes = append(notes, note.String())
	}
	return notes, verdict.Err()
}

func (a *Applier) judgeDefinitions(ctx context.Context, policy preflight.Policy, plan *plan.Plan) (preflight.Verdict, error) {
	client, err := impersonation.As(a.clients, plan.Owner.Account(), func(config *rest.Config, through *http.Client) (rest.Interface, error) {
		return rest.RESTClientForConfigAndClient(preflight.ConfigFor(config), through)
	})
	if err != nil {
		return preflight.Verdict{}, err
	}
	return preflight.Definitions(ctx, preflight.ListerOf(client), policy.Definitions, plan.Changes())
}
