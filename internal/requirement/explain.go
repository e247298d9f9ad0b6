package requirement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxCandidates bounds the packages and the APIs of one [Unmet].
const maxCandidates = 32

// finding is why a term is not met; zero if it is, or if that is not known.
type finding struct {
	unmet    bool
	text     string
	packages []PackageRange
	apis     []API
}

func (c *Checker) unmet(i *item) Unmet {
	message := excerpt.Fold(i.term.message)
	found := c.explain(&i.term, message == "")
	text := i.verb + found.text
	if message != "" {
		text = fmt.Sprintf("%s (%s)", excerpt.Cut(message, maxMessage), found.text)
	}
	slices.SortFunc(found.packages, func(a, b PackageRange) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Range, b.Range))
	})
	slices.SortFunc(found.apis, API.compare)
	unmet := Unmet{Text: excerpt.Cut(text, maxText), Packages: found.packages, APIs: found.apis}
	if leaf, ok := i.term.leaf.(*kubernetesLeaf); ok && !i.term.negated {
		unmet.Kubernetes = leaf.text
	}
	return unmet
}

func (a API) compare(b API) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
}

// explain says why t is not met, and with messages what the publisher says.
func (c *Checker) explain(t *term, messages bool) finding {
	var found finding
	if t.leaf != nil {
		found = c.explainLeaf(t)
	} else {
		found = c.explainGroup(t, messages)
	}
	if message := excerpt.Fold(t.message); messages && found.unmet && message != "" {
		found.text = fmt.Sprintf("%s (%s)", found.text, excerpt.Cut(message, maxMessage))
	}
	return found
}

func (c *Checker) explainLeaf(t *term) finding {
	if met, err := t.leaf.check(c, t.negated); met || err != nil {
		return finding{}
	}
	found := finding{unmet: true, text: excerpt.Cut(t.leaf.clause(c, t.negated), maxText)}
	switch leaf := t.leaf.(type) {
	case *packageLeaf:
		if !t.negated && leaf.contains != nil {
			found.packages = []PackageRange{{Package: leaf.name, Range: leaf.rangeText}}
		}
	case *apiLeaf:
		if !t.negated {
			found.apis = []API{leaf.api}
		}
	}
	return found
}

func (c *Checker) explainGroup(t *term, messages bool) finding {
	var found finding
	var texts []string
	for i := range t.terms {
		part := c.explain(&t.terms[i], messages)
		if !part.unmet {
			if t.anyOf {
				return finding{}
			}
			continue
		}
		if t.terms[i].leaf == nil {
			part.text = "(" + part.text + ")"
		}
		texts = append(texts, part.text)
		found.packages = appendNew(found.packages, part.packages)
		found.apis = appendNew(found.apis, part.apis)
	}
	found.unmet = len(texts) > 0
	word := ", and "
	if t.anyOf {
		word = ", or "
	}
	found.text = excerpt.Cut(join(texts, word), maxText)
	return found
}

func appendNew[T comparable](to, more []T) []T {
	for _, candidate := range more {
		if len(to) < maxCandidates && !slices.Contains(to, candidate) {
			to = append(to, candidate)
		}
	}
	return to
}

// join shows the first few.
func join(texts []string, separator string) string {
	const most = 8
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(texts[:most], separator), len(texts)-most)
}
