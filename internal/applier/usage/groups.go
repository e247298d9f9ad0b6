package usage

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// registrations are the API services of the cluster.
var registrations = apiregistrationv1.SchemeGroupVersion.WithResource("apiservices")

// GroupConflicts are those of API services that an extension is to register with groups that the
// cluster or others serve. It makes no request if there are none to register.
func GroupConflicts(ctx context.Context, client metadata.Interface, owner object.Owner, wanted []object.Key) ([]object.Conflict, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	groups := sets.New[string]()
	for _, key := range wanted {
		groups.Insert(object.GroupOf(key.Name))
	}
	var registered []metav1.PartialObjectMetadata
	if err := EachOf(ctx, client, registrations, func(found *metav1.PartialObjectMetadata) {
		if groups.Has(object.GroupOf(found.Name)) {
			registered = append(registered, *found)
		}
	}); err != nil {
		return nil, err
	}
	none := func(string) bool { return false }
	if len(object.GroupConflicts(owner, wanted, registered, none)) == 0 {
		return nil, nil
	}
	owned, foreign := sets.New[string](), sets.New[string]()
	if err := EachOf(ctx, client, DefinitionResource, func(found *metav1.PartialObjectMetadata) {
		_, group, _ := strings.Cut(found.Name, ".")
		switch {
		case !groups.Has(group):
		case owner.Has(found):
			owned.Insert(group)
		default:
			foreign.Insert(group)
		}
	}); err != nil {
		return nil, err
	}
	return object.GroupConflicts(owner, wanted, registered, owned.Difference(foreign).Has), nil
}
