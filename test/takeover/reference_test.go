package takeover_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// installer is the ServiceAccount of each extension, in a namespace of the name of the
// extension.
const installer = "installer"

// referenceManager is the field manager of the reference.
const referenceManager = client.FieldOwner("operator-controller")

// release is one as the reference leaves it behind.
type release struct {
	pkg, bundle, version string

	// watch is the namespace that the operator is told to watch; none if empty.
	watch string

	// objects are as the reference renders them.
	objects []*unstructured.Unstructured
}

// image is the reference of its bundle in the catalog.
func (r *release) image() string { return fmt.Sprintf("registry.test/%s:v%s", r.pkg, r.version) }

// leave installs a release as the reference does: the extension with its status, its objects
// with their marks, and its record. Of a release that the API server refuses, it leaves nothing.
func (s *site) leave(ctx context.Context, r *release) error {
	extension, err := s.leaveExtension(ctx, r)
	if err != nil {
		return err
	}
	err = s.leaveContent(ctx, r, extension)
	if !apierrors.IsInvalid(err) && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for _, rendered := range r.objects {
		if failed := client.IgnoreNotFound(s.Admin.Delete(ctx, rendered.DeepCopy())); failed != nil {
			return errors.Join(err, failed)
		}
	}
	extension.Finalizers = nil
	return errors.Join(err, s.Admin.Update(ctx, extension), s.Admin.Delete(ctx, extension))
}

func (s *site) leaveContent(ctx context.Context, r *release, extension *ocv1.ClusterExtension) error {
	var manifest bytes.Buffer
	for _, rendered := range inOrder(r.objects) {
		recorded := recorded(rendered, extension)
		text, err := json.Marshal(recorded.Object)
		if err != nil {
			return err
		}
		manifest.Write(append(text, '\n'))
		if judgesPods(rendered) {
			if err := s.awaitWorkloads(ctx); err != nil {
				return err
			}
		}
		if err := s.Admin.Create(ctx, stamped(recorded, extension), referenceManager); err != nil {
			return fmt.Errorf("%s %s: %w", rendered.GetKind(), rendered.GetName(), err)
		}
		if rendered.GetKind() == "CustomResourceDefinition" {
			if err := s.established(ctx, rendered.GetName()); err != nil {
				return err
			}
		}
	}
	record, err := recordOf(r, extension, manifest.String())
	if err != nil {
		return err
	}
	return s.Admin.Create(ctx, record, referenceManager)
}

// established waits until the kind of a definition is served.
func (s *site) established(ctx context.Context, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		found := &apiextensionsv1.CustomResourceDefinition{}
		if err := s.Admin.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
			return false, err
		}
		return apihelpers.IsCRDConditionTrue(found, apiextensionsv1.Established), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %q to be established: %w", name, err)
	}
	return nil
}

func (s *site) leaveExtension(ctx context.Context, r *release) (*ocv1.ClusterExtension, error) {
	extension := environment.Extension(r.pkg, r.pkg, installer, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source.Catalog.Version = r.version
		if r.watch != "" {
			extension.Spec.Config = &ocv1.ClusterExtensionConfig{
				ConfigType: ocv1.ClusterExtensionConfigTypeInline,
				Inline:     &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"watchNamespace":%q}`, r.watch)},
			}
		}
		extension.Finalizers = []string{"olm.operatorframework.io/cleanup-unpack-cache", "olm.operatorframework.io/cleanup-contentmanager-cache"}
	})
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.pkg}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.pkg, Name: installer}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: installer + ":" + r.pkg},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.pkg, Name: installer}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		},
		extension,
	} {
		if err := s.Admin.Create(ctx, object); err != nil {
			return nil, err
		}
	}
	extension.Status.Install = &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Name: r.bundle, Version: r.version}}
	for condition, message := range map[string]string{
		ocv1.TypeInstalled: "Installed bundle " + r.image() + " successfully", ocv1.TypeProgressing: "Desired state reached",
	} {
		extension.Status.Conditions = append(extension.Status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionTrue, Reason: ocv1.ReasonSucceeded, Message: message,
			ObservedGeneration: extension.Generation, LastTransitionTime: metav1.Now(),
		})
	}
	return extension, s.Admin.Status().Update(ctx, extension)
}

// recorded is an object as it is in the record.
func recorded(rendered *unstructured.Unstructured, extension *ocv1.ClusterExtension) *unstructured.Unstructured {
	recorded := rendered.DeepCopy()
	labels := recorded.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[object.LabelOwnerKind], labels[object.LabelOwnerName] = object.OwnerKind, extension.Name
	recorded.SetLabels(labels)
	recorded.SetOwnerReferences([]metav1.OwnerReference{referenceTo(extension)})
	return recorded
}

func referenceTo(extension *ocv1.ClusterExtension) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: ocv1.GroupVersion.String(), Kind: object.OwnerKind, Name: extension.Name, UID: extension.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
}

// stamped is an object as Helm writes it, and as the reference has it after its first look:
// a bundle that says itself what manages an object has the last word.
func stamped(recorded *unstructured.Unstructured, extension *ocv1.ClusterExtension) *unstructured.Unstructured {
	written := recorded.DeepCopy()
	labels, annotations := written.GetLabels(), written.GetAnnotations()
	if _, said := labels["app.kubernetes.io/managed-by"]; !said {
		labels["app.kubernetes.io/managed-by"] = "Helm"
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["meta.helm.sh/release-name"] = extension.Name
	annotations["meta.helm.sh/release-namespace"] = extension.Spec.Namespace
	written.SetLabels(labels)
	written.SetAnnotations(annotations)
	return written
}

// recordOf is the record of a release, in a single chunk.
func recordOf(r *release, extension *ocv1.ClusterExtension, manifest string) (*corev1.Secret, error) {
	now := time.Now().Format(time.RFC3339Nano)
	payload, err := json.Marshal(map[string]any{
		"name": extension.Name, "namespace": extension.Spec.Namespace, "version": 1, "manifest": manifest,
		"info":  map[string]any{"first_deployed": now, "last_deployed": now, "deleted": "", "description": "Install complete", "status": "deployed"},
		"chart": map[string]any{"metadata": map[string]any{}, "lock": nil, "templates": nil, "values": nil, "schema": nil, "files": nil},
		"labels": map[string]string{
			"olm.operatorframework.io/package-name": r.pkg, "olm.operatorframework.io/bundle-name": r.bundle,
			"olm.operatorframework.io/bundle-version": r.version, "olm.operatorframework.io/bundle-reference": r.image(),
		},
	})
	if err != nil {
		return nil, err
	}
	var chunk bytes.Buffer
	compressed := gzip.NewWriter(&chunk)
	if _, err := compressed.Write(payload); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	key := "sh.helm.release.v1." + extension.Name + ".v1"
	created := fmt.Sprint(time.Now().Unix())
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: environment.SystemNamespace, Name: key,
			Labels: map[string]string{
				"name": extension.Name, "owner": "operator-controller", "status": "deployed", "version": "1", "key": key, "type": "index",
				"createdAt": created, "modifiedAt": created,
			},
			OwnerReferences: []metav1.OwnerReference{referenceTo(extension)},
		},
		Immutable: new(false),
		Type:      "operatorframework.io/index.v1",
		Data:      map[string][]byte{"chunk": chunk.Bytes(), "extraChunks": []byte("[]")},
	}, nil
}

// judgesPods tells webhooks that are called for pods. Nobody answers, so that no pod can be
// made after them.
func judgesPods(object *unstructured.Unstructured) bool {
	webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	for _, webhook := range webhooks {
		webhook, _ := webhook.(map[string]any)
		rules, _, _ := unstructured.NestedSlice(webhook, "rules")
		for _, rule := range rules {
			rule, _ := rule.(map[string]any)
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			if slices.Contains(resources, "pods") {
				return true
			}
		}
	}
	return false
}

// inOrder has definitions come first, and webhooks after what they are for. As with Helm,
// a ServiceAccount comes before the Secret of its token, which the cluster deletes without it.
func inOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	place := func(object *unstructured.Unstructured) int {
		switch object.GetKind() {
		case "CustomResourceDefinition", "ServiceAccount":
			return 0
		case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
			return 2
		default:
			return 1
		}
	}
	return slices.SortedStableFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int { return place(a) - place(b) })
}
