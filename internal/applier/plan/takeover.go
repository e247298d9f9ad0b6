package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// takesOver reports whether the predecessor of the extension has left the live object.
func (s *Step) takesOver(owner object.Owner) bool { return owner.Predecessor.Left(s.Live) }

// mayHave reports whether the live object belongs to the extension, or may be adopted.
func (s *Step) mayHave(owner object.Owner) bool {
	return s.ownedBy(owner) || s.inherits() || s.takesOver(owner) || s.isHelmCRD && object.IsLeftByHelm(s.Live)
}

// ownedBy reports whether the extension owns the live object. The manifests count too, because the
// annotations of Helm identify the owner of an object whose manifest was imported.
func (s *Step) ownedBy(owner object.Owner) bool {
	return owner.OwnsAs(s.Object, s.Live) || s.before != nil && owner.OwnsAs(s.before, s.Live)
}

// takeBefore sets before to the fields that an earlier owner has set in the live object. So the patch removes them if the
// bundle does not set them, and keeps fields of others. OLM v0 may still own its object: a preview runs before OLM v0
// releases it, and OLM v0 may have adopted it again.
func (s *Step) takeBefore(owner object.Owner) {
	switch {
	case s.before != nil || s.Live == nil:
	case owner.Predecessor.Had(s.Live):
		s.before = owner.Predecessor.Applied(s.Live)
	case s.adopts && !owner.Has(s.Live) && s.mayHave(owner) && !s.inherits():
		s.before = object.AppliedBefore(s.Live)
		s.leftovers = object.Leftovers(s.Live, s.Object, false)
	}
}

// keepEarlier keeps the fields that an earlier owner has set in an adopted object. It is called after the API server has
// refused the patch, which may remove an immutable field. It reports whether the patch changes by that.
func (s *Step) keepEarlier() bool {
	if !s.adopts || s.before == nil {
		return false
	}
	s.adopts, s.before = false, nil
	s.leftovers = object.Leftovers(s.Live, s.Object, true)
	return true
}

// Leftovers describes the fields that adopted objects keep although the bundle does not set them.
func (p *Plan) Leftovers() []string {
	var texts []string
	for i := range p.Steps {
		if text := p.Steps[i].leftovers; text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// wanted returns the desired object. A Secret without data is for a certificate. OLM v0 uses the type kubernetes.io/tls for
// it. The type is immutable, so wanted keeps the type of the live Secret to avoid a replacement. Secrets of cert-manager
// are replaced.
func (s *Step) wanted() *unstructured.Unstructured {
	if s.Key.GroupKind == object.ClaimKind && s.Live != nil {
		return withGrown(s.Object, s.Live)
	}
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

// withGrown returns a claim with the requested storage of the live one if that is larger: users enlarge volumes, and the API
// server does not let a claim shrink.
func withGrown(wanted, live *unstructured.Unstructured) *unstructured.Unstructured {
	requested := []string{"spec", "resources", "requests", "storage"}
	old, _, _ := unstructured.NestedString(wanted.Object, requested...)
	grown, _, _ := unstructured.NestedString(live.Object, requested...)
	less, lessErr := resource.ParseQuantity(old)
	more, moreErr := resource.ParseQuantity(grown)
	if lessErr != nil || moreErr != nil || more.Cmp(less) <= 0 {
		return wanted
	}
	kept := wanted.DeepCopy()
	if err := unstructured.SetNestedField(kept.Object, grown, requested...); err != nil {
		return wanted
	}
	return kept
}
