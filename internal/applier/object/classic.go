package object

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Marks of classic OLM that tell whose an object is. Its names are on clusters: nothing here may
// change.
const (
	// ClassicGroup has the kinds by which classic OLM is told what to do.
	ClassicGroup = "operators.coreos.com"

	// LabelClassicManaged is on what classic OLM has made, for whichever operator.
	LabelClassicManaged = "olm.managed"

	// The labels of an owner name the ClusterServiceVersion that brought the object. What an
	// InstallPlan has made has the first of them alone.
	LabelClassicOwner          = "olm.owner"
	LabelClassicOwnerNamespace = "olm.owner.namespace"
	LabelClassicOwnerKind      = "olm.owner.kind"

	// PrefixClassicComponent begins the label of all components of an operator, see
	// [Predecessor.ComponentLabel].
	PrefixClassicComponent = ClassicGroup + "/"

	// maxClassicComponent is how much follows the prefix in the label of a component, in bytes.
	maxClassicComponent = 63
)

// isServiceVersion says that an owner is a ClusterServiceVersion.
func isServiceVersion(owner metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return owner.Kind == kindServiceVersion && group == ClassicGroup
}
