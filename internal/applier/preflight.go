package applier

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// checkPermissions asks, as the ServiceAccount, for the rights to all of an
// operation.
func (a *Applier) checkPermissions(ctx context.Context, owner object.Owner, desired installation.Desired, before []*unstructured.Unstructured) (notes []string, err error) {
	clients, err := a.permissionClients(owner.Account())
	if err != nil {
		return nil, err
	}
	return preflight.Permissions(ctx, clients, desired.Preflight.Growth, preflight.Install{
		Mapper: a.config.Mapper,
		Subject: permission.Subject{
			Extension: owner.Name, Namespace: owner.Namespace, ServiceAccount: owner.ServiceAccount,
		},
		Content: permission.Content{Wanted: desired.Objects, Before: before, Replaceable: owner.Replaceable},
		Version: desired.Bundle.Version,
	})
}

func (a *Applier) permissionClients(account types.NamespacedName) (permission.Clients, error) {
	authorization, err := impersonation.As(a.clients, account, authorizationv1client.NewForConfigAndClient)
	if err != nil {
		return permission.Clients{}, err
	}
	rbac, err := impersonation.As(a.clients, account, rbacv1client.NewForConfigAndClient)
	return permission.Clients{Authorization: authorization, RBAC: rbac}, err
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
