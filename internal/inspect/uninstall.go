package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

// maxReads is how many objects are read at a time.
const maxReads = 16

// uninstalling is a look at what a deletion would come to, as whoever asks.
type uninstalling struct {
	api    dynamic.Interface
	reader metadata.Interface
	mapper meta.RESTMapper
	owner  object.Owner

	// unknown is what could not be found out, a line each.
	unknown []string
}

// Uninstall says what a deletion in the background would do to an extension on the cluster, or
// to it with the uninstall policy of a file. What may not be read is said to be not known. The
// error says that there is no such extension, or that there is no way to the cluster.
func (c *Cluster) Uninstall(ctx context.Context, request Request) (preview.UninstallFacts, error) {
	asked, err := c.extension(ctx, request)
	ext := asked.wanted
	switch {
	case err != nil:
		return preview.UninstallFacts{}, err
	case asked.unread != "":
		return preview.UninstallFacts{}, fmt.Errorf("not known is %s", asked.unread)
	case asked.live == nil:
		return preview.UninstallFacts{}, fmt.Errorf("ClusterExtension %q is not on the cluster: there is nothing to delete", ext.Name)
	}
	look := uninstalling{owner: controller.OwnerOf(ext)}
	if look.mapper, err = apiutil.NewDynamicRESTMapper(c.cfg.REST, c.through); err == nil {
		look.api, err = dynamic.NewForConfigAndClient(c.cfg.REST, c.through)
	}
	if err == nil {
		look.reader, err = metadata.NewForConfigAndClient(c.cfg.REST, c.through)
	}
	if err != nil {
		return preview.UninstallFacts{}, fmt.Errorf("setting up a client: %w", err)
	}
	recorded, isKnown := c.recorded(ctx, ext, &look)
	hooks, progress := c.deletionHooks(ctx, isKnown, &look)
	objects := look.installed(ctx, recorded)
	definitions, areListed := look.definitions(ctx, objects)
	uses := look.uses(ctx, definitions)
	namespaces := c.namespaces(ctx, &look, objects)
	plan := controller.PlanUninstall(ext, controller.UninstallContent{
		Uses: uses, Namespaces: namespaces, Hooks: hooks, Progress: progress,
		ServesAPIs: slices.ContainsFunc(recorded, func(item object.Item) bool { return item.Key.GroupKind == object.APIServiceKind }),
		Converts:   slices.ContainsFunc(recorded, func(item object.Item) bool { return object.IsConverted(item.Object) }),
	})
	facts := uninstallFactsOf(ext, plan)
	facts.Deleting, facts.HasPolicyInForce = deletingText(asked.live), hasPolicyInForce(asked.live, hooks)
	facts.Objects, facts.Uses, facts.Partial = withDefinitions(objects, definitions), uses, !isKnown || !areListed
	look.addObstacles(ctx, plan.Policy, definitions, seen{records: isKnown, definitions: areListed, unrecorded: unrecorded(objects, uses)}, &facts)
	facts.Namespaces = namespaces
	isUnread := slices.ContainsFunc(namespaces, func(use installation.NamespaceUse) bool { return use.Err != nil })
	facts.Unchecked = facts.Unchecked || isUnread && !plan.DeletesNamespaces
	if actsAsAccount(plan.Policy) {
		facts.Obstacles = append(facts.Obstacles, c.lackedRights(ctx, &look, lettingGo{
			policy: plan.Policy, items: recorded, objects: objects, definitions: definitions, uses: uses,
		})...)
	}
	facts.Unknown = look.unknown
	return facts, ctx.Err()
}

// namespaces counts what the Namespaces contain that would be deleted, as the user.
func (c *Cluster) namespaces(ctx context.Context, look *uninstalling, objects []preview.InstalledObject) []installation.NamespaceUse {
	var names []string
	for _, one := range objects {
		if one.Key.GroupKind == object.NamespaceKind && !one.Foreign && !one.Kept {
			names = append(names, one.Key.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	cluster, err := discovery.NewDiscoveryClientForConfigAndClient(c.cfg.REST, c.through)
	var uses []installation.NamespaceUse
	if err == nil {
		uses, err = usage.NamespacesInUse(ctx, look.reader, cluster, look.owner, names)
	}
	if err != nil {
		return []installation.NamespaceUse{{Namespace: names[0], Err: err}}
	}
	return uses
}

// seen says what could be read as a whole.
type seen struct {
	records, definitions bool

	// unrecorded are the definitions that the records do not have.
	unrecorded []installation.Use
}

// addObstacles adds why the policy would refuse, and whether that could be found out.
func (u *uninstalling) addObstacles(ctx context.Context, policy controller.UninstallPolicy, definitions []usage.Definition, all seen, facts *preview.UninstallFacts) {
	switch policy {
	case controller.UninstallKeep:
		obstacles, areRead := u.conversions(ctx, definitions)
		facts.Obstacles = append(facts.Obstacles, obstacles...)
		facts.Unchecked = !all.definitions || !areRead
	case controller.UninstallRefuseWhileInUse:
		facts.Unchecked = !all.definitions || slices.ContainsFunc(facts.Uses, func(use installation.Use) bool { return use.Err != nil })
	case controller.UninstallOrphan:
		if all.records && len(all.unrecorded) > 0 {
			facts.Obstacles = append(facts.Obstacles, controller.UnrecordedText(all.unrecorded))
		}
		facts.Unchecked = !all.records || !all.definitions
	case controller.UninstallDelete, controller.UninstallDeleteFirst:
	}
}

// hasPolicyInForce says that the controller holds the deletion of an extension without
// spec.uninstall, so that its flag has another policy than Delete. Hooks of a
// deletion can block it whatever the policy.
func hasPolicyInForce(live *ocv1.ClusterExtension, hooks []hook.Hook) bool {
	if live.Spec.Uninstall != nil {
		return false
	}
	haveHooks := len(hook.At(hook.PreDelete, hooks))+len(hook.At(hook.PostDelete, hooks)) > 0
	ready := meta.FindStatusCondition(live.Status.Conditions, ocv1.TypeReady)
	return slices.Contains(live.Finalizers, ocv1.UninstallPolicyFinalizer) || ready != nil && ready.Reason == ocv1.ReasonDeletionBlocked && !haveHooks
}

// uninstallFactsOf are those that are known without the objects.
func uninstallFactsOf(ext *ocv1.ClusterExtension, plan controller.UninstallPlan) preview.UninstallFacts {
	facts := preview.UninstallFacts{
		Owner: plan.Owner, Policy: string(plan.Policy), ByFlag: plan.ByFlag, Order: plan.Order,
		KeepsDefinitions: plan.KeepsDefinitions, KeepsAll: plan.KeepsAll, Warning: plan.Warning,
	}
	if installed := ext.Status.Install; installed != nil {
		facts.Installed = &preview.Bundle{Name: installed.Bundle.Name, Version: installed.Bundle.Version}
	}
	for _, obstacle := range []string{plan.Refused, plan.RefusedNamespaces, plan.FailedHook} {
		if obstacle != "" {
			facts.Obstacles = append(facts.Obstacles, obstacle)
		}
	}
	return facts
}

// actsAsAccount says that a policy is carried out with rights of the ServiceAccount.
func actsAsAccount(policy controller.UninstallPolicy) bool {
	return policy == controller.UninstallDeleteFirst || policy == controller.UninstallKeep || policy == controller.UninstallOrphan
}

// unrecorded are the definitions that the extension owns and the records do not have.
func unrecorded(objects []preview.InstalledObject, uses []installation.Use) []installation.Use {
	return slices.DeleteFunc(slices.Clone(uses), func(use installation.Use) bool {
		key := object.Key{GroupKind: object.DefinitionKind, Name: use.Definition}
		return slices.ContainsFunc(objects, func(found preview.InstalledObject) bool { return found.Key == key })
	})
}

// recorded are the objects that the release records have, of kinds that the cluster serves, if
// that is known.
func (c *Cluster) recorded(ctx context.Context, ext *ocv1.ClusterExtension, look *uninstalling) (items []object.Item, isKnown bool) {
	recorded, err := release.Recorded(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, look.owner)
	if err == nil {
		err = c.checkRecorded(ext, recorded.Revisions)
	}
	if err != nil {
		look.unknown = append(look.unknown, fmt.Sprintf("which objects but definitions are installed, which the release records have: %v", err))
		return nil, false
	}
	known, err := object.Known(look.mapper, look.owner, recorded.Objects)
	if err != nil {
		look.unknown = append(look.unknown, fmt.Sprintf("which of the recorded objects there are: %v", err))
		return nil, false
	}
	return slices.Collect(maps.Values(known)), true
}

// deletionHooks are all hooks that the release records have, and how far those of the deletion have
// come. The records could be read just before.
func (c *Cluster) deletionHooks(ctx context.Context, isKnown bool, look *uninstalling) ([]hook.Hook, *hook.Progress) {
	if !isKnown {
		return nil, nil
	}
	hooks, progress, err := release.Deletion(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, look.owner)
	if err != nil {
		look.unknown = append(look.unknown, fmt.Sprintf("which hooks run: %v", err))
	}
	return hooks, progress
}

// installed are those objects that are on the cluster, or may be.
func (u *uninstalling) installed(ctx context.Context, items []object.Item) []preview.InstalledObject {
	found := make([]*preview.InstalledObject, len(items))
	var group errgroup.Group
	group.SetLimit(maxReads)
	for i, item := range items {
		group.Go(func() error {
			live, err := u.reader.Resource(item.Mapping.Resource).Namespace(item.Key.Namespace).Get(ctx, item.Key.Name, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				found[i] = &preview.InstalledObject{
					Key: item.Key, Unread: err != nil,
					Foreign: err == nil && !u.owner.HasAs(item.Object, live), Shared: err == nil && u.owner.SharesWithOthers(live),
					Kept: object.IsKept(item.Object),
				}
			}
			return nil
		})
	}
	_ = group.Wait() // what cannot be read is said to be unread
	var objects []preview.InstalledObject
	for _, one := range found {
		if one != nil {
			objects = append(objects, *one)
		}
	}
	return objects
}

// definitions are those that the extension owns. Where they may not be listed, they are those
// that the records have.
func (u *uninstalling) definitions(ctx context.Context, objects []preview.InstalledObject) (owned []usage.Definition, areListed bool) {
	owned, err := usage.Owned(ctx, u.reader, u.mapper, u.owner)
	if err == nil {
		return owned, true
	}
	u.unknown = append(u.unknown, fmt.Sprintf("whether more definitions belong to it than the release records have: %v", err))
	for _, one := range objects {
		if one.Key.GroupKind == object.DefinitionKind && !one.Foreign {
			definition := usage.DefinitionOf(u.mapper, one.Key.Name)
			definition.Shared = one.Shared
			owned = append(owned, definition)
		}
	}
	slices.SortFunc(owned, func(a, b usage.Definition) int { return cmp.Compare(a.Name, b.Name) })
	return owned, false
}

// uses counts what there is of each definition.
func (u *uninstalling) uses(ctx context.Context, definitions []usage.Definition) []installation.Use {
	uses := make([]installation.Use, 0, len(definitions))
	for _, one := range definitions {
		err := one.Err
		var page *metav1.PartialObjectMetadataList
		if err == nil {
			page, err = one.FirstPage(ctx, u.reader)
		}
		if err != nil {
			uses = append(uses, installation.Use{Definition: one.Name, Shared: one.Shared, Err: err})
			continue
		}
		uses = append(uses, one.Use(u.owner, page))
	}
	return uses
}

// conversions are why definitions cannot be kept, a line each, if all may be read.
func (u *uninstalling) conversions(ctx context.Context, definitions []usage.Definition) (obstacles []string, areRead bool) {
	areRead = true
	for _, one := range definitions {
		live, err := u.api.Resource(usage.DefinitionResource).Get(ctx, one.Name, metav1.GetOptions{})
		var definition apiextensionsv1.CustomResourceDefinition
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &definition)
		}
		if err != nil {
			u.unknown = append(u.unknown, fmt.Sprintf("whether %s can be kept, which a webhook may convert: %v", one.Name, err))
			areRead = false
			continue
		}
		if err := usage.CheckConversion(&definition); err != nil {
			obstacles = append(obstacles, controller.KeepingText(err))
		}
	}
	return obstacles, areRead
}

// withDefinitions adds the definitions that the extension owns and the records do not have.
func withDefinitions(objects []preview.InstalledObject, definitions []usage.Definition) []preview.InstalledObject {
	for _, one := range definitions {
		key := object.Key{GroupKind: object.DefinitionKind, Name: one.Name}
		if !slices.ContainsFunc(objects, func(found preview.InstalledObject) bool { return found.Key == key }) {
			objects = append(objects, preview.InstalledObject{Key: key, Shared: one.Shared})
		}
	}
	return objects
}
