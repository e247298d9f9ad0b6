package object

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Owner is the ClusterExtension that owns a release: whose objects they are, where they go
// and as whom they are written.
type Owner struct {
	Name string
	UID  types.UID

	// Namespace is that of the release and of its ServiceAccount.
	Namespace string

	// ServiceAccount is the name of the identity that touches the content.
	ServiceAccount string

	// Package is what the extension installs. Records of an earlier extension of the
	// same name are taken over only if they are of the same package. It is empty while it is
	// not known yet, of an image that a spec names: then only those of Image are.
	Package, Image string

	// Held says that the extension is being deleted, and that its content is looked after
	// until its uninstall policy lets it go.
	Held bool

	// HeldBy is the generation of the spec that says so; zero for any. What was decided by
	// an older one may not be wanted any more.
	HeldBy int64

	// Predecessor is the operator of classic OLM that the extension comes after, if its annotation
	// says so. Whoever applies a bundle gives it its ServiceVersion: a repair takes nothing over.
	Predecessor Predecessor

	// Adopts is the name of an extension that was deleted without its content, which this one adopts; empty for
	// none. No extension of that name may exist.
	Adopts string

	// Imported is set if the extension was made from a release of Helm. Its record may have been
	// written after this process has listed the records of all extensions.
	Imported bool

	// Doubtful is set if the status of the extension reports that not all of its objects are available. A process that
	// has just started then reads the status of those whose watches do not report it.
	Doubtful bool

	// Replaceable are the kinds whose objects may be deleted and created again when a
	// field of them cannot be changed.
	Replaceable []schema.GroupKind
}

// Controls says whether the extension is the controller of an object by its owner
// references.
func (o Owner) Controls(object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID == o.UID
}

// IsOfEarlier says that an earlier extension of the same name controls an object.
func (o Owner) IsOfEarlier(object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.Kind == OwnerKind && controller.Name == o.Name && controller.UID != o.UID
}

// Account is the ServiceAccount that touches the content.
func (o Owner) Account() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.ServiceAccount}
}

// Reference makes the extension the controller of an object.
func (o Owner) Reference() *metav1.OwnerReference {
	yes := true
	return &metav1.OwnerReference{
		APIVersion:         ownerGroupVersion.String(),
		Kind:               OwnerKind,
		Name:               o.Name,
		UID:                o.UID,
		Controller:         &yes,
		BlockOwnerDeletion: &yes,
	}
}

// IsOwnerOf reports whether an object has the extension as one of its owners.
func (o Owner) IsOwnerOf(object metav1.Object) bool {
	return len(o.OtherReferences(object)) < len(object.GetOwnerReferences())
}

// SharesWithOthers reports whether an object has other owners besides the extension, so that it
// stays when that goes, as long as they are there.
func (o Owner) SharesWithOthers(object metav1.Object) bool {
	return o.IsOwnerOf(object) && len(o.OtherReferences(object)) > 0
}

// OtherReferences are the owner references of an object less those to the extension.
func (o Owner) OtherReferences(object metav1.Object) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()), func(owner metav1.OwnerReference) bool {
		return owner.UID == o.UID
	})
}

// MaxReleaseName is what Helm allows for the name of a release.
const MaxReleaseName = 53

// ReleaseName is the extension's name wherever Helm takes it, as in the
// reference implementation; longer names are cut and told apart by a digest. What
// comes of that can be the name of another extension, so nothing is found by it
// without asking whose it is: package release.
func ReleaseName(extension string) string { return Shortened(extension, MaxReleaseName) }

// Shortened shortens a name to at most limit characters, keeping it unique.
func Shortened(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:])[:16]
	return name[:limit-len(suffix)] + suffix
}
