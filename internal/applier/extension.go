package applier

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Extension is the owner of a release: whose objects they are, where they go
// and as whom they are written.
type Extension struct {
	Name string
	UID  types.UID

	// Namespace is that of the release and of its ServiceAccount.
	Namespace string

	// ServiceAccount is the name of the identity that touches the content.
	ServiceAccount string

	// Package is what the extension installs. Records of an earlier extension of the
	// same name are taken over only if they are of the same package.
	Package string

	// Replaceable are the kinds whose objects may be deleted and created again when a
	// field of them cannot be changed.
	Replaceable []schema.GroupKind
}

// controls says whether the extension is the controller of an object by its owner
// references.
func (e Extension) controls(object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID == e.UID
}

// isOfEarlier says that an earlier extension of the same name controls an object.
func (e Extension) isOfEarlier(object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.Kind == ownerKind && controller.Name == e.Name && controller.UID != e.UID
}

func (e Extension) account() types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: e.ServiceAccount}
}

func (e Extension) reference() *metav1.OwnerReference {
	yes := true
	return &metav1.OwnerReference{
		APIVersion:         ownerGroupVersion.String(),
		Kind:               ownerKind,
		Name:               e.Name,
		UID:                e.UID,
		Controller:         &yes,
		BlockOwnerDeletion: &yes,
	}
}

// owns reports whether an object has the extension as its owner.
func (e Extension) owns(object metav1.Object) bool {
	return len(e.without(object)) < len(object.GetOwnerReferences())
}

// without are the owner references of an object less those to the extension.
func (e Extension) without(object metav1.Object) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()), func(owner metav1.OwnerReference) bool {
		return owner.UID == e.UID
	})
}

// Revision is what one revision of a release was made from.
type Revision struct {
	Bundle bundle.Identity

	// Image is the reference of the bundle image as the catalog has it.
	Image string

	// Digest is what Image stood for when it was pulled. Empty when that is not
	// known, as in records of the reference implementation.
	Digest string

	// Inputs is a digest over everything besides the bundle that shapes the
	// objects, such as the user's configuration. Empty in records of the
	// reference implementation, which knows no such thing.
	Inputs string
}

// maxReleaseName is what Helm allows for the name of a release.
const maxReleaseName = 53

// releaseName is the extension's name wherever Helm takes it, as in the
// reference implementation; longer names are cut and told apart by a digest. What
// comes of that can be the name of another extension, so nothing is found by it
// without asking whose it is: see [recordName].
func releaseName(extension string) string { return bounded(extension, maxReleaseName) }

// recordName is the extension's name in names and labels of its release records. A
// name that Helm does not take becomes one that is too long for Helm as well: no
// other extension has its records there.
func recordName(extension string) string {
	if len(extension) <= maxReleaseName {
		return extension
	}
	sum := sha256.Sum256([]byte(extension))
	suffix := "-" + hex.EncodeToString(sum[:16])
	// In the name of a Secret, no character but a letter or a digit follows a dot.
	return strings.TrimRight(extension[:maxLabelValue-len(suffix)], ".") + suffix
}

// recordNames are those under which an extension may have records. The first is that
// of new ones; records of long names were called like their releases once.
func recordNames(extension string) []string {
	if len(extension) <= maxReleaseName {
		return []string{extension}
	}
	return []string{recordName(extension), releaseName(extension)}
}

// isShared says that records of two extensions may be called so: one of that name, and
// one whose name was cut to it.
func isShared(recordName string) bool { return len(recordName) == maxReleaseName }

// bounded shortens a name to at most limit characters, keeping it unique.
func bounded(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:])[:16]
	return name[:limit-len(suffix)] + suffix
}
