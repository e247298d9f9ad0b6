package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	applierplan "github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/preview"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// unborn is the UID of an extension that is not on the cluster, in owner references of dry
// runs: the API server wants one.
const unborn types.UID = "00000000-0000-0000-0000-000000000000"

// Foresee says what the plan would do to the cluster. Objects are tried in dry runs, as
// whoever asks; what they may not do is computed, and said. The rights of the ServiceAccount
// are asked for as the ServiceAccount, if whoever asks may act as it. The error is that of the
// context, or says that there is no way to the cluster.
func (c *Cluster) Foresee(ctx context.Context, plan Plan) (preview.Facts, error) {
	facts := factsOf(plan)
	if plan.Resolution == nil {
		return facts, nil
	}
	owner := plan.Owner
	if owner.UID == "" {
		owner.UID = unborn
	}
	owner.Predecessor.ServiceVersion = plan.Resolution.Identity.Name
	api, err := dynamic.NewForConfigAndClient(c.cfg.REST, c.through)
	if err != nil {
		return facts, fmt.Errorf("setting up a client: %w", err)
	}
	planner := applierplan.NewPlanner(api, plan.mapper, owner, nil)
	planned, err := planner.Plan(ownedBy(owner, plan.Objects), plan.Before, plan.helmCRDs)
	if err != nil {
		facts.Obstacles = append(facts.Obstacles, err.Error())
		return facts, nil
	}
	planned.SetRan(plan.ran)
	facts.Trials = planner.Foresee(ctx, planned)
	if err := c.addConflicts(ctx, planned, &facts); err != nil {
		return facts, err
	}
	if err := c.addDefinitions(ctx, plan, planned, &facts); err != nil {
		return facts, err
	}
	addHookObstacles(ctx, api, plan, &facts)
	addAccount(ctx, api, &facts)
	c.addRights(ctx, plan, &facts)
	return facts, ctx.Err()
}

// factsOf are those that are known without the objects.
func factsOf(plan Plan) preview.Facts {
	facts := preview.Facts{
		Owner: plan.Owner, Asked: plan.asked, Unknown: plan.Unknown, Waits: plan.Waits, DependsOnCluster: plan.DependsOnCluster,
		LooksInVain: plan.LooksInVain, Warnings: plan.Warnings,
		Hooks: plan.Hooks, IsInstalled: plan.IsInstalled, Progress: plan.Progress,
	}
	if installed := plan.Extension.Status.Install; installed != nil {
		facts.Installed = &preview.Bundle{Name: installed.Bundle.Name, Version: installed.Bundle.Version}
	}
	if chosen := plan.Resolution; chosen != nil {
		facts.Chosen = &preview.Bundle{
			Name: chosen.Identity.Name, Version: chosen.Identity.Version, Image: chosen.Image, Catalog: chosen.Catalog,
		}
	}
	if plan.UnknownBefore != "" {
		facts.Unknown = append(facts.Unknown, plan.UnknownBefore)
	}
	if plan.Deleting != "" {
		facts.Obstacles = append(facts.Obstacles, plan.Deleting)
	}
	if plan.Err != nil {
		facts.Obstacles = append(facts.Obstacles, explained(plan.Err))
	}
	return facts
}

// explained is why nothing is chosen, with what the catalogs have instead and by which rule
// that is left out.
func explained(err error) string {
	text := err.Error()
	if failure, ok := errors.AsType[*resolve.Error](err); ok && failure.Explanation() != "" {
		text += "; " + failure.Explanation()
	}
	return text
}

// addConflicts looks, as whoever asks, who else serves the groups of API services.
func (c *Cluster) addConflicts(ctx context.Context, planned *applierplan.Plan, facts *preview.Facts) error {
	client, err := metadata.NewForConfigAndClient(c.cfg.REST, c.through)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	facts.Conflicts, err = usage.GroupConflicts(ctx, client, planned.Owner, planned.Registered())
	if err != nil && ctx.Err() == nil {
		facts.Unknown = append(facts.Unknown, "whether others serve the groups of the API services: "+err.Error())
		err = nil
	}
	return err
}

// addDefinitions reads stored objects as whoever asks.
func (c *Cluster) addDefinitions(ctx context.Context, plan Plan, planned *applierplan.Plan, facts *preview.Facts) error {
	stored, err := rest.RESTClientForConfigAndClient(preflight.ConfigFor(c.cfg.REST), c.through)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	facts.Verdict, err = preflight.Definitions(ctx, preflight.ListerOf(stored), plan.Preflight.Definitions, planned.Changes())
	if err != nil && ctx.Err() == nil {
		facts.Obstacles = append(facts.Obstacles, err.Error())
		err = nil
	}
	return err
}

// addAccount looks whether there is the ServiceAccount.
func addAccount(ctx context.Context, api dynamic.Interface, facts *preview.Facts) {
	name, namespace := facts.Owner.ServiceAccount, facts.Owner.Namespace
	_, err := api.Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	facts.NoAccount = apierrors.IsNotFound(err)
	if err != nil && !facts.NoAccount {
		facts.Unknown = append(facts.Unknown, fmt.Sprintf("whether ServiceAccount %q exists in namespace %q: %v", name, namespace, err))
	}
}

// addRights adds those that the ServiceAccount lacks, and those that the operator would get.
func (c *Cluster) addRights(ctx context.Context, plan Plan, facts *preview.Facts) {
	mapper := permission.Served(plan.mapper)
	subject := permission.Subject{Extension: plan.Owner.Name, Namespace: plan.Owner.Namespace, ServiceAccount: plan.Owner.ServiceAccount}
	content := permission.Content{
		Wanted: plan.Objects, Hooks: hook.WithoutTests(plan.Hooks), Before: plan.Before, Inherited: plan.Owner.InheritedIn(plan.Before),
		HooksBefore: plan.HooksBefore, Replaceable: plan.Owner.Replaceable,
	}
	if err := c.checkRights(ctx, mapper, subject, content); err != nil {
		missing, isMissing := errors.AsType[*permission.MissingError](err)
		switch {
		case isMissing:
			facts.Missing = missing.Rules
		case apierrors.IsForbidden(err):
			facts.Unknown = append(facts.Unknown, fmt.Sprintf("whether the ServiceAccount has the rights that it takes, as you may not act as it: %s",
				strings.TrimPrefix(err.Error(), "asking for the rights of the ServiceAccount in the whole cluster: ")))
		default:
			facts.Obstacles = append(facts.Obstacles, err.Error())
		}
	}
	if len(content.OwnBefore()) == 0 {
		return
	}
	gains, err := permission.Growth(mapper, subject, content)
	if err != nil {
		facts.Obstacles = append(facts.Obstacles, err.Error())
		return
	}
	facts.Gains = gains
	if version := plan.Resolution.Identity.Version; facts.Waits == "" && plan.Preflight.Growth.Waits(version, len(gains) > 0) {
		facts.Waits = fmt.Sprintf("approval, as the operator gains rights: set spec.install.preflight.permissions.approvedVersion to %q", version)
		if plan.Image != "" {
			facts.Waits += fmt.Sprintf(" and approvedDigest to %q", plan.Digest)
		}
	}
}

// checkRights are about what an install takes.
func (c *Cluster) checkRights(ctx context.Context, mapper permission.Mapper, subject permission.Subject, content permission.Content) error {
	needs, err := permission.NeedsOf(mapper, subject, content)
	if err != nil {
		return err
	}
	return c.checkNeeds(ctx, subject, needs)
}

// checkNeeds asks as the ServiceAccount. It fails as [permission.Check] does.
func (c *Cluster) checkNeeds(ctx context.Context, subject permission.Subject, needs permission.Needs) error {
	config := rest.CopyConfig(c.cfg.REST)
	account := types.NamespacedName{Namespace: subject.Namespace, Name: subject.ServiceAccount}
	config.Impersonate = rest.ImpersonationConfig{UserName: impersonation.User(account)}
	through, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	authorization, err := authorizationv1client.NewForConfigAndClient(config, through)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	rbac, err := rbacv1client.NewForConfigAndClient(config, through)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	return permission.Check(ctx, permission.Clients{Authorization: authorization, RBAC: rbac}, needs)
}
