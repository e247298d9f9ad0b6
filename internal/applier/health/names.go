package health

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// CauseOfTakenName names the CustomResourceDefinition that has a name, among the resources that an API group serves.
// It returns the zero value if none of them has the name.
func CauseOfTakenName(workload Workload, group string, resources []metav1.APIResource) Cause {
	for _, resource := range resources {
		other := object.Key{GroupKind: object.DefinitionKind, Name: resource.Name + "." + group}
		if other != workload.Key && hasName(resource, workload.TakenName) {
			return Cause{Reason: "TakenName", Text: excerpt.Line(fmt.Sprintf("%s has it", other), maxCause)}
		}
	}
	return Cause{}
}

func hasName(resource metav1.APIResource, name string) bool {
	names := append([]string{resource.Name, resource.SingularName, resource.Kind, resource.Kind + "List"}, resource.ShortNames...)
	return slices.Contains(names, name)
}
