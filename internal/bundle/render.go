package bundle

import (
	"errors"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Render returns the objects that the bundle stands for: sorted by group, kind,
// namespace and name, each identity once, without status. They belong to the
// caller; the bundle is left as it is.
//
// It fails with an [*InvalidError], an [*UnsupportedError] or a [*ConfigError].
func Render(b *Bundle, opts Options) ([]*unstructured.Unstructured, error) {
	if opts.InstallNamespace == "" {
		return nil, errors.New("rendering: no install namespace")
	}
	if err := b.Validate(); err != nil {
		return nil, err
	}
	if b.HasWebhooks() && opts.Certificates.certificates() == nil {
		return nil, &UnsupportedError{Reasons: []string{"webhookDefinitions are not supported: there is no certificate provider"}}
	}
	if b.isPlain() {
		if opts.Config != (Config{}) {
			return nil, newConfigError("a plain bundle takes no configuration")
		}
		return renderPlain(b, opts.InstallNamespace)
	}
	watched, err := b.watchedNamespaces(opts)
	if err != nil {
		return nil, err
	}
	return newRenderer(b, opts, watched).render()
}

// renderer holds what all parts of one rendering look at. Every part reads the
// bundle and writes only to objects.
type renderer struct {
	bundle       *Bundle
	namespace    string
	watched      []string
	config       *DeploymentConfig
	aggregate    bool
	certificates certificates
	naming       bool
	condition    string
	objects      objectSet
}

func newRenderer(b *Bundle, opts Options, watched []string) *renderer {
	return &renderer{
		bundle:       b,
		namespace:    opts.InstallNamespace,
		watched:      watched,
		config:       opts.Config.Deployment,
		aggregate:    opts.Config.AggregatedClusterRoles,
		certificates: opts.Certificates.certificates(),
		naming:       opts.ConditionName,
		condition:    b.OperatorCondition(opts.Config),
	}
}

func (r *renderer) render() ([]*unstructured.Unstructured, error) {
	for _, part := range []func() error{
		r.serviceAccounts,
		r.roles,
		r.clusterRoles,
		r.aggregatedClusterRoles,
		r.crds,
		r.manifests,
		r.operatorCondition,
		r.deployments,
		r.webhookConfigurations,
		r.webhookServices,
		r.issuedCertificates,
	} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	return r.objects.sorted()
}

func (r *renderer) watchesAll() bool {
	return slices.Equal(r.watched, []string{corev1.NamespaceAll})
}

// add puts an object that this package made into the result.
func (r *renderer) add(object any) error {
	content, err := toUnstructured(object)
	if err != nil {
		return err
	}
	r.objects.add(source{object: content})
	return nil
}

func (r *renderer) crds() error {
	webhooks := map[string]operatorsv1alpha1.WebhookDescription{}
	for _, webhook := range r.bundle.CSV.Spec.WebhookDefinitions {
		if webhook.Type != operatorsv1alpha1.ConversionWebhook {
			continue
		}
		for _, crd := range webhook.ConversionCRDs {
			webhooks[crd] = webhook
		}
	}
	for i := range r.bundle.CRDs {
		// Large: what convert changes is copied, the rest only read.
		crd := r.bundle.CRDs[i]
		if webhook, ok := webhooks[crd.Name]; ok {
			crd.Annotations = maps.Clone(crd.Annotations)
			r.convert(&crd, webhook)
		}
		content, err := toUnstructured(&crd)
		if err != nil {
			return err
		}
		r.objects.add(source{object: content, file: r.bundle.files[crdKey(crd.Name)]})
	}
	return nil
}

// manifests puts what the bundle ships into the install namespace, wherever
// its author had it.
func (r *renderer) manifests() error {
	kinds := manifestKinds()
	for i := range r.bundle.Others {
		object := r.bundle.Others[i].DeepCopy()
		key := r.bundle.keyOf(object)
		if kinds[key.GroupKind] == namespaced {
			object.SetNamespace(r.namespace)
		}
		r.placeSubjects(object)
		r.objects.add(source{object: object, file: r.bundle.files[key]})
	}
	return nil
}

// placeSubjects names the install namespace where a cluster-wide binding leaves
// open which namespace a ServiceAccount is in: no cluster takes such a binding.
// A namespace that the author wrote stays.
func (r *renderer) placeSubjects(object *unstructured.Unstructured) {
	if object.GetKind() != kindClusterRoleBinding {
		return
	}
	subjects, _ := object.Object["subjects"].([]any)
	for _, item := range subjects {
		subject, _ := item.(map[string]any)
		if namespace, _ := subject["namespace"].(string); subject["kind"] == rbacv1.ServiceAccountKind && namespace == "" {
			subject["namespace"] = r.namespace
		}
	}
}
