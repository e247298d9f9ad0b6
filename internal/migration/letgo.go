package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/inspect"
)

var (
	subscriptions = operatorsv1alpha1.SchemeGroupVersion.WithResource("subscriptions")
	csvs          = operatorsv1alpha1.SchemeGroupVersion.WithResource("clusterserviceversions")

	subscriptionKind = operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.SubscriptionKind).GroupKind()
)

// maxTries is how often a ClusterServiceVersion is tried to be deleted without its finalizer. Classic OLM
// puts that back within some ten milliseconds, and is late five times out of six.
const maxTries = 50

// letGo has classic OLM forget the operator, and leave all of it where it is. The
// ClusterServiceVersion goes before the Subscription: as long as the former is there without the latter, classic OLM takes
// the configuration from the Deployments. The Subscription waits for an approval, or classic OLM would
// install another ClusterServiceVersion in between.
func (m move) letGo(ctx context.Context) error {
	if err := m.requireApproval(ctx); err != nil {
		return err
	}
	if err := m.isUnchanged(ctx); err != nil {
		return err
	}
	if m.record.Mode == classic.Strip {
		if err := m.strip(ctx); err != nil {
			return err
		}
	}
	if err := m.keepRights(ctx); err != nil {
		return err
	}
	if err := m.removeCSV(ctx); err != nil {
		return err
	}
	return m.removeSubscription(ctx)
}

// requireApproval has the Subscription wait for an approval that nobody gives, so that classic OLM makes no upgrade
// meanwhile.
func (m move) requireApproval(ctx context.Context) error {
	live, err := m.readSame(ctx, subscriptions, m.record.Subscription)
	if live == nil || err != nil {
		return err
	}
	if approval, _, _ := unstructured.NestedString(live.Object, "spec", "installPlanApproval"); approval == string(operatorsv1alpha1.ApprovalManual) {
		return nil
	}
	m.say("%s waits for an approval from now on", m.record.Subscription.Key())
	return m.patch(ctx, subscriptions, m.record.Subscription, map[string]any{
		"spec": map[string]any{"installPlanApproval": string(operatorsv1alpha1.ApprovalManual)},
	})
}

// isUnchanged fails if classic OLM has begun to upgrade the operator since it was checked: what the extension takes over
// would be the successor's.
func (m move) isUnchanged(ctx context.Context) error {
	live, err := m.readSame(ctx, subscriptions, m.record.Subscription)
	if live == nil || err != nil {
		return err
	}
	if installed, _, _ := unstructured.NestedString(live.Object, "status", "installedCSV"); installed != "" && installed != m.record.CSV.Name {
		return fmt.Errorf("classic OLM has installed ClusterServiceVersion %q meanwhile: take the move back, and begin again", installed)
	}
	options := metav1.ListOptions{LabelSelector: "!" + operatorsv1alpha1.CopiedLabelKey, Limit: pageSize}
	page, err := m.api.Resource(csvs).Namespace(m.record.CSV.Namespace).List(ctx, options)
	if err != nil {
		return fmt.Errorf("listing ClusterServiceVersions: %w", err)
	}
	for i := range page.Items {
		if replaced, _, _ := unstructured.NestedString(page.Items[i].Object, "spec", "replaces"); replaced == m.record.CSV.Name {
			return fmt.Errorf("classic OLM is upgrading it to ClusterServiceVersion %q meanwhile: take the move back, and begin again", page.Items[i].GetName())
		}
	}
	return nil
}

// strip takes labels off objects in no namespace. The finalizer of the ClusterServiceVersion deletes those that have all
// three labels of an owner; the one with its name stays, by which the extension knows them.
func (m move) strip(ctx context.Context) error {
	for _, refs := range [][]classic.Ref{m.record.Deleted, m.record.Stays, m.record.Adopted} {
		for _, ref := range refs {
			if ref.Namespace != "" {
				continue
			}
			if err := m.unlabel(ctx, ref, classic.FinalizerMarks); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepRights removes copies of the ClusterServiceVersion from the owners of Roles and RoleBindings in
// other namespaces. Classic OLM deletes a copy when its original is gone. The garbage collector would
// then delete the Roles before the controller has created new ones.
func (m move) keepRights(ctx context.Context) error {
	for _, ref := range m.record.Deleted {
		if !m.isRightElsewhere(ref) {
			continue
		}
		if err := m.keepRight(ctx, ref); err != nil {
			return fmt.Errorf("removing the owners of %s: %w", ref.Key(), err)
		}
	}
	return nil
}

// isRightElsewhere reports whether an object is a Role or RoleBinding in another namespace than the operator.
func (m move) isRightElsewhere(ref classic.Ref) bool {
	return ref.IsRights() && ref.Namespace != "" && ref.Namespace != m.record.CSV.Namespace
}

func (m move) keepRight(ctx context.Context, ref classic.Ref) error {
	live, resource, err := m.found(ctx, ref)
	if err != nil || live == nil || live.UID != ref.UID || !m.record.Has(ref, &live.ObjectMeta) {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(live.OwnerReferences), isCSV)
	if len(others) == len(live.OwnerReferences) {
		return nil
	}
	err = m.patch(ctx, resource, ref, map[string]any{"metadata": map[string]any{
		"ownerReferences": others, "resourceVersion": live.ResourceVersion,
	}})
	return client.IgnoreNotFound(err)
}

func isCSV(owner metav1.OwnerReference) bool {
	return owner.Kind == operatorsv1alpha1.ClusterServiceVersionKind
}

// removeCSV deletes the ClusterServiceVersion and nothing that it owns. Classic OLM reacts to the deletion from the
// last state that was stored: with its finalizer it deletes objects without a namespace, and with
// [operatorTargets] it sets conversions to None and deletes API services and copies. It adds both again at any time,
// the annotation even while the garbage collector removes owners. A finalizer of ours keeps the object until that
// is over.
func (m move) removeCSV(ctx context.Context) error {
	ref := m.record.CSV
	said := false
	for range maxTries {
		live, err := m.readSame(ctx, csvs, ref)
		if err != nil || live == nil {
			return err
		}
		if !said {
			m.say("deleting %s, and nothing of what it owns", ref.Key())
			said = true
		}
		if live.GetDeletionTimestamp() != nil {
			return m.awaitCSVGone(ctx)
		}
		version := live.GetResourceVersion()
		if m.record.Mode != classic.Strip {
			patched, err := m.patched(ctx, csvs, ref, map[string]any{"metadata": map[string]any{
				"finalizers": []string{csvFinalizer}, "resourceVersion": version,
			}})
			if apierrors.IsConflict(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("replacing the finalizer of %s: %w", ref.Key(), err)
			}
			version = patched.GetResourceVersion()
		}
		err = m.api.Resource(csvs).Namespace(ref.Namespace).Delete(ctx, ref.Name, metav1.DeleteOptions{
			PropagationPolicy: new(metav1.DeletePropagationOrphan),
			Preconditions:     &metav1.Preconditions{UID: &ref.UID, ResourceVersion: &version},
		})
		switch {
		case apierrors.IsConflict(err): // classic OLM was faster
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("deleting %s: %w", ref.Key(), err)
		default:
			return m.awaitCSVGone(ctx)
		}
	}
	return fmt.Errorf("deleting %s: classic OLM has put its finalizer back %d times: stop it, or use --mode %s", ref.Key(), maxTries, classic.Quiet)
}

const (
	// csvPollInterval is short: as long as the ClusterServiceVersion exists, classic OLM may set it as an owner
	// again, and the garbage collector would delete such objects afterwards.
	csvPollInterval = 20 * time.Millisecond
	// csvFinalizer keeps a ClusterServiceVersion until the garbage collector has removed owners.
	csvFinalizer = "olm.operatorframework.io/migration"
	// operatorTargets is an annotation without which classic OLM does nothing about a ClusterServiceVersion that is
	// gone: neither conversions nor API services nor copies.
	operatorTargets = "olm.targetNamespaces"
)

// awaitCSVGone waits until the garbage collector has removed the owners, takes from the ClusterServiceVersion what
// classic OLM would act on, and then its finalizer. The definitions go too, because classic OLM may add the
// annotation again.
func (m move) awaitCSVGone(ctx context.Context) error {
	ref := m.record.CSV
	isHarmless := m.record.Mode == classic.Strip
	err := wait.PollUntilContextTimeout(ctx, csvPollInterval, m.run.Timeout, true, func(ctx context.Context) (bool, error) {
		live, err := m.readSame(ctx, csvs, ref)
		if err != nil || live == nil {
			return live == nil, err
		}
		if !isHarmless {
			err := m.patch(ctx, csvs, ref, map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{operatorTargets: nil}},
				"spec":     map[string]any{"webhookdefinitions": nil, "apiservicedefinitions": nil},
			})
			if err != nil {
				return false, client.IgnoreNotFound(err)
			}
			isHarmless = true
		}
		if !slices.Equal(live.GetFinalizers(), []string{csvFinalizer}) {
			return false, nil
		}
		if err := m.removeCSVFinalizer(ctx, live); !apierrors.IsConflict(err) {
			return false, err
		}
		return false, nil
	})
	return m.stillThere(ctx, ref, err)
}

// removeCSVFinalizer removes [csvFinalizer] from a ClusterServiceVersion, and keeps the others.
func (m move) removeCSVFinalizer(ctx context.Context, live metav1.Object) error {
	others := slices.DeleteFunc(slices.Clone(live.GetFinalizers()), func(name string) bool { return name == csvFinalizer })
	err := m.patch(ctx, csvs, m.record.CSV, map[string]any{"metadata": map[string]any{
		"finalizers": others, "resourceVersion": live.GetResourceVersion(),
	}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of %s: %w", m.record.CSV.Key(), err)
	}
	return nil
}

func (m move) removeSubscription(ctx context.Context) error {
	ref := m.record.Subscription
	live, err := m.readSame(ctx, subscriptions, ref)
	if live == nil || err != nil {
		return err
	}
	m.say("deleting %s", ref.Key())
	err = m.api.Resource(subscriptions).Namespace(ref.Namespace).Delete(ctx, ref.Name, metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationOrphan), Preconditions: &metav1.Preconditions{UID: &ref.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s: %w", ref.Key(), err)
	}
	return m.awaitGone(ctx, subscriptions, ref)
}

// readSame reads an object that was found before; nil if it is gone. That there is another one of its name by
// now is an error.
func (c *Cluster) readSame(ctx context.Context, resource schema.GroupVersionResource, ref classic.Ref) (*unstructured.Unstructured, error) {
	live, err := in(c.api.Resource(resource), ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", ref.Key(), err)
	case live.GetUID() != ref.UID:
		return nil, fmt.Errorf("%s is another one than the one that was checked: somebody has made it anew; `kubectl extension migrate rollback` takes the move back", ref.Key())
	}
	return live, nil
}

func in(resource dynamic.NamespaceableResourceInterface, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return resource
	}
	return resource.Namespace(namespace)
}

func (c *Cluster) patch(ctx context.Context, resource schema.GroupVersionResource, ref classic.Ref, change map[string]any) error {
	_, err := c.patched(ctx, resource, ref, change)
	return err
}

// patched changes an object, if it is the one that was found before: the API server refuses a patch that
// would change the UID.
func (c *Cluster) patched(ctx context.Context, resource schema.GroupVersionResource, ref classic.Ref, change map[string]any) (*unstructured.Unstructured, error) {
	metadata, _ := change["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"] = string(ref.UID)
	change["metadata"] = metadata
	data, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return in(c.api.Resource(resource), ref.Namespace).Patch(ctx, ref.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: inspect.FieldManager})
}

func (m move) awaitGone(ctx context.Context, resource schema.GroupVersionResource, ref classic.Ref) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, m.run.Timeout, true, func(ctx context.Context) (bool, error) {
		live, err := m.readSame(ctx, resource, ref)
		return live == nil && err == nil, err
	})
	return m.stillThere(ctx, ref, err)
}

// stillThere names an object for which a wait has ended too early.
func (m move) stillThere(ctx context.Context, ref classic.Ref, err error) error {
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("%s is still there after %s: see which finalizers it has", ref.Key(), m.run.Timeout)
	}
	return err
}

// resourceOf says where the objects of a kind are; [errNotServed] if nowhere.
func (c *Cluster) resourceOf(ref classic.Ref) (schema.GroupVersionResource, error) {
	mapping, err := c.mapper.RESTMapping(ref.Key().GroupKind)
	if meta.IsNoMatchError(err) {
		return schema.GroupVersionResource{}, errNotServed
	}
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("looking for %s: %w", ref.Key(), err)
	}
	return mapping.Resource, nil
}

var errNotServed = errors.New("the cluster does not serve the kind")
