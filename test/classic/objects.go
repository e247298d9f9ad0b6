package classic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Name is what an object is called.
type Name struct {
	schema.GroupVersionResource

	Namespace, Name string
}

func (n Name) String() string {
	return strings.TrimPrefix(fmt.Sprintf("%s/%s in %q", n.GroupResource(), n.Name, n.Namespace), "/")
}

// Objects are those of a cluster at some time.
type Objects map[Name]metav1.ObjectMeta

// fleeting are resources whose objects come and go without anybody who installs something.
var fleeting = []schema.GroupResource{
	{Resource: "pods"},
	{Resource: "events"},
	{Resource: "endpoints"},
	{Resource: "nodes"},
	{Group: "events.k8s.io", Resource: "events"},
	{Group: "apps", Resource: "replicasets"},
	{Group: "discovery.k8s.io", Resource: "endpointslices"},
	{Group: "coordination.k8s.io", Resource: "leases"},
	{Group: "networking.k8s.io", Resource: "ipaddresses"},
	{Group: "apps", Resource: "controllerrevisions"},
}

// ReadObjects reads what there is of every kind, by its preferred version, but for what comes
// and goes by itself.
func ReadObjects(ctx context.Context, config *rest.Config) (Objects, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	reader, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	// What is being registered or removed is not served, and has no objects.
	lists, err := served.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	found := Objects{}
	for _, resource := range listable(lists) {
		objects, err := reader.Resource(resource).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		for i := range objects.Items {
			one := objects.Items[i].ObjectMeta
			found[Name{GroupVersionResource: resource, Namespace: one.Namespace, Name: one.Name}] = one
		}
	}
	return found, nil
}

func listable(lists []*metav1.APIResourceList) []schema.GroupVersionResource {
	var found []schema.GroupVersionResource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			one := &list.APIResources[i]
			resource := version.WithResource(one.Name)
			isKept := slices.Contains(one.Verbs, "list") && slices.Contains(one.Verbs, "delete")
			if isKept && !slices.Contains(fleeting, resource.GroupResource()) {
				found = append(found, resource)
			}
		}
	}
	return found
}

// Since are the objects that were not there at an earlier time.
func (o Objects) Since(before Objects) Objects {
	added := maps.Clone(o)
	maps.DeleteFunc(added, func(name Name, _ metav1.ObjectMeta) bool {
		_, wasThere := before[name]
		return wasThere
	})
	return added
}

// Moved is an error unless a move from an earlier time to this one was in place: what was there
// is there, with its UID, unless a move replaces or drops it by design, and has no marks of
// classic OLM.
func (o Objects) Moved(before Objects) error {
	var errs []error
	for name, was := range before {
		is, isThere := o[name]
		switch {
		case IsDropped(name, was):
		case !isThere:
			errs = append(errs, fmt.Errorf("%s is gone", name))
		case is.UID != was.UID:
			errs = append(errs, fmt.Errorf("%s is another one", name))
		}
		if marks := marksOf(is); isThere && len(marks) > 0 && !isOfGroup(name, was) && !isOfCondition(was) {
			errs = append(errs, fmt.Errorf("%s has the marks %v of classic OLM", name, marks))
		}
	}
	return errors.Join(errs...)
}

// IsDropped says that a move is meant to delete an object that classic OLM has made: that by which
// it manages the operator, and what it has made under a name of its own choice, of which the
// extension has another one: roles and bindings with rights of the bundle, and webhook
// configurations. What came with the bundle is never among them.
func IsDropped(name Name, object metav1.ObjectMeta) bool {
	switch name.Group {
	case "operators.coreos.com":
		return slices.Contains([]string{"subscriptions", "clusterserviceversions", "installplans", "operators"}, name.Resource)
	case "admissionregistration.k8s.io":
		return object.Labels["olm.webhook-description-generate-name"] != ""
	case "rbac.authorization.k8s.io":
		return object.Labels["olm.permissions.hash"] != "" || isOfCondition(object) || isOfServing(name, object)
	default:
		return false
	}
}

func isOfCondition(object metav1.ObjectMeta) bool {
	return slices.ContainsFunc(object.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "OperatorCondition" })
}

// isOfServing knows what classic OLM gives to operators that the API server calls, which no
// bundle names.
func isOfServing(name Name, object metav1.ObjectMeta) bool {
	return object.Labels["olm.managed"] != "" && slices.ContainsFunc(
		[]string{"-service-cert", "-service-auth-reader", "-service-system:auth-delegator"},
		func(end string) bool { return strings.HasSuffix(name.Name, end) })
}

// isOfGroup knows what belongs to an OperatorGroup, which stays as it is: its roles, and the
// ServiceAccount that it names.
func isOfGroup(name Name, object metav1.ObjectMeta) bool {
	isRole := name.Group == "rbac.authorization.k8s.io" && strings.HasPrefix(name.Name, "olm.og.")
	isAccount := name.Resource == "serviceaccounts" && slices.ContainsFunc(object.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == "operator-lifecycle-manager"
	})
	return isRole || isAccount
}

// marksOf are the labels and owners by which classic OLM knows an object.
func marksOf(object metav1.ObjectMeta) []string {
	var marks []string
	for label := range object.Labels {
		isMark := slices.Contains([]string{"olm.managed", "olm.owner", "olm.owner.kind", "olm.owner.namespace", "olm.permissions.hash", "olm.deployment-spec-hash"}, label)
		if isMark || strings.HasPrefix(label, "operators.coreos.com/") {
			marks = append(marks, label)
		}
	}
	for _, owner := range object.OwnerReferences {
		if strings.HasPrefix(owner.APIVersion, "operators.coreos.com/") {
			marks = append(marks, "owner "+owner.Kind+" "+owner.Name)
		}
	}
	slices.Sort(marks)
	return marks
}
