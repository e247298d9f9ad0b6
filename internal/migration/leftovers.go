package migration

import (
	"context"
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/classic"
)

// isOperatorObject selects the object of the kind Operator, which goes last: classic OLM makes it again as long as
// anything has the label of its components.
func isOperatorObject(ref classic.Ref) bool {
	return ref.Group == object.ClassicGroup && ref.Kind == "Operator"
}

// isOther selects all other leftovers.
func isOther(ref classic.Ref) bool { return !isOperatorObject(ref) }

// deleteLeftovers deletes of what is to be deleted what is selected.
func (m move) deleteLeftovers(ctx context.Context, selects func(classic.Ref) bool) error {
	for _, ref := range m.record.Deleted {
		if selects(ref) {
			if err := m.deleteIf(ctx, ref, m.record.Has); err != nil {
				return err
			}
		}
	}
	return nil
}

// found is the metadata of an object as it is now, and where that is; nil if there is none of its name.
func (c *Cluster) found(ctx context.Context, ref classic.Ref) (*metav1.PartialObjectMetadata, schema.GroupVersionResource, error) {
	resource, err := c.resourceOf(ref)
	if errors.Is(err, errNotServed) {
		return nil, resource, nil
	}
	if err != nil {
		return nil, resource, err
	}
	live, err := c.objects.Resource(resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, resource, nil
	}
	if err != nil {
		return nil, resource, fmt.Errorf("reading %s: %w", ref.Key(), err)
	}
	return live, resource, nil
}

// delete deletes an object that was found before. Another one of its name is left alone.
func (m move) delete(ctx context.Context, ref classic.Ref) error {
	return m.deleteIf(ctx, ref, func(classic.Ref, *metav1.ObjectMeta) bool { return true })
}

// deleteIf does so if the object as it is now says that it is the operator's.
func (m move) deleteIf(ctx context.Context, ref classic.Ref, isIts func(classic.Ref, *metav1.ObjectMeta) bool) error {
	live, resource, err := m.found(ctx, ref)
	if live == nil || err != nil {
		return err
	}
	if live.UID != ref.UID {
		m.say("%s stays: it is another one than the one that was found", ref.Key())
		return nil
	}
	if !isIts(ref, &live.ObjectMeta) {
		m.say("%s stays: its marks do not say that it is of %s", ref.Key(), m.record.CSV.Key())
		return nil
	}
	m.say("deleting %s", ref.Key())
	err = in(m.api.Resource(resource), ref.Namespace).Delete(ctx, ref.Name, metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{UID: &ref.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s: %w", ref.Key(), err)
	}
	return nil
}

// deleteCopies deletes the copies of the ClusterServiceVersion in other namespaces: classic OLM does so when it
// looks at them next, and not at all while it is stopped.
func (m move) deleteCopies(ctx context.Context) error {
	csv := m.record.CSV
	var copies []classic.Ref
	err := reading{cluster: m.Cluster}.metadata(ctx, csvs, operatorsv1alpha1.CopiedLabelKey+"="+csv.Namespace, csv.Key().GroupKind, func(one classic.Object) {
		if one.Key.Name == csv.Name {
			copies = append(copies, classic.RefOf(one))
		}
	})
	if err != nil {
		return err
	}
	for _, ref := range copies {
		if err := m.delete(ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

// deletePlans deletes the InstallPlans of the operator that were for others as well, once those are gone, too.
func (m move) deletePlans(ctx context.Context) error {
	return m.eachPlan(ctx, m.record.Label, func(plan *unstructured.Unstructured, names []string) error {
		for _, name := range names {
			csv := m.record.CSV
			csv.Name = name
			if live, _, err := m.found(ctx, csv); live != nil || err != nil {
				return err
			}
		}
		return m.delete(ctx, refOf(plan))
	})
}

var plans = operatorsv1alpha1.SchemeGroupVersion.WithResource("installplans")

// eachPlan is given the InstallPlans of the namespace, with the names of the ClusterServiceVersions that they are about.
func (m move) eachPlan(ctx context.Context, selector string, do func(plan *unstructured.Unstructured, names []string) error) error {
	options := metav1.ListOptions{Limit: planPageSize, LabelSelector: selector}
	for range maxPages {
		page, err := m.api.Resource(plans).Namespace(m.record.CSV.Namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing InstallPlans: %w", err)
		}
		for i := range page.Items {
			names, _, _ := unstructured.NestedStringSlice(page.Items[i].Object, "spec", "clusterServiceVersionNames")
			if err := do(&page.Items[i], names); err != nil {
				return err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
	return fmt.Errorf("listing InstallPlans: there are more than %d pages of them", maxPages)
}

// clean takes the marks of classic OLM off what stays, and deletes what only they have kept.
func (m move) clean(ctx context.Context) error {
	if err := m.deleteLeftovers(ctx, isOther); err != nil {
		return err
	}
	if err := m.deleteCopies(ctx); err != nil {
		return err
	}
	if err := m.deletePlans(ctx); err != nil {
		return err
	}
	for _, refs := range [][]classic.Ref{m.record.Stays, m.record.Adopted} {
		for _, ref := range refs {
			if err := m.unlabel(ctx, ref, classic.LabelMarks); err != nil {
				return err
			}
		}
	}
	return m.deleteLeftovers(ctx, isOperatorObject)
}

// label says of what is to be taken over that it is a component of the operator, unless something else says so:
// the extension takes over nothing else.
func (m move) label(ctx context.Context) error {
	for _, ref := range m.record.Adopted {
		live, resource, err := m.found(ctx, ref)
		if err != nil {
			return err
		}
		if live == nil || live.UID != ref.UID || m.record.IsOfAnother(&live.ObjectMeta) {
			continue // the extension makes it, or says whose it is
		}
		_, isLabelled := live.Labels[m.record.Label]
		if isLabelled || classic.NamesOwner(&live.ObjectMeta) || live.Labels[ocv1.OwnerNameLabel] == m.ext.Name {
			continue
		}
		m.say("labelling %s as a component", ref.Key())
		if err := m.patch(ctx, resource, ref, map[string]any{"metadata": map[string]any{"labels": map[string]any{m.record.Label: ""}}}); err != nil {
			return fmt.Errorf("labelling %s: %w", ref.Key(), err)
		}
	}
	return nil
}

// unlabel takes labels off an object, and with all marks the annotations that go with them.
func (m move) unlabel(ctx context.Context, ref classic.Ref, marks func(*metav1.ObjectMeta) []string) error {
	return m.unmark(ctx, ref, func(meta *metav1.ObjectMeta) (labels, annotations []string) {
		return marks(meta), classic.AnnotationMarks(meta)
	})
}

// unmark takes labels off an object that was found before, and annotations with them. Objects that are gone, or
// others by now or of another operator, are none of it.
func (m move) unmark(ctx context.Context, ref classic.Ref, marks func(*metav1.ObjectMeta) (labels, annotations []string)) error {
	live, resource, err := m.found(ctx, ref)
	if err != nil {
		return err
	}
	if live != nil && ref.Kind == object.OperatorConditionKind.Kind {
		ref.UID = live.UID // in mode live, classic OLM deletes it together with the ClusterServiceVersion
	}
	if live == nil || live.UID != ref.UID || m.record.IsOfAnother(&live.ObjectMeta) {
		return nil
	}
	labels, annotations := marks(&live.ObjectMeta)
	if len(labels) == 0 {
		return nil
	}
	err = m.patch(ctx, resource, ref, map[string]any{"metadata": map[string]any{"labels": without(labels), "annotations": without(annotations)}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("taking marks off %s: %w", ref.Key(), err)
	}
	return nil
}

// without is the part of a patch that takes names away.
func without(names []string) map[string]any {
	fields := map[string]any{}
	for _, name := range names {
		fields[name] = nil
	}
	return fields
}
