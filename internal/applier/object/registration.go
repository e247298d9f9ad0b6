package object

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// APIServiceKind is the kind of API services, and ServiceKind the kind of Services.
var (
	APIServiceKind = schema.GroupKind{Group: apiregistrationv1.GroupName, Kind: "APIService"}
	ServiceKind    = schema.GroupKind{Kind: "Service"}
)

// serverKinds are the kinds whose pods a Service may select, and whose status shows whether a pod is ready.
var serverKinds = []schema.GroupKind{
	{Group: appsv1.GroupName, Kind: "Deployment"},
	{Group: appsv1.GroupName, Kind: "StatefulSet"},
	{Group: appsv1.GroupName, Kind: "DaemonSet"},
}

// ServersOf returns the workloads that serve a caller, sorted: those among the objects of a release whose
// pods its Services select. There are none if something else serves it. If the Service of an API service is
// not among the objects, it returns the Service. Other callers do not wait for Services of other extensions.
func ServersOf(caller *unstructured.Unstructured, items []Item) []Key {
	var servers []Key
	for _, at := range CalledServices(caller) {
		service := slices.IndexFunc(items, func(item Item) bool { return item.Key == at })
		switch {
		case service >= 0:
			servers = append(servers, selectedBy(items[service], items)...)
		case caller.GetKind() == APIServiceKind.Kind:
			servers = append(servers, at)
		}
	}
	slices.SortFunc(servers, Key.Compare)
	return slices.Compact(servers)
}

// selectedBy returns the workloads whose pods a Service selects.
func selectedBy(service Item, items []Item) []Key {
	selected, _, _ := unstructured.NestedStringMap(service.Object.Object, "spec", "selector")
	if len(selected) == 0 {
		return nil
	}
	selector := labels.SelectorFromSet(selected)
	var servers []Key
	for _, item := range items {
		if !slices.Contains(serverKinds, item.Key.GroupKind) || item.Key.Namespace != service.Key.Namespace {
			continue
		}
		pods, _, _ := unstructured.NestedStringMap(item.Object.Object, "spec", "template", "metadata", "labels")
		if selector.Matches(labels.Set(pods)) {
			servers = append(servers, item.Key)
		}
	}
	return servers
}

// CalledServices returns the Services that the API server calls because of a caller: an API service, a webhook
// configuration or a CRD with a conversion webhook. There are none for other objects and for URLs.
func CalledServices(caller *unstructured.Unstructured) []Key {
	var references []any
	switch caller.GetKind() {
	case APIServiceKind.Kind:
		references = append(references, valueIn(caller.Object, "spec", "service"))
	case DefinitionKind.Kind:
		references = append(references, valueIn(caller.Object, "spec", "conversion", "webhook", "clientConfig", "service"))
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		webhooks, _ := caller.Object["webhooks"].([]any)
		for _, webhook := range webhooks {
			fields, _ := webhook.(map[string]any)
			references = append(references, valueIn(fields, "clientConfig", "service"))
		}
	}
	var services []Key
	for _, reference := range references {
		service, _ := reference.(map[string]any)
		namespace, _ := service["namespace"].(string)
		if name, _ := service["name"].(string); name != "" {
			services = append(services, Key{GroupKind: ServiceKind, Namespace: namespace, Name: name})
		}
	}
	return services
}

// valueIn returns the value of a field; nil if it does not exist.
func valueIn(content map[string]any, fields ...string) any {
	found, _, _ := unstructured.NestedFieldNoCopy(content, fields...)
	return found
}

// IsWebhookConfiguration reports whether the objects of a kind are configurations of admission webhooks.
func IsWebhookConfiguration(kind schema.GroupKind) bool {
	return kind.Group == admissionregistrationv1.GroupName &&
		(kind.Kind == "ValidatingWebhookConfiguration" || kind.Kind == "MutatingWebhookConfiguration")
}

// LeadsElsewhere reports whether two API services of the same name send requests to different Services, or to
// different ports.
func LeadsElsewhere(registration, than *unstructured.Unstructured) bool {
	return !slices.Equal(CalledServices(registration), CalledServices(than)) || servicePort(registration) != servicePort(than)
}

// servicePort is the port of the Service, as the API server fills it in.
func servicePort(registration *unstructured.Unstructured) string {
	port, found, _ := unstructured.NestedFieldNoCopy(registration.Object, "spec", "service", "port")
	if !found || port == nil {
		return "443"
	}
	return fmt.Sprint(port) // it is a number of one type or the other
}
