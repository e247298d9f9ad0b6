package object

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Kinds that register an API with the cluster, lead to what serves it, and serve it.
var (
	APIServiceKind = schema.GroupKind{Group: apiregistrationv1.GroupName, Kind: "APIService"}
	FrontKind      = schema.GroupKind{Kind: "Service"}

	serverKind = schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}
)

// ServersOf gives what serves the API of an API service, sorted: the Deployments among the
// objects of a release whose pods its Service selects. There are none where something else
// serves it. If its Service is not among the objects, it gives the Service.
func ServersOf(registration *unstructured.Unstructured, items []Item) []Key {
	at := FrontOf(registration)
	service := slices.IndexFunc(items, func(item Item) bool { return item.Key == at })
	if service < 0 {
		return []Key{at}
	}
	selected, _, _ := unstructured.NestedStringMap(items[service].Object.Object, "spec", "selector")
	if len(selected) == 0 {
		return nil
	}
	selector := labels.SelectorFromSet(selected)
	var servers []Key
	for _, item := range items {
		if item.Key.GroupKind != serverKind || item.Key.Namespace != at.Namespace {
			continue
		}
		pods, _, _ := unstructured.NestedStringMap(item.Object.Object, "spec", "template", "metadata", "labels")
		if selector.Matches(labels.Set(pods)) {
			servers = append(servers, item.Key)
		}
	}
	slices.SortFunc(servers, Key.Compare)
	return servers
}

// FrontOf is the Service to which an API service leads.
func FrontOf(registration *unstructured.Unstructured) Key {
	return Key{
		GroupKind: FrontKind,
		Namespace: TextIn(registration, "spec", "service", "namespace"),
		Name:      TextIn(registration, "spec", "service", "name"),
	}
}

// LeadsElsewhere says that an API service sends requests to another Service, or to another port
// of it, than a second one of the same name does.
func LeadsElsewhere(registration, than *unstructured.Unstructured) bool {
	return FrontOf(registration) != FrontOf(than) || frontPort(registration) != frontPort(than)
}

// frontPort is the port of the Service, as the API server fills it in.
func frontPort(registration *unstructured.Unstructured) string {
	port, found, _ := unstructured.NestedFieldNoCopy(registration.Object, "spec", "service", "port")
	if !found || port == nil {
		return "443"
	}
	return fmt.Sprint(port) // it is a number of one type or the other
}

// HasServer says that an API service is of an API that a server in the cluster serves, and
// not the API server itself.
func HasServer(registration *unstructured.Unstructured) bool {
	return TextIn(registration, "spec", "service", "name") != ""
}
