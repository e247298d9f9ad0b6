package migration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/classic"
)

const (
	// pageSize is how many objects one request lists, and planPageSize how many InstallPlans,
	// each of which can be as large as an object can be.
	pageSize     = 500
	planPageSize = 10
	// maxPages is how many requests there are for one kind.
	maxPages = 200
)

// ErrNoClassic says that there is no classic OLM on the cluster.
var ErrNoClassic = errors.New("there is no classic OLM on the cluster: it serves no CatalogSources")

// contentKinds are those of which an operator mostly consists. Others are read where something
// of classic OLM names them.
var contentKinds = []schema.GroupKind{
	{Kind: "ConfigMap"},
	{Kind: "Secret"},
	{Kind: "Service"},
	{Kind: "ServiceAccount"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
	{Group: "policy", Kind: "PodDisruptionBudget"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
}

// wholeKinds are read by other means than the metadata of their objects.
var wholeKinds = []schema.GroupKind{
	{Group: appsv1.GroupName, Kind: "Deployment"},
	{Group: rbacv1.GroupName, Kind: "Role"},
	{Group: rbacv1.GroupName, Kind: "RoleBinding"},
	{Group: rbacv1.GroupName, Kind: "ClusterRole"},
	{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"},
}

// Found is what was read of a cluster, with what could not be, a line each.
type Found struct {
	classic.Cluster

	Unknown []string
}

// Read reads every kind once, for all operators. The error is [ErrNoClassic] or that of ctx, or says that Subscriptions
// cannot be read: without them there would seem to be no operators.
func (c *Cluster) Read(ctx context.Context) (*Found, error) {
	found := &Found{}
	reading := reading{cluster: c, found: found}
	if err := reading.catalogs(ctx); err != nil {
		return nil, err
	}
	if err := reading.management(ctx); err != nil {
		return nil, err
	}
	return found, reading.content(ctx)
}

// reading is one call of [Cluster.Read].
type reading struct {
	cluster *Cluster
	found   *Found
}

// note takes what could not be read. The error is that of ctx.
func (r reading) note(ctx context.Context, errs ...error) error {
	for _, err := range errs {
		if err != nil {
			r.found.Unknown = append(r.found.Unknown, err.Error())
		}
	}
	return ctx.Err()
}

// catalogs reads what is about catalogs, and Subscriptions, without which nothing can be said. The error is that of
// [Cluster.Read].
func (r reading) catalogs(ctx context.Context) error {
	found := &r.found.Cluster
	v1alpha1 := operatorsv1alpha1.SchemeGroupVersion
	err := list(ctx, r, listed{resource: v1alpha1.WithResource("catalogsources"), prepare: withoutEmptyStrategy}, &found.Sources)
	if apierrors.IsNotFound(err) {
		return ErrNoClassic
	}
	if err := list(ctx, r, listed{resource: v1alpha1.WithResource("subscriptions")}, &found.Subscriptions); err != nil {
		return fmt.Errorf("which operators there are is not known: %w", err)
	}
	return r.note(ctx, err,
		absent(list(ctx, r, listed{resource: ocv1.GroupVersion.WithResource("clustercatalogs")}, &found.Catalogs)))
}

// management reads by what classic OLM is told what to do, and what becomes of that.
func (r reading) management(ctx context.Context) error {
	found := &r.found.Cluster
	v1alpha1, v1 := operatorsv1alpha1.SchemeGroupVersion, operatorsv1.GroupVersion
	csvs := v1alpha1.WithResource("clusterserviceversions")
	plans := listed{resource: v1alpha1.WithResource("installplans"), page: planPageSize, prepare: withoutManifests}
	return r.note(ctx,
		list(ctx, r, listed{resource: csvs, selector: "!" + operatorsv1alpha1.CopiedLabelKey}, &found.CSVs),
		r.metadata(ctx, csvs, operatorsv1alpha1.CopiedLabelKey, operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind).GroupKind(),
			func(one classic.Object) { found.Copies = append(found.Copies, one) }),
		list(ctx, r, plans, &found.Plans),
		list(ctx, r, listed{resource: v1.WithResource("operatorgroups")}, &found.Groups),
		list(ctx, r, listed{resource: v1.WithResource("operators")}, &found.OperatorObjects),
		list(ctx, r, listed{resource: operatorsv2.GroupVersion.WithResource("operatorconditions")}, &found.Conditions),
		absent(list(ctx, r, listed{resource: ocv1.GroupVersion.WithResource("clusterextensions")}, &found.Extensions)),
	)
}

// absent is for kinds that are not there before the controller is installed.
func absent(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// content reads what operators can consist of: what classic OLM has marked, and what it names.
func (r reading) content(ctx context.Context) error {
	found := &r.found.Cluster
	named := found.Named()
	rbac := rbacv1.SchemeGroupVersion
	errs := []error{
		list(ctx, r, listed{resource: rbac.WithResource("roles")}, &found.Roles),
		list(ctx, r, listed{resource: rbac.WithResource("rolebindings")}, &found.RoleBindings),
		list(ctx, r, listed{resource: rbac.WithResource("clusterroles")}, &found.ClusterRoles),
		list(ctx, r, listed{resource: rbac.WithResource("clusterrolebindings")}, &found.ClusterRoleBindings),
		list(ctx, r, listed{resource: appsv1.SchemeGroupVersion.WithResource("deployments")}, &found.Deployments),
	}
	found.Deployments = slices.DeleteFunc(found.Deployments, func(one appsv1.Deployment) bool { return !classic.IsMarked(&one.ObjectMeta) })
	for _, kind := range kindsOf(named) {
		mapping, err := r.cluster.mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue // what is not served is not there
		}
		if err == nil {
			err = r.metadata(ctx, mapping.Resource, "", kind, func(one classic.Object) {
				if _, isNamed := named[one.Key]; isNamed || classic.IsMarked(&one.Meta) {
					found.Objects = append(found.Objects, one)
				}
			})
		}
		errs = append(errs, err)
	}
	return r.note(ctx, errs...)
}

// kindsOf are those to read the metadata of, sorted.
func kindsOf(named map[object.Key]struct{}) []schema.GroupKind {
	kinds := map[schema.GroupKind]struct{}{}
	for _, kind := range contentKinds {
		kinds[kind] = struct{}{}
	}
	for key := range named {
		if key.Group != operatorsv1alpha1.GroupName && !slices.Contains(wholeKinds, key.GroupKind) {
			kinds[key.GroupKind] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
}

// listed is what of a kind is read.
type listed struct {
	resource schema.GroupVersionResource
	selector string
	page     int64 // pageSize if it is zero
	// prepare drops from an object what is of no use, or cannot be decoded; nil drops nothing.
	prepare func(*unstructured.Unstructured)
}

// list reads all objects. What cannot be decoded is said to be unknown.
func list[T any](ctx context.Context, r reading, wanted listed, into *[]T) error {
	options := metav1.ListOptions{LabelSelector: wanted.selector, Limit: wanted.page}
	if options.Limit == 0 {
		options.Limit = pageSize
	}
	for range maxPages {
		page, err := r.cluster.api.Resource(wanted.resource).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing %s: %w", wanted.resource.Resource, err)
		}
		for i := range page.Items {
			item := &page.Items[i]
			item.SetManagedFields(nil)
			if wanted.prepare != nil {
				wanted.prepare(item)
			}
			var one T
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &one); err != nil {
				_ = r.note(ctx, fmt.Errorf("what %s says: %w", object.KeyOf(item), err)) // the next request fails if ctx has ended
				continue
			}
			*into = append(*into, one)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
	return fmt.Errorf("listing %s: there are more than %d pages of them", wanted.resource.Resource, maxPages)
}

// metadata reads that of all objects.
func (r reading) metadata(ctx context.Context, resource schema.GroupVersionResource, selector string, kind schema.GroupKind, take func(classic.Object)) error {
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for range maxPages {
		page, err := r.cluster.objects.Resource(resource).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		for i := range page.Items {
			one := classic.Object{Meta: page.Items[i].ObjectMeta}
			one.Meta.ManagedFields = nil
			one.Key = object.Key{GroupKind: kind, Namespace: one.Meta.Namespace, Name: one.Meta.Name}
			take(one)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
	return fmt.Errorf("listing %s: there are more than %d pages of them", resource.GroupResource(), maxPages)
}

// withoutManifests drops from an InstallPlan the objects that it has made: their names are
// enough, and all plans of a cluster can be more than a process can hold.
func withoutManifests(plan *unstructured.Unstructured) {
	steps, _, _ := unstructured.NestedFieldNoCopy(plan.Object, "status", "plan")
	items, _ := steps.([]any)
	for _, item := range items {
		if step, isStep := item.(map[string]any); isStep {
			unstructured.RemoveNestedField(step, "resource", "manifest")
		}
	}
	unstructured.RemoveNestedField(plan.Object, "status", "bundleLookups")
}

// withoutEmptyStrategy drops an update strategy that says nothing, which the type of a
// CatalogSource cannot decode.
func withoutEmptyStrategy(source *unstructured.Unstructured) {
	poll, _, _ := unstructured.NestedFieldNoCopy(source.Object, "spec", "updateStrategy", "registryPoll")
	if _, isPolled := poll.(map[string]any); !isPolled {
		unstructured.RemoveNestedField(source.Object, "spec", "updateStrategy")
	}
}
