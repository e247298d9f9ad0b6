package bundlecheck

import (
	"cmp"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// webhooks warns about admission webhooks that can prevent the pods that serve them: if all of these are lost, the
// API server creates no other ones.
func (c *checker) webhooks(objects []*unstructured.Unstructured) {
	for _, object := range objects {
		for _, webhook := range webhooksIn(object) {
			for _, pods := range podsBehind(webhook, objects) {
				if preventsPods(webhook, pods) {
					c.warnf("", "", "%s %s: webhook %s with failurePolicy Fail is about the pods that serve it: if none is ready, no other one can be created; "+
						"exclude them by objectSelector or namespaceSelector", object.GetKind(), excerpt.Quote(object.GetName()), excerpt.Quote(webhook.Name))
					break
				}
			}
		}
	}
}

// webhooksIn returns the webhooks of a configuration; nil if it cannot be read.
func webhooksIn(object *unstructured.Unstructured) []admissionregistrationv1.MutatingWebhook {
	kind := object.GetKind()
	if kind != "MutatingWebhookConfiguration" && kind != "ValidatingWebhookConfiguration" {
		return nil
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{} // the fields of both that matter are the same
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, configuration); err != nil {
		return nil
	}
	return configuration.Webhooks
}

// podsBehind returns the labels of the pods that serve a webhook.
func podsBehind(webhook admissionregistrationv1.MutatingWebhook, objects []*unstructured.Unstructured) []labels.Set {
	called := webhook.ClientConfig.Service
	if called == nil {
		return nil
	}
	service := types.NamespacedName{Namespace: called.Namespace, Name: called.Name}
	var selected map[string]string
	for _, object := range objects {
		if object.GetKind() == "Service" && namespacedName(object) == service {
			selected, _, _ = unstructured.NestedStringMap(object.Object, "spec", "selector")
		}
	}
	if len(selected) == 0 {
		return nil
	}
	var found []labels.Set
	for _, object := range objects {
		pods, isWorkload, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
		if isWorkload && namespacedName(object).Namespace == service.Namespace && labels.SelectorFromSet(selected).Matches(labels.Set(pods)) {
			found = append(found, pods)
		}
	}
	return found
}

func namespacedName(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(object.GetNamespace(), installNamespace), Name: object.GetName()}
}

// preventsPods reports whether the API server refuses each new pod with these labels while the webhook does not answer.
// Only the name label of the namespace is known. It is false for a webhook with conditions in CEL.
func preventsPods(webhook admissionregistrationv1.MutatingWebhook, pods labels.Set) bool {
	fails := webhook.FailurePolicy == nil || *webhook.FailurePolicy == admissionregistrationv1.Fail
	return fails && len(webhook.MatchConditions) == 0 && slices.ContainsFunc(webhook.Rules, isAboutPods) &&
		selects(webhook.ObjectSelector, pods) &&
		selects(webhook.NamespaceSelector, labels.Set{corev1.LabelMetadataName: webhook.ClientConfig.Service.Namespace})
}

func isAboutPods(rule admissionregistrationv1.RuleWithOperations) bool {
	return slices.ContainsFunc(rule.Operations, func(one admissionregistrationv1.OperationType) bool {
		return one == admissionregistrationv1.Create || one == admissionregistrationv1.OperationAll
	}) && hasAny(rule.APIGroups, "", "*") && hasAny(rule.Resources, "pods", "*", "*/*")
}

func hasAny(list []string, wanted ...string) bool {
	return slices.ContainsFunc(wanted, func(one string) bool { return slices.Contains(list, one) })
}

// selects reports whether a selector matches the labels. A nil selector matches all labels.
func selects(selector *metav1.LabelSelector, set labels.Set) bool {
	if selector == nil {
		return true
	}
	read, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && read.Matches(set)
}
