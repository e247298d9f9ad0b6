package bundle

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (v *validator) webhooks() {
	seen := sets.New[string]()
	for i, webhook := range v.bundle.CSV.Spec.WebhookDefinitions {
		path := fmt.Sprintf("%s[%d]", pathWebhooks, i)
		name := webhookName(webhook)
		if !v.hasDeployment(webhook.DeploymentName) {
			v.csv(path+".deploymentName", "webhook %q of type %q references non-existent deployment %q", name, webhook.Type, webhook.DeploymentName)
		}
		if id := string(webhook.Type) + "/" + name; seen.Has(id) {
			v.csv(path+".generateName", "duplicate webhook %q of type %q", name, webhook.Type)
		} else {
			seen.Insert(id)
		}
		v.webhookType(path, webhook)
	}
}

func (v *validator) webhookType(path string, webhook operatorsv1alpha1.WebhookDescription) {
	name := webhookName(webhook)
	switch webhook.Type {
	case operatorsv1alpha1.ConversionWebhook:
		if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
			v.csv(path+".generateName", "webhook of type %q has invalid name %q: %s", webhook.Type, name, strings.Join(reasons, ", "))
		}
	case operatorsv1alpha1.ValidatingAdmissionWebhook, operatorsv1alpha1.MutatingAdmissionWebhook:
		// The API server wants the names of admission webhooks fully qualified.
		for _, reason := range validation.IsFullyQualifiedName(field.NewPath("generateName"), name) {
			v.csv(path+".generateName", "webhook of type %q has invalid name %q: %s", webhook.Type, name, reason.ErrorBody())
		}
		v.webhookRules(path, webhook)
	default:
		v.csv(path+".type", "webhook %q has unknown type %q", name, webhook.Type)
	}
}

// webhookRules keeps an operator from intercepting the API that installed it,
// that of classic OLM, and the one that configures webhooks.
func (v *validator) webhookRules(path string, webhook operatorsv1alpha1.WebhookDescription) {
	for i, rule := range webhook.Rules {
		path := fmt.Sprintf("%s.rules[%d]", path, i)
		for _, group := range rule.APIGroups {
			switch group {
			case "*", "olm.operatorframework.io", operatorsv1alpha1.GroupName:
				v.csv(path, "webhook %q contains forbidden rule: cannot reference API group %q", webhookName(webhook), group)
			case admissionregistrationv1.GroupName:
				v.webhookConfigurationRules(path, webhook, rule)
			}
		}
	}
}

func (v *validator) webhookConfigurationRules(path string, webhook operatorsv1alpha1.WebhookDescription, rule admissionregistrationv1.RuleWithOperations) {
	for _, resource := range rule.Resources {
		switch strings.ToLower(resource) {
		case "*", "mutatingwebhookconfiguration", "mutatingwebhookconfigurations",
			"validatingwebhookconfiguration", "validatingwebhookconfigurations":
			v.csv(path, "webhook %q contains forbidden rule: cannot reference resource %q for API group %q",
				webhookName(webhook), resource, admissionregistrationv1.GroupName)
		}
	}
}

// webhookPorts finds webhooks of one deployment that want the same port of
// their common Service to lead to different places.
func (v *validator) webhookPorts() {
	type port struct {
		deployment string
		number     int32
	}
	targets := map[port]intstr.IntOrString{}
	for i, webhook := range v.bundle.CSV.Spec.WebhookDefinitions {
		key := port{deployment: webhook.DeploymentName, number: webhookPort(webhook)}
		path := fmt.Sprintf("%s[%d]", pathWebhooks, i)
		if reasons := validation.IsValidPortNum(int(key.number)); len(reasons) > 0 {
			v.csv(path+".containerPort", "webhook %q has invalid port %d: %s", webhookName(webhook), key.number, strings.Join(reasons, ", "))
		}
		target := webhookTargetPort(webhook)
		if first, taken := targets[key]; taken && first != target {
			v.csv(path+".targetPort", "webhook %q wants port %d of deployment %q to lead to %s, another webhook to %s",
				webhookName(webhook), key.number, key.deployment, target.String(), first.String())
			continue
		}
		targets[key] = target
	}
}

func (v *validator) conversionWebhooks() {
	owned := sets.New[string]()
	for _, crd := range v.bundle.CSV.Spec.CustomResourceDefinitions.Owned {
		owned.Insert(crd.Name)
	}
	unpruned := sets.New[string]()
	for i := range v.bundle.CRDs {
		if v.bundle.CRDs[i].Spec.PreserveUnknownFields {
			unpruned.Insert(v.bundle.CRDs[i].Name)
		}
	}
	modes := v.supportedModes()
	claims := map[string]string{}
	for i, webhook := range v.bundle.CSV.Spec.WebhookDefinitions {
		if webhook.Type != operatorsv1alpha1.ConversionWebhook {
			continue
		}
		path := fmt.Sprintf("%s[%d]", pathWebhooks, i)
		v.conversionModes(path, webhook, modes)
		for j, crd := range webhook.ConversionCRDs {
			path := fmt.Sprintf("%s.conversionCRDs[%d]", path, j)
			if !owned.Has(crd) {
				v.csv(path, "conversion webhook %q references CRD %q not owned by the bundle", webhookName(webhook), crd)
			}
			if first, claimed := claims[crd]; claimed {
				v.csv(path, "conversion webhooks %q and %q reference the same CRD %q", first, webhookName(webhook), crd)
			}
			claims[crd] = webhookName(webhook)
			if unpruned.Has(crd) {
				v.add(v.bundle.files[crdKey(crd)], "spec.preserveUnknownFields",
					"must be false for CRD %q to be converted by webhook %q", crd, webhookName(webhook))
			}
		}
	}
}

// supportedModes are those that the bundle declares, sorted, known or not.
func (v *validator) supportedModes() []string {
	var modes []string
	for _, mode := range v.bundle.CSV.Spec.InstallModes {
		if mode.Supported {
			modes = append(modes, string(mode.Type))
		}
	}
	slices.Sort(modes)
	return slices.Compact(modes)
}

// conversionModes: a CRD is converted for the whole cluster, by one operator.
func (v *validator) conversionModes(path string, webhook operatorsv1alpha1.WebhookDescription, modes []string) {
	const listed = 8 // there are four
	if all := string(operatorsv1alpha1.InstallModeTypeAllNamespaces); !slices.Equal(modes, []string{all}) {
		v.csv(path, "bundle contains conversion webhook %q and supports install modes %v; only bundles that support nothing but %s may have one",
			webhookName(webhook), modes[:min(len(modes), listed)], all)
	}
}
