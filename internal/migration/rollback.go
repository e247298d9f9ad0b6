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
	"k8s.io/apimachinery/pkg/util/wait"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
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
		if err != nil {
			errs = append(errs, err)
			continue
		}
		moves = append(moves, m)
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
	if err := m.deleteCreated(ctx, given); err != nil {
		return err
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
	if !slices.Contains(m.ext.Finalizers, rollbackFinalizer) && m.ext.DeletionTimestamp == nil {
		finalizers := append(slices.Clone(m.ext.Finalizers), rollbackFinalizer)
		err := m.patchExtension(ctx, map[string]any{"metadata": map[string]any{"finalizers": finalizers, "resourceVersion": m.ext.ResourceVersion}})
		if err != nil {
			return err
		}
	}
	if m.ext.DeletionTimestamp == nil {
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

// subscribe makes the Subscription what it was before.
func (m move) subscribe(ctx context.Context) error {
	var spec map[string]any
	if err := json.Unmarshal([]byte(m.ext.Annotations[classic.AnnotationSubscription]), &spec); err != nil || len(spec) == 0 {
		return fmt.Errorf("annotation %s does not have the Subscription: apply it from the backup, with startingCSV %q", classic.AnnotationSubscription, m.bundle())
	}
	if pkg, _ := spec["name"].(string); pkg != m.ext.Package() {
		return fmt.Errorf("annotation %s is about package %s, and the extension has %q: somebody has changed it; apply the Subscription from the backup, with startingCSV %q",
			classic.AnnotationSubscription, excerpt.Quote(pkg), m.ext.Package(), m.bundle())
	}
	ref := m.record.Subscription
	live, err := m.api.Resource(subscriptions).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading %s: %w", ref.Key(), err)
	case live.GetUID() != ref.UID:
		return nil // an earlier call has made it
	default:
		csv := m.record.CSV
		csv.Name = m.bundle()
		isThere, _, err := m.found(ctx, csv)
		switch {
		case err != nil:
			return err
		case isThere != nil:
			return m.releaseSubscription(ctx, live, spec["installPlanApproval"])
		}
		// Its status has the ClusterServiceVersion as installed, so that classic OLM would never make that again.
		if err := m.removeSubscription(ctx); err != nil {
			return err
		}
	}
	spec["startingCSV"] = m.bundle()
	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.SubscriptionKind))
	made.SetNamespace(ref.Namespace)
	made.SetName(ref.Name)
	made.SetLabels(m.record.Labels)
	made.SetAnnotations(m.record.Annotations)
	m.say("creating %s, which begins with %s from CatalogSource %v in namespace %v", ref.Key(), m.bundle(), spec["source"], spec["sourceNamespace"])
	_, err = m.api.Resource(subscriptions).Namespace(ref.Namespace).Create(ctx, made, metav1.CreateOptions{FieldManager: inspect.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s: %w", ref.Key(), err)
	}
	return nil
}

// releaseSubscription has it approved as before, which it is not any more since the move began.
func (m move) releaseSubscription(ctx context.Context, live *unstructured.Unstructured, approval any) error {
	ref := m.record.Subscription
	if is, _, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "installPlanApproval"); is == approval {
		return nil
	}
	m.say("%s is approved as before", ref.Key())
	return m.patch(ctx, subscriptions, ref, map[string]any{"spec": map[string]any{"installPlanApproval": approval}})
}

// awaitSucceeded waits until classic OLM has the operator again, and approves what it was told to begin with.
func (m move) awaitSucceeded(ctx context.Context) error {
	m.say("waiting until classic OLM has %s again", m.bundle())
	ref, csv := m.record.Subscription, m.record.CSV
	last := "nothing was said"
	err := wait.PollUntilContextTimeout(ctx, pollInterval, m.run.Timeout, true, func(ctx context.Context) (bool, error) {
		if err := m.approve(ctx); err != nil {
			return false, err
		}
		subscription, err := m.api.Resource(subscriptions).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("reading %s: %w", ref.Key(), err)
		}
		state, _, _ := unstructured.NestedString(subscription.Object, "status", "state")
		installed, _, _ := unstructured.NestedString(subscription.Object, "status", "installedCSV")
		wanted := m.bundle()
		if subscription.GetUID() == ref.UID && installed != "" {
			wanted = installed // classic OLM has never let go of it, and may have upgraded it
		}
		live, err := m.api.Resource(csvs).Namespace(csv.Namespace).Get(ctx, wanted, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			last = fmt.Sprintf("the Subscription is %q, and there is no ClusterServiceVersion", state)
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading ClusterServiceVersion %q: %w", wanted, err)
		}
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		last = fmt.Sprintf("the Subscription is %q, the ClusterServiceVersion %q", state, phase)
		isKnown := state == operatorsv1alpha1.SubscriptionStateAtLatest || state == operatorsv1alpha1.SubscriptionStateUpgradePending
		return installed == wanted && isKnown && phase == string(operatorsv1alpha1.CSVPhaseSucceeded), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("classic OLM has not got the operator back after %s: %s", m.run.Timeout, last)
	}
	return err
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

// approve lets the plan go that installs nothing but what is there.
func (m move) approve(ctx context.Context) error {
	return m.eachPlan(ctx, "", func(plan *unstructured.Unstructured, names []string) error {
		approved, _, _ := unstructured.NestedBool(plan.Object, "spec", "approved")
		if approved || !slices.Equal(names, []string{m.bundle()}) {
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
	ext, err := m.extension(ctx, m.ext.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	finalizers := slices.DeleteFunc(ext.Finalizers, func(one string) bool { return one == rollbackFinalizer })
	m.say("ClusterExtension %q is gone, and %s is back", m.ext.Name, m.record.Subscription.Key())
	return m.patchExtension(ctx, map[string]any{"metadata": map[string]any{"finalizers": finalizers, "resourceVersion": ext.ResourceVersion}})
}
