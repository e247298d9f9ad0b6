package object

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Holder is to whom an object belongs, as far as it tells. The zero value is nobody.
type Holder struct {
	// Kind and Name are those of the controller of the object, or of who has put
	// its marks on it. Namespace is empty where it does not matter.
	Kind, Namespace, Name string

	// Deleted says that the object is on its way out, and waits for Finalizers.
	Deleted    bool
	Finalizers []string

	// Waits names the objects that the deletion of a CRD waits for, and the commands. It is empty for other objects.
	Waits string

	// Kept is set if the object has the annotation of [IsKept] and no owner reference. The garbage collector
	// does not delete it with an extension. Helm ignores the annotation of the live object.
	Kept bool

	// Managers are the field managers that wrote the object, sorted.
	Managers []string
}

// Kinds of holders that are told by marks.
const (
	kindRelease        = "Helm release"
	kindOrphaned       = "nobody since the deletion of ClusterExtension"
	kindServiceVersion = "ClusterServiceVersion"
	kindOperator       = "Operator"

	// kindAPIServer has no name: it registers what it serves itself.
	kindAPIServer = "the API server"
)

const (
	// maxName is more than nearly all names have, in bytes: in annotations they can
	// be as long as one likes.
	maxName = 64
)

// HolderOf reads the owner that controls an object, then the marks of Helm and of
// OLM, and who wrote it in any case.
func HolderOf(live *unstructured.Unstructured) Holder {
	holder := Holder{
		Managers: managersOf(live), Deleted: live.GetDeletionTimestamp() != nil, Finalizers: live.GetFinalizers(),
		Kept: IsKept(live) && len(live.GetOwnerReferences()) == 0,
	}
	if holder.Deleted {
		holder.Waits = deletionOf(live)
	}
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	controller := metav1.GetControllerOfNoCopy(live)
	switch {
	case controller != nil:
		holder.Kind, holder.Name = controller.Kind, controller.Name
		if holder.Kind != OwnerKind {
			holder.Namespace = live.GetNamespace()
		}
	case live.GroupVersionKind().GroupKind() == APIServiceKind && !HasServer(live):
		holder.Kind = kindAPIServer
	case labels[LabelOwnerKind] == OwnerKind && labels[LabelOwnerName] != "" && holder.Kept:
		holder.Kind, holder.Name = OwnerKind, labels[LabelOwnerName]
	case labels[LabelOwnerKind] == OwnerKind && labels[LabelOwnerName] != "":
		holder.Kind, holder.Name = kindOrphaned, labels[LabelOwnerName]
	case annotations[annotationReleaseName] != "":
		holder.Kind, holder.Name = kindRelease, annotations[annotationReleaseName]
		holder.Namespace = annotations[annotationReleaseNamespace]
	case labels[LabelClassicOwnerKind] == kindServiceVersion:
		holder.Kind, holder.Name = kindServiceVersion, labels[LabelClassicOwner]
		holder.Namespace = labels[LabelClassicOwnerNamespace]
	default:
		holder.Kind, holder.Namespace, holder.Name = classicHolderOf(live)
	}
	return holder
}

// classicHolderOf reads what classic OLM says on objects that do not name their ClusterServiceVersion
// in labels: who owns them, or else the first Operator that they are components of.
func classicHolderOf(live *unstructured.Unstructured) (kind, namespace, name string) {
	owners := live.GetOwnerReferences()
	if at := slices.IndexFunc(owners, isServiceVersion); at >= 0 {
		return kindServiceVersion, live.GetNamespace(), owners[at].Name
	}
	for _, label := range slices.Sorted(maps.Keys(live.GetLabels())) {
		if name, isComponent := strings.CutPrefix(label, PrefixClassicComponent); isComponent {
			return kindOperator, "", name
		}
	}
	return "", "", ""
}

// String names the holder for people.
func (h Holder) String() string {
	name := excerpt.Line(h.Name, maxName)
	switch {
	case h.Kind == kindAPIServer:
		return kindAPIServer + " itself"
	case h.Kind != "" && h.Namespace != "":
		return fmt.Sprintf("%s %q in namespace %q", h.Kind, name, h.Namespace)
	case h.Kind != "":
		return fmt.Sprintf("%s %q", h.Kind, name)
	case len(h.Managers) > 0:
		return fmt.Sprintf("nobody that it names (written by %s)", NameManagers(h.Managers))
	}
	return "nobody that it names"
}

// wayOut returns what the user can do so that claimant gets the object. Ways that keep the object
// come first, and a way that deletes it names what is deleted with it: with a definition, these
// are all custom resources of its kind.
func (h Holder) wayOut(claimant Owner, isDefinition bool) string {
	const loss = "; to delete it would delete all custom resources of its kind"
	switch h.Kind {
	case OwnerKind, kindOrphaned:
		if text := h.waitsFor(claimant); text != "" {
			return text
		}
		switch {
		case h.Kept:
			return "hand the object over: " + marksOf(claimant) + "; deleting the other extension does not delete it"
		case h.Kind == kindOrphaned && isDefinition:
			return "make that extension again, which takes it over, or hand it over: " + marksOf(claimant) + loss
		case h.Kind == kindOrphaned:
			return "make that extension again, which takes it over, or delete the object with its data"
		}
		return KeepOne(h.Name)
	case kindRelease:
		lost := "all its objects"
		if isDefinition {
			lost += " and all custom resources of its CRDs"
		}
		return fmt.Sprintf("hand the object over: %s; or uninstall the release, which deletes %s: `helm uninstall %s -n %s`",
			marksOf(claimant), lost, argument(h.Name, "RELEASE"), argument(h.Namespace, "NAMESPACE"))
	case kindServiceVersion, kindOperator:
		return "move the operator with `kubectl extension migrate`, which keeps its custom resources"
	case kindAPIServer:
		return "the API is a part of the cluster, or of a CustomResourceDefinition: delete the definitions of that group and version, if there are any" +
			", which deletes all their custom resources"
	case "":
		if isDefinition {
			return "hand it over: " + marksOf(claimant) + loss
		}
		return "hand it over: " + marksOf(claimant) + "; or delete the object with its data"
	}
	return "delete that owner, which also deletes all objects that it owns"
}

// KeepOne returns what the user can do about two extensions of the same objects, which now belong
// to the one named extension.
func KeepOne(extension string) string {
	return fmt.Sprintf("keep one of the two extensions; deleting %q would delete its CRDs with all custom resources: check `kubectl extension plan %s --delete` first",
		excerpt.Line(extension, maxName), argument(extension, "NAME"))
}

// argument returns a name for a command that the user runs in a shell, or a placeholder if the name
// is invalid or longer than maxName. The owner of an object can write any text as the name of its holder.
func argument(name, placeholder string) string {
	if len(name) > maxName || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return placeholder
	}
	return name
}

// waitsFor is for what still belongs to an earlier extension of the same name.
func (h Holder) waitsFor(claimant Owner) string {
	switch {
	case h.Waits != "":
		return h.Waits
	case h.Deleted && len(h.Finalizers) > 0:
		return fmt.Sprintf("it is being deleted, and waits for finalizers [%s]: `kubectl describe` says more; it goes on by itself then",
			excerpt.Of(h.Finalizers, maxListed))
	case h.Deleted:
		return "it is being deleted; it goes on by itself then"
	case h.Kind == OwnerKind && h.Name == claimant.Name && !h.Kept:
		return "it goes with the extension that had the name before; it goes on by itself then"
	}
	return ""
}

// marksOf is what makes an object that nobody controls one of the extension, see
// [Owner.Owns].
func marksOf(claimant Owner) string {
	return fmt.Sprintf("label it %s=%s and annotate it %s=%s %s=%s", LabelOwnerName, claimant.Name,
		annotationReleaseName, ReleaseName(claimant.Name), annotationReleaseNamespace, claimant.Namespace)
}
