package plan

import (
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
