package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/inspect"
)

// rollbackFinalizer keeps the extension, which says what there was before, until classic OLM has its operator back.
const rollbackFinalizer = "olm.operatorframework.io/migration-rollback"

// Rollback gives operators back to classic OLM, by the names of their extensions, whether or not
// their moves have ended. The content stays: classic OLM knows it by its names, and makes
// anew what was deleted. It can be called again wherever it has stopped.
func (c *Cluster) Rollback(ctx context.Context, names []string, run Run) error {
	var errs []error
	var moves []move
	run = run.oneLineAtATime()
	for _, name := range names {
		m, err := c.moveOf(ctx, name, run)
		switch {
		case err == nil:
			moves = append(moves, m)
		case apierrors.IsNotFound(err):
			errs = append(errs, c.isBack(ctx, name, run))
		default:
			errs = append(errs, err)
		}
	}
	if len(moves) == 0 {
		return errors.Join(errs...)
	}
	if err := c.loud(ctx, run); err != nil {
		return errors.Join(append(errs, err)...)
	}
	results := each(moves, func(m move) error {
		if err := m.takeBack(ctx); err != nil {
			return fmt.Errorf("ClusterExtension %q: %w; `kubectl extension migrate rollback %s` goes on from there", m.ext.Name, err, m.ext.Name)
		}
		return nil
	})
	if left := namesOf(moves, func(at int) bool { return results[at] != nil }); ctx.Err() != nil && len(left) > 0 {
		return fmt.Errorf("interrupted: `kubectl extension migrate rollback %s` goes on from there", strings.Join(left, " "))
	}
	return errors.Join(append(errs, results...)...)
}

// isBack is told of an extension that there is not: there is nothing to take back, be it that nothing was begun or
// that an earlier call has ended, as long as the Subscription is there that the extension would be named after.
func (c *Cluster) isBack(ctx context.Context, name string, run Run) error {
	var found classic.Ref
	err := reading{cluster: c}.metadata(ctx, subscriptions, "", subscriptionKind, func(one classic.Object) {
		if classic.ExtensionName(types.NamespacedName{Namespace: one.Key.Namespace, Name: one.Key.Name}) == name {
			found = classic.RefOf(one)
		}
	})
	switch {
	case err != nil:
		return fmt.Errorf("there is no ClusterExtension %q, and whether its Subscription is back is not known: %w", name, err)
	case found.Name == "":
		return fmt.Errorf("there is no ClusterExtension %q, and no Subscription that it would be named after: `kubectl extension migrate check --all` says what there is; a Subscription that is lost is in the backup", name)
	}
	run.Say(fmt.Sprintf("there is no ClusterExtension %q, and %s is there: there is nothing to take back", name, found.Key()))
	return nil
}

func (m move) takeBack(ctx context.Context) error {
	if err := m.orphan(ctx); err != nil {
		return err
	}
	if err := m.subscribe(ctx); err != nil {
		return err
	}
	if err := m.awaitSucceeded(ctx); err != nil {
		return err
	}
	given, err := m.areRightsGiven(ctx)
	if err != nil {
		return err
	}
	if err := m.returnRights(ctx); err != nil {
		return err
	}
	if err := m.deleteCreated(ctx, given); err != nil {
		return err
	}
	for _, ref := range m.record.Adopted {
		err := m.unmark(ctx, ref, func(meta *metav1.ObjectMeta) (labels, annotations []string) { return object.MarksOf(meta, m.ext.Name) })
		if err != nil {
			return err
		}
	}
	m.say("deleting what the controller has recorded of ClusterExtension %q", m.ext.Name)
	if err := m.inspect.ForgetRecords(ctx, m.ext); err != nil {
		return err
	}
	if m.record.MakesAccount {
		m.say("ServiceAccount %q in namespace %q and its rights stay: delete them when nobody else uses them", m.ext.Spec.ServiceAccount.Name, m.ext.Spec.Namespace)
	}
	return m.forget(ctx)
}

// bundle is what is installed, which is what classic OLM is to begin with.
func (m move) bundle() string {
	if install := m.ext.Status.Install; install != nil && install.Bundle.Name != "" {
		return install.Bundle.Name
	}
	return m.record.CSV.Name
}

// orphan has the controller let go of the content. The extension itself is kept.
func (m move) orphan(ctx context.Context) error {
	if m.ext.DeletionTimestamp == nil {
		if err := m.retain(ctx, true); err != nil {
			return err
		}
		m.say("deleting ClusterExtension %q, and nothing of what it owns", m.ext.Name)
		err := m.api.Resource(extensions).Delete(ctx, m.ext.Name, metav1.DeleteOptions{
			PropagationPolicy: new(metav1.DeletePropagationOrphan), Preconditions: &metav1.Preconditions{UID: &m.ext.UID},
		})
		if err != nil {
			return fmt.Errorf("deleting ClusterExtension %q: %w", m.ext.Name, err)
		}
	}
	err := wait.PollUntilContextTimeout(ctx, pollInterval, m.run.Timeout, true, func(ctx context.Context) (bool, error) {
		ext, err := m.extension(ctx, m.ext.Name)
		if err != nil {
			return false, err
		}
		return slices.Equal(ext.Finalizers, []string{rollbackFinalizer}), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the controller has not let go of the content after %s: is it running?", m.run.Timeout)
	}
	return err
}

func (m move) subscriptionSpec() (map[string]any, error) {
	var spec map[string]any
	if err := json.Unmarshal([]byte(m.ext.Annotations[classic.AnnotationSubscription]), &spec); err != nil || len(spec) == 0 {
		return nil, fmt.Errorf("annotation %s does not have the Subscription: apply it from the backup, with startingCSV %q", classic.AnnotationSubscription, m.bundle())
	}
	return spec, nil
}

// subscribe makes the Subscription what it was before.
func (m move) subscribe(ctx context.Context) error {
	spec, err := m.subscriptionSpec()
	if err != nil {
		return err
	}
	if pkg, _ := spec["name"].(string); pkg != m.ext.Package() {
		return fmt.Errorf("annotation %s is about package %s, and the extension has %q: somebody has changed it; apply the Subscription from the backup, with startingCSV %q",
			classic.AnnotationSubscription, excerpt.Quote(pkg), m.ext.Package(), m.bundle())
	}
	isInstalled, err := m.keepCSV(ctx)
	if err != nil {
		return err
	}
	ref := m.record.Subscription
	live, err := m.api.Resource(subscriptions).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading %s: %w", ref.Key(), err)
	case live.GetUID() != ref.UID:
		return nil // an earlier call has made it
	case isInstalled:
		return m.releaseSubscription(ctx, live, spec["installPlanApproval"])
	default:
		// Its status has the ClusterServiceVersion as installed, so that classic OLM would never make that again.
		if err := m.removeSubscription(ctx); err != nil {
			return err
		}
	}
	return m.createSubscription(ctx, spec)
}

func (m move) createSubscription(ctx context.Context, spec map[string]any) error {
	ref := m.record.Subscription
	spec["startingCSV"] = m.bundle()
	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.SubscriptionKind))
	made.SetNamespace(ref.Namespace)
	made.SetName(ref.Name)
	made.SetLabels(m.record.Labels)
	made.SetAnnotations(m.record.Annotations)
	m.say("creating %s, which begins with %s from CatalogSource %v in namespace %v", ref.Key(), m.bundle(), spec["source"], spec["sourceNamespace"])
	_, err := m.api.Resource(subscriptions).Namespace(ref.Namespace).Create(ctx, made, metav1.CreateOptions{FieldManager: inspect.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s: %w", ref.Key(), err)
	}
	return nil
}

// keepCSV undoes the first request of [move.removeCSV], and reports whether the ClusterServiceVersion exists. It waits
// for its end if it is being deleted.
func (m move) keepCSV(ctx context.Context) (isThere bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		isThere = false
		live, _, err := m.found(ctx, m.record.CSV)
		if err != nil || live == nil {
			return err
		}
		if live.UID == m.record.CSV.UID && live.DeletionTimestamp != nil {
			return m.awaitCSVGone(ctx)
		}
		isThere = true
		if live.UID == m.record.CSV.UID && slices.Contains(live.Finalizers, csvFinalizer) {
			return m.removeCSVFinalizer(ctx, live)
		}
		return nil
	})
	return isThere, err
}

// releaseSubscription has it approved as before, which it is not any more since the move began.
func (m move) releaseSubscription(ctx context.Context, live *unstructured.Unstructured, approval any) error {
	if is, _, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "installPlanApproval"); is == approval {
		return nil
	}
	m.say("%s is approved as before", m.record.Subscription.Key())
	return m.patch(ctx, subscriptions, m.record.Subscription, map[string]any{"spec": map[string]any{"installPlanApproval": approval}})
}

// renewPatience is how long a Subscription may be there, and classic OLM not begin to install what it says: one that
// it has seen before the last one was forgotten is taken for that, and waits for ever.
const renewPatience = 30 * time.Second

// awaitSucceeded waits until classic OLM has the operator again and no plan is under way, which would bring it back
// at the next move. It approves what classic OLM was told to begin with.
func (m move) awaitSucceeded(ctx context.Context) error {
	m.say("waiting until classic OLM has %s again", m.bundle())
	var last comeback
	active := m.run.Now()
	err := wait.PollUntilContextTimeout(ctx, pollInterval, m.run.Timeout, true, func(ctx context.Context) (bool, error) {
		seen, err := m.comeback(ctx)
		if err != nil {
			return false, err
		}
		last = seen
		if seen.csv != nil || seen.isUnderWay {
			active = m.run.Now()
		}
		if m.run.Now().Sub(active) >= renewPatience {
			active = m.run.Now()
			return false, m.renew(ctx, seen.subscription)
		}
		return seen.isDone(), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("classic OLM has not got the operator back after %s: %s", m.run.Timeout, last)
	}
	return err
}

// comeback is how far classic OLM has come with an operator that it gets back.
type comeback struct {
	subscription *unstructured.Unstructured
	csv          *unstructured.Unstructured // the one that is wanted; nil if it is not there
	wanted       string                     // name of that
	isUnderWay   bool                       // an InstallPlan that has it is being carried out
}

func (m move) comeback(ctx context.Context) (seen comeback, err error) {
	if seen.isUnderWay, err = m.approve(ctx); err != nil {
		return comeback{}, err
	}
	ref := m.record.Subscription
	seen.subscription, err = m.api.Resource(subscriptions).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return comeback{}, fmt.Errorf("reading %s: %w", ref.Key(), err)
	}
	seen.wanted = m.bundle()
	if installed := seen.status("installedCSV"); seen.subscription.GetUID() == ref.UID && installed != "" {
		seen.wanted = installed // classic OLM has never let go of it, and may have upgraded it
	}
	live, err := m.api.Resource(csvs).Namespace(m.record.CSV.Namespace).Get(ctx, seen.wanted, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return seen, nil
	}
	if err != nil {
		return comeback{}, fmt.Errorf("reading ClusterServiceVersion %q: %w", seen.wanted, err)
	}
	seen.csv = live
	return seen, nil
}

// status is a text of the status of the Subscription.
func (c comeback) status(field string) string {
	text, _, _ := unstructured.NestedString(c.subscription.Object, "status", field)
	return text
}

// phase is that of the ClusterServiceVersion.
func (c comeback) phase() string {
	text, _, _ := unstructured.NestedString(c.csv.Object, "status", "phase")
	return text
}

func (c comeback) isDone() bool {
	state := c.status("state")
	isKnown := state == operatorsv1alpha1.SubscriptionStateAtLatest || state == operatorsv1alpha1.SubscriptionStateUpgradePending
	return isKnown && c.status("installedCSV") == c.wanted && !c.isUnderWay &&
		c.csv != nil && c.phase() == string(operatorsv1alpha1.CSVPhaseSucceeded)
}

// String says it to whoever has waited for more.
func (c comeback) String() string {
	switch {
	case c.subscription == nil:
		return "nothing was said"
	case c.csv == nil:
		return fmt.Sprintf("the Subscription is %q, and there is no ClusterServiceVersion", c.status("state"))
	default:
		return fmt.Sprintf("the Subscription is %q, the ClusterServiceVersion %q", c.status("state"), c.phase())
	}
}

// renew makes the Subscription once more, if it is such as is made here.
func (m move) renew(ctx context.Context, live *unstructured.Unstructured) error {
	if begins, _, _ := unstructured.NestedString(live.Object, "spec", "startingCSV"); begins != m.bundle() {
		return nil
	}
	spec, err := m.subscriptionSpec()
	if err != nil {
		return err
	}
	made := m
	made.record.Subscription.UID = live.GetUID()
	if err := made.removeSubscription(ctx); err != nil {
		return err
	}
	return m.createSubscription(ctx, spec)
}

// rightsPatience is how long classic OLM may take to give rights that it gives: it is done with the
// ClusterServiceVersion before it is done with those.
const rightsPatience = 10 * time.Second

// areRightsGiven says whether all roles and bindings are there again that classic OLM had made. It makes no
// copy for all namespaces while the operator has these rights otherwise, such as by what the extension has made. The
// names of those of another version are not known.
func (m move) areRightsGiven(ctx context.Context) (bool, error) {
	if m.bundle() != m.record.CSV.Name {
		return false, nil
	}
	err := wait.PollUntilContextTimeout(ctx, pollInterval, rightsPatience, true, func(ctx context.Context) (bool, error) {
		for _, ref := range m.record.Deleted {
			if !ref.IsRights() {
				continue
			}
			if live, _, err := m.found(ctx, ref); live == nil || err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// returnRights undoes [move.keepRights]: copies of the ClusterServiceVersion own Roles and RoleBindings
// in other namespaces again. Classic OLM finds these by their labels and would never set an owner, so
// that they would stay after an uninstall.
func (m move) returnRights(ctx context.Context) error {
	for _, ref := range m.record.Deleted {
		if !m.isRightElsewhere(ref) {
			continue
		}
		live, resource, err := m.found(ctx, ref)
		if err != nil {
			return err
		}
		if live == nil || live.UID != ref.UID || slices.ContainsFunc(live.OwnerReferences, isCSV) || !m.record.Has(ref, &live.ObjectMeta) {
			continue
		}
		made, err := m.copyIn(ctx, ref.Namespace)
		if err != nil {
			return err
		}
		if made == nil {
			m.say("%s stays without an owner: there is no copy of the ClusterServiceVersion in its namespace. Delete it after you have uninstalled the operator", ref.Key())
			continue
		}
		err = m.patch(ctx, resource, ref, map[string]any{"metadata": map[string]any{
			"resourceVersion": live.ResourceVersion,
			"ownerReferences": append(live.OwnerReferences, metav1.OwnerReference{
				APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.ClusterServiceVersionKind,
				Name: made.GetName(), UID: made.GetUID(), Controller: new(false), BlockOwnerDeletion: new(false),
			}),
		}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("setting the owner of %s: %w", ref.Key(), err)
		}
	}
	return nil
}

// copyIn waits for the copy of the ClusterServiceVersion in a namespace; nil if there is none in time.
func (m move) copyIn(ctx context.Context, namespace string) (made *unstructured.Unstructured, err error) {
	err = wait.PollUntilContextTimeout(ctx, pollInterval, rightsPatience, true, func(ctx context.Context) (bool, error) {
		made, err = m.api.Resource(csvs).Namespace(namespace).Get(ctx, m.bundle(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			made = nil
			return false, nil
		}
		return err == nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, nil
	}
	return made, err
}

// approve lets the plan go that installs nothing but what is there. It says whether one is being carried out that
// has it.
func (m move) approve(ctx context.Context) (isUnderWay bool, err error) {
	err = m.eachPlan(ctx, "", func(plan *unstructured.Unstructured, names []string) error {
		approved, _, _ := unstructured.NestedBool(plan.Object, "spec", "approved")
		phase, _, _ := unstructured.NestedString(plan.Object, "status", "phase")
		if approved && slices.Contains(names, m.bundle()) && classic.IsUnderWay(operatorsv1alpha1.InstallPlanPhase(phase)) {
			isUnderWay = true
		}
		if approved || !slices.Equal(names, []string{m.bundle()}) {
			return nil
		}
		isUnderWay = true
		// Classic OLM creates an InstallPlan first and sets its phase afterwards. An approval in between makes
		// the second write fail with a conflict. Classic OLM then creates a second plan.
		if phase != string(operatorsv1alpha1.InstallPlanPhaseRequiresApproval) {
			return nil
		}
		ref := refOf(plan)
		m.say("approving %s", ref.Key())
		err := m.patch(ctx, plans, ref, map[string]any{"spec": map[string]any{"approved": true}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("approving %s: %w", ref.Key(), err)
		}
		return nil
	})
	return isUnderWay, err
}

// deleteCreated deletes what the extension has added, and left behind: rights under other names, and what would
// call webhooks a second time. It is told by the marks of the extension, which nobody owns any more. Rights stay
// where classic OLM does not give them.
func (m move) deleteCreated(ctx context.Context, areRightsGiven bool) error {
	for _, ref := range m.record.Created {
		if ref.IsRights() && !areRightsGiven {
			m.say("%s stays: classic OLM does not give these rights while the operator has them", ref.Key())
			continue
		}
		live, _, err := m.found(ctx, ref)
		if err != nil {
			return err
		}
		if live == nil {
			continue
		}
		if live.Labels[ocv1.OwnerNameLabel] != m.ext.Name || len(live.OwnerReferences) > 0 || classic.IsMarked(&live.ObjectMeta) {
			continue
		}
		ref.UID = live.UID
		if err := m.delete(ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

// forget lets the extension go.
func (m move) forget(ctx context.Context) error {
	err := m.retain(ctx, false)
	if err == nil || apierrors.IsNotFound(err) {
		m.say("ClusterExtension %q is gone, and %s is back", m.ext.Name, m.record.Subscription.Key())
		return nil
	}
	return err
}

// retain puts the finalizer on the extension, or takes it off. The controller may write at the same time.
func (m move) retain(ctx context.Context, retains bool) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		ext, err := m.extension(ctx, m.ext.Name)
		if err != nil || slices.Contains(ext.Finalizers, rollbackFinalizer) == retains {
			return err
		}
		finalizers := append(slices.Clone(ext.Finalizers), rollbackFinalizer)
		if !retains {
			finalizers = slices.DeleteFunc(finalizers, func(one string) bool { return one == rollbackFinalizer })
		}
		return m.patchExtension(ctx, map[string]any{"metadata": map[string]any{"finalizers": finalizers, "resourceVersion": ext.ResourceVersion}})
	})
}
