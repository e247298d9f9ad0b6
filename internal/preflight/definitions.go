package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
	"github.com/clusterextensions/operator-controller/internal/preflight/storeddata"
)

// Change is an object before and after.
type Change struct {
	// Live is the object as the cluster has it.
	Live *unstructured.Unstructured

	// Wanted is nil for an object that is to be deleted.
	Wanted *unstructured.Unstructured
}

// Lister reads the objects of a resource, in all namespaces.
type Lister func(schema.GroupVersionResource) storeddata.Lister

// ListerOf reads as the client does, which is one of [ConfigFor].
func ListerOf(client rest.Interface) Lister {
	return func(resource schema.GroupVersionResource) storeddata.Lister {
		return stream{client: client, resource: resource}
	}
}

// ConfigFor is the configuration of a client for [ListerOf].
func ConfigFor(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/", &schema.GroupVersion{}
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion() // for errors
	return config
}

// stream opens pages of a resource, which a dynamic client would read whole.
type stream struct {
	client   rest.Interface
	resource schema.GroupVersionResource
}

func (s stream) List(ctx context.Context, options metav1.ListOptions) (io.ReadCloser, error) {
	return s.client.Get().
		AbsPath("apis", s.resource.Group, s.resource.Version).
		Resource(s.resource.Resource).
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, metav1.SchemeGroupVersion).
		SetHeader("Accept", runtime.ContentTypeJSON).
		Stream(ctx)
}

// Definitions checks those of the changes that are about CustomResourceDefinitions.
// Stored objects are read where, and only where, the answer depends on them. What
// cannot be read counts as broken. The error is that of the context, or says which
// definition is none.
func Definitions(ctx context.Context, list Lister, policy crdupgrade.Policy, changes []Change) (Verdict, error) {
	verdict := Verdict{}
	if policy.Enforcement == crdupgrade.None {
		return verdict, nil
	}
	for _, change := range changes {
		if !isDefinition(change.Live) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return Verdict{}, err
		}
		pair, err := definitionsOf(change)
		if err != nil {
			return Verdict{}, err
		}
		findings := policy.Apply(pair.compare())
		stored := storedObjects{}
		if slices.ContainsFunc(findings, dependsOnData) {
			if stored, err = pair.scanStored(ctx, list); err != nil {
				return Verdict{}, err
			}
		}
		verdict.add(stored.judge(findings), stored)
	}
	verdict.Findings = crdupgrade.Sort(verdict.Findings)
	return verdict, nil
}

// Stored are the resources of which [Definitions] would read the objects, sorted,
// as far as the objects before and after can tell: what is installed may differ.
func Stored(before, wanted []*unstructured.Unstructured) ([]schema.GroupResource, error) {
	var resources []schema.GroupResource
	for _, change := range changesOf(before, wanted) {
		pair, err := definitionsOf(change)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(pair.compare(), dependsOnData) {
			resources = append(resources, storeddata.Resource(pair.before).GroupResource())
		}
	}
	slices.SortFunc(resources, func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) })
	return resources, nil
}

// changesOf are those of definitions.
func changesOf(before, wanted []*unstructured.Unstructured) []Change {
	after := map[string]*unstructured.Unstructured{}
	for _, object := range wanted {
		if isDefinition(object) {
			after[object.GetName()] = object
		}
	}
	var changes []Change
	for _, object := range before {
		if isDefinition(object) {
			changes = append(changes, Change{Live: object, Wanted: after[object.GetName()]})
		}
	}
	return changes
}

func isDefinition(object *unstructured.Unstructured) bool {
	kind := schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
	return object != nil && object.GroupVersionKind().GroupKind() == kind
}

func dependsOnData(f crdupgrade.Finding) bool { return f.Kind == crdupgrade.NeedsData }

// definitions are one before and after; after is nil if it is to go.
type definitions struct {
	before, after *apiextensionsv1.CustomResourceDefinition
}

func definitionsOf(change Change) (definitions, error) {
	before, err := definitionFrom(change.Live)
	if err != nil || change.Wanted == nil {
		return definitions{before: before}, err
	}
	after, err := definitionFrom(change.Wanted)
	return definitions{before: before, after: after}, err
}

func definitionFrom(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition); err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %q: %w", object.GetName(), err)
	}
	return definition, nil
}

func (d definitions) compare() []crdupgrade.Finding {
	switch {
	case d.after == nil:
		return []crdupgrade.Finding{crdupgrade.Dropped(d.before)}
	case equality.Semantic.DeepEqual(d.before.Spec, d.after.Spec):
		return nil
	}
	return crdupgrade.Compare(d.before, d.after)
}

// scanStored reads the stored objects of the definition. If they cannot be listed in one version, it tries the
// others in which they may be stored.
func (d definitions) scanStored(ctx context.Context, list Lister) (storedObjects, error) {
	result := storedObjects{definition: d.before.Name}
	scan := func(resource schema.GroupVersionResource) (storeddata.Report, error) {
		return storeddata.Inventory(ctx, list(resource), resource.GroupResource())
	}
	if d.after != nil {
		validator, err := storeddata.New(ctx, d.before, d.after)
		if refused, ok := errors.AsType[*storeddata.SchemaError](err); ok {
			result.report.Gaps = []storeddata.Gap{{Reason: storeddata.Unjudged, Detail: refused.Error()}}
			return result, nil
		}
		if err != nil {
			return storedObjects{}, err
		}
		scan = func(resource schema.GroupVersionResource) (storeddata.Report, error) {
			return storeddata.Scan(ctx, list(resource), validator)
		}
	}
	for i, resource := range storeddata.Resources(d.before) {
		report, err := scan(resource)
		if err != nil {
			return result, err
		}
		if i == 0 || !report.IsUnavailable() {
			result.report = report
		}
		if !report.IsUnavailable() {
			break
		}
	}
	return result, nil
}
