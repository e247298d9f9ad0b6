package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// takesOver says that the live object is content that the extension's predecessor has left.
func (s *Step) takesOver(owner object.Owner) bool { return owner.Predecessor.Left(s.Live) }

// mayHave says that the live object is the extension's, or becomes it.
func (s *Step) mayHave(owner object.Owner) bool {
	return s.ownedBy(owner) || s.inherits() || s.takesOver(owner) || s.isHelmCRD && object.IsLeftByHelm(s.Live)
}

// ownedBy reports whether the extension owns the live object. The manifests count too, because the
// annotations of Helm identify the owner of an object whose manifest was imported.
func (s *Step) ownedBy(owner object.Owner) bool {
	return owner.OwnsAs(s.Object, s.Live) || s.before != nil && owner.OwnsAs(s.before, s.Live)
}

// takeBefore uses what an earlier owner has set in an object as the revision before, so that fields that the bundle does
// not set are removed, and fields of others are kept. Classic OLM need not have left its object: a preview is asked for
// before it does, and classic OLM may have come back to it.
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

// keepEarlier keeps what an earlier owner has set in an adopted object: the API server may refuse to remove a field that
// cannot be changed. It reports whether the patch is another one then.
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

// wanted is the object as it is to be. A Secret without data is for a certificate. Classic OLM keeps one in a
// Secret of type kubernetes.io/tls, and a type cannot be changed: it stays, so that the object need
// not be replaced. What cert-manager has left is replaced.
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
