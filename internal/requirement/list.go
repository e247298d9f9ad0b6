package requirement

import "slices"

// List is what a bundle states that it needs; the zero value needs nothing. It
// is safe for concurrent use.
type List struct {
	items []item
}

// item is one statement.
type item struct {
	// verb that joins the bundle and the text of the term; empty if that is a
	// sentence already.
	verb string
	term term
}

// term is a condition on the cluster: either a leaf or, if that is nil, a group.
// Negations are pushed down to the leaves, so that a group never turns what it
// holds around.
type term struct {
	leaf    leaf
	negated bool

	// anyOf of the terms is enough; otherwise all are needed.
	anyOf bool
	terms []term

	// message of the publisher if the term is not met.
	message string
}

// leaf is a condition that holds no others.
type leaf interface {
	// check says whether the condition, or its opposite, is met. An error says
	// that it cannot be told. A condition that makes no sense is not met, and its
	// opposite is not either.
	check(c *Checker, negated bool) (bool, error)

	// clause says what is needed and what is there instead. It is called only if
	// check returned false.
	clause(c *Checker, negated bool) string
}

// Empty says that the bundle needs nothing.
func (l List) Empty() bool { return len(l.items) == 0 }

// Needs says what a [List] looks at.
type Needs struct {
	// APIs: which of them the cluster serves.
	APIs bool

	// Packages, sorted: which of them are installed.
	Packages []string

	// AnyPackage: a rule looks at every extension that is installed, and at its
	// properties.
	AnyPackage bool
}

// Needs says what has to be known of a cluster to check l.
func (l List) Needs() Needs {
	var needs Needs
	for i := range l.items {
		needs.add(&l.items[i].term)
	}
	slices.Sort(needs.Packages)
	needs.Packages = slices.Compact(needs.Packages)
	return needs
}

func (n *Needs) add(t *term) {
	switch leaf := t.leaf.(type) {
	case *packageLeaf:
		n.Packages = append(n.Packages, leaf.name)
	case *apiLeaf:
		n.APIs = true
	case *ruleLeaf:
		n.AnyPackage = true
	}
	for i := range t.terms {
		n.add(&t.terms[i])
	}
}
