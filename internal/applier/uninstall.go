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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
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

// maxDeleted is how many custom resources of a definition one pass deletes. The next one
// goes on.
const maxDeleted = 500

// DeleteCustomResources deletes what there is of the kinds of the definitions that go with an
// extension, and does not wait for it. A definition that has other owners stays. It may leave some for the next call. It reads and
// deletes as the ServiceAccount. It fails with [object.ErrOwnerGone] if the content is to
// stay by now.
func (a *Applier) DeleteCustomResources(ctx context.Context, owner object.Owner) error {
	definitions, err := a.ownedDefinitions(ctx, owner)
	if err != nil {
		return err
	}
	client, err := impersonation.As(a.clients, owner.Account(), metadata.NewForConfigAndClient)
	if err != nil {
		return err
	}
	a.memory(owner).uses.forget() // they are told otherwise from now on
	var errs []error
	for _, one := range definitions {
		if one.Shared {
			continue
		}
		err := one.Err
		if err == nil {
			err = deleteAll(ctx, client, one.Resource, func() error { return a.confirm(ctx, owner) })
		}
		if errors.Is(err, object.ErrOwnerGone) {
			return err
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("custom resources of %s: %w", one.Name, err))
		}
	}
	return errors.Join(errs...)
}

// confirmEach is after how many deletions it is asked again whether they are still wanted.
const confirmEach = 20

// deleteAll deletes exactly the objects that it reads, up to [maxDeleted], as long as that is
// confirmed: first after they were read, which may have taken long.
func deleteAll(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, confirm func() error) error {
	found, err := undeleted(ctx, client, resource)
	for i := range found {
		if i%confirmEach == 0 {
			if err := confirm(); err != nil {
				return err
			}
		}
		if err := deleteCustomResource(ctx, client, resource, &found[i]); err != nil {
			return err
		}
	}
	return err
}

// undeleted are the first [maxDeleted] objects that are not being deleted yet, also those that
// were found before an error.
func undeleted(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource) (found []metav1.PartialObjectMetadata, err error) {
	options := metav1.ListOptions{Limit: usage.MaxListed}
	for range usage.MaxPages {
		list, err := client.Resource(resource).List(ctx, options)
		if err != nil {
			return found, err
		}
		for _, live := range list.Items {
			if live.DeletionTimestamp == nil {
				found = append(found, live)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" || len(found) >= maxDeleted {
			break
		}
	}
	return found[:min(len(found), maxDeleted)], nil
}

// deleteCustomResource succeeds if another one has taken its place, which the next pass reads.
func deleteCustomResource(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, live *metav1.PartialObjectMetadata) error {
	err := client.Resource(resource).Namespace(live.Namespace).Delete(ctx, live.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(live.UID)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// DeleteWorkloads deletes what an extension owns that runs something, and names what is
// not gone yet, with its pods and replicas. It reads and deletes as the ServiceAccount. It
// fails with [object.ErrOwnerGone] if the content is to stay by now.
func (a *Applier) DeleteWorkloads(ctx context.Context, owner object.Owner) (left []string, err error) {
	if err := a.confirm(ctx, owner); err != nil {
		return nil, err
	}
	client, err := impersonation.As(a.clients, owner.Account(), metadata.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	content, err := a.recordedContent(ctx, owner)
	if err != nil {
		return nil, err
	}
	content = slices.DeleteFunc(content, func(one deletable) bool { return one.key.GroupKind != health.DeploymentKind })
	return deleteOwned(ctx, client, owner, content)
}

// DeleteContent deletes all that an extension owns of what it has installed, and names what is not
// gone yet. What has other owners stays. It reads and deletes as the ServiceAccount. It fails with
// [object.ErrOwnerGone] if the content is to stay by now.
func (a *Applier) DeleteContent(ctx context.Context, owner object.Owner) (left []string, err error) {
	history, err := a.histories.AsIs(ctx, owner)
	if err != nil {
		return nil, err
	}
	content, err := a.deletablesIn(ctx, owner, history)
	if err != nil {
		return nil, err
	}
	if err := a.confirm(ctx, owner); err != nil {
		return nil, err
	}
	if err := history.NoteContentGoes(ctx); err != nil {
		return nil, err
	}
	client, err := impersonation.As(a.clients, owner.Account(), metadata.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	left, err = deleteOwned(ctx, client, owner, content)
	return left, object.AsRightsError(err)
}

// deleteOwned names what is not gone yet.
func deleteOwned(ctx context.Context, client metadata.Interface, owner object.Owner, content []deletable) (left []string, err error) {
	for _, one := range content {
		found, err := deleteOne(ctx, client, owner, one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.key, err)
		}
		if found != nil {
			left = append(left, found.String())
		}
	}
	return left, nil
}

// deleteOne is nil for what is gone, or belongs to others as well.
func deleteOne(ctx context.Context, client metadata.Interface, owner object.Owner, one deletable) (*remainingObject, error) {
	live, err := one.read(ctx, client)
	if apierrors.IsNotFound(err) || err == nil && (!owner.IsOwnerOf(live) || owner.SharesWithOthers(live)) {
		return nil, nil
	}
	if err == nil && live.DeletionTimestamp == nil {
		err = client.Resource(one.resource).Namespace(one.key.Namespace).Delete(ctx, one.key.Name, object.InForeground(live))
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &remainingObject{Key: one.key, Finalizers: usage.TheirFinalizers(live)}, nil
}
