package plan

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// annotationCertificate is on every Secret that cert-manager makes, and names the
// Certificate that it is for.
const annotationCertificate = "cert-manager.io/certificate-name"

// legacies are the Secrets that Certificates of earlier revisions had made for them,
// with the names of those Certificates. Nobody deletes such a Secret: it stays when
// the Certificate goes, and even cert-manager as a whole.
func legacies(owner object.Owner, before []*unstructured.Unstructured) map[object.Key]string {
	found := map[object.Key]string{}
	for _, obj := range before {
		name := object.TextIn(obj, "spec", "secretName")
		if obj.GroupVersionKind().GroupKind() != object.CertificateKind || name == "" {
			continue
		}
		namespace := obj.GetNamespace()
		if namespace == "" {
			namespace = owner.Namespace
		}
		found[object.Key{GroupKind: object.SecretKind, Namespace: namespace, Name: name}] = obj.GetName()
	}
	return found
}

// inherits says that the live object is one that cert-manager has made for the
// extension, and that nobody needs any more but who issues certificates in its place.
func (s *Step) inherits() bool {
	if s.legacy == "" || s.Live == nil || s.Live.GetAnnotations()[annotationCertificate] != s.legacy {
		return false
	}
	controller := metav1.GetControllerOfNoCopy(s.Live)
	return controller == nil || controller.Kind == object.CertificateKind.Kind && controller.Name == s.legacy
}

// takesOver says that the live object is content that the operator of classic OLM has left which the
// extension comes after.
func (s *Step) takesOver(owner object.Owner) bool { return owner.Predecessor.Left(s.Live) }

// mayHave says that the live object is the extension's, or becomes it.
func (s *Step) mayHave(owner object.Owner) bool {
	return owner.Owns(s.Live) || s.inherits() || s.takesOver(owner)
}

// succeed takes what classic OLM has set in an object, which it may have come back to, for the revision
// before.
func (s *Step) succeed(owner object.Owner) {
	if s.before == nil && s.Live != nil && owner.Predecessor.Had(s.Live) {
		s.before = owner.Predecessor.Applied(s.Live)
	}
}

// wanted is the object as it is to be. The type of a Secret cannot be changed, and it says nothing of one that
// comes without data: classic OLM and cert-manager have types of their own for the certificates that they keep.
func (s *Step) wanted() *unstructured.Unstructured {
	if s.Key.GroupKind != object.SecretKind || s.Live == nil || s.inherits() || s.Object.Object["data"] != nil || s.Object.Object["stringData"] != nil {
		return s.Object
	}
	is, _ := s.Live.Object["type"].(string)
	if is != string(corev1.SecretTypeTLS) {
		return s.Object
	}
	kept := s.Object.DeepCopy()
	kept.Object["type"] = is
	return kept
}
