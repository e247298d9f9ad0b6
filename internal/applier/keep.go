package applier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// KeepDefinitions removes the extension as the owner of its definitions, so that they and
// their custom resources stay when it goes, and gives their names. An extension of the same
// name takes them over by their marks. Conversion by a webhook, which would fail without the
// operator, is ended where nothing needs it; if it is needed, it fails with
// [*installation.ConversionError] before anything is written. It writes as the
// ServiceAccount.
func (a *Applier) KeepDefinitions(ctx context.Context, owner object.Owner) (kept []string, err error) {
	definitions, err := a.ownedDefinitions(ctx, owner)
	if err != nil || len(definitions) == 0 {
		return nil, err
	}
	client, err := impersonation.As(a.clients, owner.Account(), dynamic.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	patches, err := keepingPatches(ctx, client, owner, definitions)
	if err != nil {
		return nil, err
	}
	keep := func(name string, dryRun ...string) error {
		options := metav1.PatchOptions{FieldManager: object.FieldManager, DryRun: dryRun}
		_, err := client.Resource(usage.DefinitionResource).Patch(ctx, name, types.MergePatchType, patches[name], options)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("CustomResourceDefinition %q: %w", name, err)
		}
		return nil
	}
	names := slices.Sorted(maps.Keys(patches))
	if err := keepsAll(names, keep); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := keep(name); err != nil {
			return kept, err
		}
		kept = append(kept, name)
		log.FromContext(ctx).Info("keeps the definition", "object", object.Key{GroupKind: object.DefinitionKind, Name: name}.Logged())
	}
	return kept, nil
}

// keepsAll tries in dry runs to keep all of several definitions: what is repaired after a refusal
// would be owned again, and the next try begin anew. A webhook with side effects is not called in
// a dry run, which then tells nothing.
func keepsAll(names []string, keep func(name string, dryRun ...string) error) error {
	if len(names) < 2 {
		return nil
	}
	var errs []error
	for _, name := range names {
		if err := keep(name, metav1.DryRunAll); err != nil && !apierrors.IsBadRequest(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// keepingPatches are those of all definitions that are there, by their names. It only reads.
func keepingPatches(ctx context.Context, client dynamic.Interface, owner object.Owner, definitions []usage.Definition) (map[string][]byte, error) {
	patches := map[string][]byte{}
	var errs []error
	for _, one := range definitions {
		live, err := client.Resource(usage.DefinitionResource).Get(ctx, one.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("CustomResourceDefinition %q: %w", one.Name, err))
			continue
		}
		if patches[one.Name], err = keepingPatch(owner, live); err != nil {
			errs = append(errs, err)
		}
	}
	return patches, errors.Join(errs...)
}

// keepingPatch is to exactly the definition that was read.
func keepingPatch(owner object.Owner, live *unstructured.Unstructured) ([]byte, error) {
	marked := &unstructured.Unstructured{Object: map[string]any{}}
	marked.SetLabels(owner.Own(live).GetLabels())
	marked.SetAnnotations(live.GetAnnotations())
	owner.Stamp(marked)
	patch := map[string]any{"metadata": map[string]any{
		"uid":             live.GetUID(),
		"resourceVersion": live.GetResourceVersion(),
		"ownerReferences": owner.OtherReferences(live),
		"labels":          marked.GetLabels(),
		"annotations":     marked.GetAnnotations(),
	}}
	var read apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &read); err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %q: %w", live.GetName(), err)
	}
	if err := usage.CheckConversion(&read); err != nil {
		return nil, err
	}
	if usage.IsConverted(&read) {
		patch["spec"] = map[string]any{"conversion": map[string]any{"strategy": apiextensionsv1.NoneConverter, "webhook": nil}}
	}
	return json.Marshal(patch)
}
