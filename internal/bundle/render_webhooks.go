package bundle

import (
	"cmp"
	"slices"
	"strconv"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
)

const defaultWebhookPort = 443

// webhookPort is the port of the webhook's Service. The API that bundles are
// written for defaults it; nothing on the way here did.
func webhookPort(webhook operatorsv1alpha1.WebhookDescription) int32 {
	if webhook.ContainerPort > 0 {
		return webhook.ContainerPort
	}
	return defaultWebhookPort
}

func webhookTargetPort(webhook operatorsv1alpha1.WebhookDescription) intstr.IntOrString {
	if webhook.TargetPort != nil {
		return *webhook.TargetPort
	}
	return intstr.FromInt32(webhookPort(webhook))
}

// servingDeployments are those behind a webhook or an API service.
func (r *renderer) servingDeployments() sets.Set[string] {
	serving := sets.New[string]()
	for _, webhook := range r.bundle.CSV.Spec.WebhookDefinitions {
		serving.Insert(webhook.DeploymentName)
	}
	for _, api := range r.bundle.ownedAPIs() {
		serving.Insert(api.DeploymentName)
	}
	return serving
}

// convert lets the webhook convert the CRD, in place of whatever its author
// had wired up.
func (r *renderer) convert(crd *apiextensionsv1.CustomResourceDefinition, webhook operatorsv1alpha1.WebhookDescription) {
	path := "/"
	if webhook.WebhookPath != nil {
		path = *webhook.WebhookPath
	}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				Service: &apiextensionsv1.ServiceReference{
					Namespace: r.namespace,
					Name:      webhookServiceName(webhook.DeploymentName),
					Path:      &path,
					Port:      new(webhookPort(webhook)),
				},
			},
			ConversionReviewVersions: webhook.AdmissionReviewVersions,
		},
	}
	r.injectCA(&crd.ObjectMeta, webhook.DeploymentName)
}

func (r *renderer) webhookConfigurations() error {
	for _, webhook := range r.bundle.CSV.Spec.WebhookDefinitions {
		var configuration any
		switch webhook.Type {
		case operatorsv1alpha1.ValidatingAdmissionWebhook:
			configuration = r.validatingConfiguration(webhook)
		case operatorsv1alpha1.MutatingAdmissionWebhook:
			configuration = r.mutatingConfiguration(webhook)
		default:
			continue
		}
		if err := r.add(configuration); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) validatingConfiguration(webhook operatorsv1alpha1.WebhookDescription) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   webhookConfigurationType("ValidatingWebhookConfiguration"),
		ObjectMeta: r.webhookConfigurationMeta(webhook),
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    webhookName(webhook),
			ClientConfig:            r.webhookClientConfig(webhook),
			Rules:                   webhook.Rules,
			FailurePolicy:           webhook.FailurePolicy,
			MatchPolicy:             webhook.MatchPolicy,
			NamespaceSelector:       r.watchedSelector(),
			ObjectSelector:          webhook.ObjectSelector,
			SideEffects:             webhook.SideEffects,
			TimeoutSeconds:          webhook.TimeoutSeconds,
			AdmissionReviewVersions: webhook.AdmissionReviewVersions,
		}},
	}
}

func (r *renderer) mutatingConfiguration(webhook operatorsv1alpha1.WebhookDescription) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   webhookConfigurationType("MutatingWebhookConfiguration"),
		ObjectMeta: r.webhookConfigurationMeta(webhook),
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    webhookName(webhook),
			ClientConfig:            r.webhookClientConfig(webhook),
			Rules:                   webhook.Rules,
			FailurePolicy:           webhook.FailurePolicy,
			MatchPolicy:             webhook.MatchPolicy,
			NamespaceSelector:       r.watchedSelector(),
			ObjectSelector:          webhook.ObjectSelector,
			SideEffects:             webhook.SideEffects,
			TimeoutSeconds:          webhook.TimeoutSeconds,
			AdmissionReviewVersions: webhook.AdmissionReviewVersions,
			ReinvocationPolicy:      webhook.ReinvocationPolicy,
		}},
	}
}

func webhookConfigurationType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
}

// The kinds are cluster-scoped and the API server drops the namespace. It is
// there because the releases of installed extensions have it.
func (r *renderer) webhookConfigurationMeta(webhook operatorsv1alpha1.WebhookDescription) metav1.ObjectMeta {
	metadata := metav1.ObjectMeta{Name: webhookName(webhook), Namespace: r.namespace}
	r.injectCA(&metadata, webhook.DeploymentName)
	return metadata
}

func (r *renderer) webhookClientConfig(webhook operatorsv1alpha1.WebhookDescription) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{
			Namespace: r.namespace,
			Name:      webhookServiceName(webhook.DeploymentName),
			Path:      webhook.WebhookPath,
			Port:      new(webhookPort(webhook)),
		},
	}
}

// watchedSelector keeps the webhooks of an operator out of namespaces that it
// does not watch.
func (r *renderer) watchedSelector() *metav1.LabelSelector {
	if r.watchesAll() {
		return nil
	}
	return &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key:      corev1.LabelMetadataName,
			Operator: metav1.LabelSelectorOpIn,
			Values:   r.watched,
		}},
	}
}

func (r *renderer) webhookServices() error {
	serving := r.servingDeployments()
	for _, declared := range r.bundle.deployments() {
		if !serving.Has(declared.Name) {
			continue
		}
		service, err := toUnstructured(r.webhookService(declared))
		if err != nil {
			return err
		}
		r.objects.add(source{object: service, pod: &declared.Spec.Template})
	}
	return nil
}

func (r *renderer) webhookService(declared operatorsv1alpha1.StrategyDeploymentSpec) *corev1.Service {
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kindService},
		ObjectMeta: metav1.ObjectMeta{Name: webhookServiceName(declared.Name), Namespace: r.namespace},
		Spec:       corev1.ServiceSpec{Ports: r.webhookServicePorts(declared.Name)},
	}
	if declared.Spec.Selector != nil {
		service.Spec.Selector = declared.Spec.Selector.MatchLabels
	}
	if r.certificates != nil {
		annotate(&service.ObjectMeta, r.certificates.serviceAnnotations(certificateName(declared.Name)))
	}
	return service
}

// webhookServicePorts has each port once: validation saw to it that it leads to
// one place.
func (r *renderer) webhookServicePorts(deployment string) []corev1.ServicePort {
	ports := r.apiServicePorts(deployment)
	for _, webhook := range r.bundle.CSV.Spec.WebhookDefinitions {
		if webhook.DeploymentName != deployment {
			continue
		}
		number := webhookPort(webhook)
		ports = append(ports, corev1.ServicePort{
			Name:       strconv.Itoa(int(number)),
			Port:       number,
			TargetPort: webhookTargetPort(webhook),
		})
	}
	byNumber := func(a, b corev1.ServicePort) int { return cmp.Compare(a.Port, b.Port) }
	slices.SortStableFunc(ports, byNumber)
	return slices.CompactFunc(ports, func(a, b corev1.ServicePort) bool { return byNumber(a, b) == 0 })
}
