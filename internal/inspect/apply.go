package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// Apply writes the documents of a manifest, one after the other, as whoever asks. What somebody
// else has written otherwise is left to them, which is an error, and so is an extension that is
// there already with another spec, or a ServiceAccount of somebody else, which would get the
// rights of the manifest. Before anything is written, all is tried but what needs something of
// it that is yet to come, such as its namespace.
//
// The extension is written before what it needs: whoever is interrupted calls this again, and
// it tells that the rest is for nobody else.
func (c *Cluster) Apply(ctx context.Context, documents []permission.Document) error {
	return c.ApplyFor(ctx, "", documents)
}

// ApplyFor is [Cluster.Apply] for an extension that exists, and need not be among the documents.
func (c *Cluster) ApplyFor(ctx context.Context, extension string, documents []permission.Document) error {
	mapper, err := apiutil.NewDynamicRESTMapper(c.cfg.REST, c.through)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	api, err := dynamic.NewForConfigAndClient(c.cfg.REST, c.through)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	wanted := make([]*unstructured.Unstructured, len(documents))
	for i, document := range documents {
		if wanted[i], err = unstructuredOf(document.Object); err != nil {
			return err
		}
	}
	slices.SortStableFunc(wanted, func(a, b *unstructured.Unstructured) int { return cmp.Compare(waveOf(a), waveOf(b)) })
	writing := applying{cluster: c, api: api, mapper: mapper, extension: extension}
	for _, one := range wanted {
		switch one.GroupVersionKind().GroupKind() {
		case namespaceKind:
			writing.coming = append(writing.coming, one.GetName())
		case extensionKind:
			writing.extension = one.GetName()
		}
	}
	for _, writing.isTrial = range []bool{true, false} {
		for _, one := range wanted {
			if err := writing.apply(ctx, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// Kinds of which a manifest has one.
var (
	namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind()
	accountKind   = corev1.SchemeGroupVersion.WithKind("ServiceAccount").GroupKind()
	extensionKind = ocv1.GroupVersion.WithKind(ocv1.ClusterExtensionKind).GroupKind()
)

// waveOf is when an object is written.
func waveOf(wanted *unstructured.Unstructured) int {
	switch wanted.GroupVersionKind().GroupKind() {
	case namespaceKind:
		return 0
	case extensionKind:
		return 1
	default:
		return 2 //nolint:mnd // after these
	}
}

// applying is one call of [Cluster.Apply].
type applying struct {
	cluster *Cluster
	api     dynamic.Interface
	mapper  meta.RESTMapper

	// coming are the namespaces of the manifest, and extension is the name of the one in it.
	coming    []string
	extension string

	// isTrial says that nothing is written.
	isTrial bool
}

func unstructuredOf(document any) (*unstructured.Unstructured, error) {
	if content, ok := document.(map[string]any); ok {
		return &unstructured.Unstructured{Object: content}, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(document)
	return &unstructured.Unstructured{Object: content}, err
}

// apply writes one, or only tries it.
func (a *applying) apply(ctx context.Context, wanted *unstructured.Unstructured) error {
	kind, key := wanted.GroupVersionKind(), object.KeyOf(wanted)
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("applying %s: %w", key, err)
	}
	resource := a.api.Resource(mapping.Resource).Namespace(wanted.GetNamespace())
	options := metav1.ApplyOptions{FieldManager: FieldManager}
	if a.isTrial {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = resource.Apply(ctx, wanted.GetName(), wanted, options)
	switch {
	case a.isTrial && apierrors.IsNotFound(err):
		return a.awaited(key, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("applying %s: %w: apply the manifest with the tool that wrote the object before", key, err)
	case err != nil:
		return fmt.Errorf("applying %s: %w", key, err)
	case !a.isTrial:
		return nil
	}
	switch kind.GroupKind() {
	case extensionKind:
		return checkUnchanged(ctx, resource, wanted)
	case accountKind:
		return a.cluster.checkAccount(ctx, wanted, a.extension)
	}
	return nil
}

// awaited is nil if what is missing is yet to come: the namespace of an object, or the role that
// it binds.
func (a *applying) awaited(key object.Key, err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	isNamespace := ok && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "namespaces"
	if !isNamespace || slices.Contains(a.coming, key.Namespace) {
		return nil
	}
	return fmt.Errorf("namespace %q, of %s, does not exist: create it", key.Namespace, key)
}

// checkAccount fails if a ServiceAccount was there before, and is not that of the extension:
// whoever uses it, be it another extension, would get rights that nobody has thought of.
func (c *Cluster) checkAccount(ctx context.Context, tried *unstructured.Unstructured, extension string) error {
	account := &corev1.ServiceAccount{}
	key := client.ObjectKeyFromObject(tried)
	switch err := c.reconciler.Client.Get(ctx, key, account); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading ServiceAccount %q: %w", key, err)
	}
	var extensions ocv1.ClusterExtensionList
	if err := c.reconciler.Client.List(ctx, &extensions); err != nil {
		return fmt.Errorf("listing ClusterExtensions: %w", err)
	}
	return checkUsers(key, extensions.Items, extension)
}

// checkUsers is given all extensions.
func checkUsers(account client.ObjectKey, extensions []ocv1.ClusterExtension, applied string) error {
	var others []string
	for i := range extensions {
		switch spec := &extensions[i].Spec; {
		case spec.Namespace != account.Namespace || spec.ServiceAccount.Name != account.Name:
		case extensions[i].Name == applied:
			return nil
		default:
			others = append(others, extensions[i].Name)
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("ServiceAccount %q is that of ClusterExtension %q, which would get the rights of this one: choose another --namespace", account, slices.Min(others))
	}
	return fmt.Errorf("ServiceAccount %q exists already, and its users would get the permissions of this extension: choose another --namespace; or delete the ServiceAccount, if no pod uses it", account)
}

// checkUnchanged fails if an extension is there with another spec: what was said the first time,
// such as a version, would be taken back by saying nothing of it, or stay without being said. One
// that names a bundle by its image may get another image: somebody tries what they have changed.
func checkUnchanged(ctx context.Context, resource dynamic.ResourceInterface, wanted *unstructured.Unstructured) error {
	live, err := resource.Get(ctx, wanted.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading ClusterExtension %q: %w", wanted.GetName(), err)
	}
	// The API server knows what is there by default.
	replacement, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": wanted.Object["spec"]}})
	if err != nil {
		return fmt.Errorf("comparing the spec of ClusterExtension %q: %w", wanted.GetName(), err)
	}
	options := metav1.PatchOptions{FieldManager: FieldManager, DryRun: []string{metav1.DryRunAll}}
	replaced, err := resource.Patch(ctx, wanted.GetName(), types.JSONPatchType, replacement, options)
	if err != nil {
		return fmt.Errorf("comparing the spec of ClusterExtension %q: %w", wanted.GetName(), err)
	}
	differing := unintended(live.Object["spec"], replaced.Object["spec"])
	if len(differing) == 0 {
		return nil
	}
	return fmt.Errorf("ClusterExtension %q is there already, and its spec is another one: edit it; what differs is %s", wanted.GetName(), excerpt.Of(differing, maxKindsText))
}

// unintended are the paths of fields that two specs differ in, without the image, which is what is
// tried.
func unintended(live, wanted any) []string {
	return slices.DeleteFunc(differences("spec", live, wanted), func(path string) bool { return path == "spec.source.bundle.ref" })
}

// differences are the paths of fields that two values differ in, sorted. Lists are one field.
func differences(path string, a, b any) []string {
	one, isMap := a.(map[string]any)
	other, areMaps := b.(map[string]any)
	if !isMap || !areMaps {
		if equality.Semantic.DeepEqual(a, b) {
			return nil
		}
		return []string{path}
	}
	var found []string
	for _, key := range slices.Sorted(maps.Keys(one)) {
		found = append(found, differences(path+"."+key, one[key], other[key])...)
	}
	for _, key := range slices.Sorted(maps.Keys(other)) {
		if _, both := one[key]; !both {
			found = append(found, path+"."+key)
		}
	}
	slices.Sort(found)
	return found
}
