package bundle

import (
	"errors"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/hook"
)

// Rendered is what a bundle stands for.
type Rendered struct {
	// Objects are sorted by group, kind, namespace and name, each identity once, without status.
	Objects []*unstructured.Unstructured

	// Hooks run before or after operations, in the order of the files of a Helm chart. Tests are
	// among them.
	Hooks []hook.Hook

	// Lookups says whether the templates of a chart have looked at the cluster. It is set beside
	// an error too.
	Lookups Lookups

	// Placeholders are the values without a certificate in objects and hooks, sorted.
	Placeholders []Placeholder

	// Elsewhere maps each namespace other than the install namespace to the first object of the
	// chart in it.
	Elsewhere map[string]Origin
}

// Origin is the first object of a chart in a namespace, and where it comes from.
type Origin struct {
	Kind, Name string

	// File in the chart, such as "templates/role.yaml".
	File string

	// Value is the path of the value that names the namespace, such as "global.istioNamespace";
	// empty if there is none.
	Value string
}

// Given are the objects and the hooks, which both can give rights. Tests are not among them.
func (r Rendered) Given() []*unstructured.Unstructured {
	return append(slices.Clone(r.Objects), hook.Objects(hook.WithoutTests(r.Hooks))...)
}

// All are the objects, and after them those of all hooks.
func (r Rendered) All() []*unstructured.Unstructured {
	return append(slices.Clone(r.Objects), hook.Objects(r.Hooks)...)
}

// Render returns what the bundle stands for. It belongs to the caller; the bundle is left as it
// is.
//
// It fails with an [*InvalidError], an [*UnsupportedError] or a [*ConfigError].
func Render(b *Bundle, opts Options) (Rendered, error) {
	if opts.InstallNamespace == "" {
		return Rendered{}, errors.New("rendering: no install namespace")
	}
	if err := b.Validate(); err != nil {
		return Rendered{}, err
	}
	if served := b.servedWithCertificates(); served != "" && opts.Certificates.certificates() == nil {
		return Rendered{}, &UnsupportedError{Reasons: []string{served + " are not supported: there is no certificate provider"}}
	}
	rendered, err := b.format().render(b, opts)
	rendered.Placeholders = removePlaceholders(rendered.All())
	return rendered, err
}

// Warnings are lines for people about what was removed and nothing else fills in.
func (r Rendered) Warnings() []string {
	var lines []string
	for _, placeholder := range r.Placeholders {
		if placeholder.Removed && !placeholder.Filled {
			lines = append(lines, placeholder.String())
		}
	}
	return lines
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
		r.apiServices,
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
