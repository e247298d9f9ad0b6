package requirement

import (
	"errors"
	"fmt"
	"sync"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// CostError says that it is not known whether a rule is true, because it would
// take too much work to evaluate it.
type CostError struct {
	Rule string
}

func (e *CostError) Error() string {
	return fmt.Sprintf("rule %s costs too much to evaluate", excerpt.Quote(e.Rule))
}

func (v ruleValue) leaf() (leaf, error) {
	if v.Rule == "" {
		return nil, errors.New("no rule")
	}
	return &ruleLeaf{text: v.Rule}, nil
}

// ruleLeaf: an extension is installed for which a rule is true.
type ruleLeaf struct {
	text string

	once    sync.Once
	program *program
	err     error
}

// compiled does its work once, and not before it is needed: most bundles of a
// catalog are never looked at.
func (l *ruleLeaf) compiled() (*program, error) {
	l.once.Do(func() { l.program, l.err = compile(l.text) })
	return l.program, l.err
}

func (l *ruleLeaf) check(c *Checker, negated bool) (bool, error) {
	found := c.evaluate(l)
	if found.invalid != nil || found.unknown != nil {
		return false, found.unknown
	}
	return found.met != negated, nil
}

func (l *ruleLeaf) clause(c *Checker, negated bool) string {
	found := c.evaluate(l)
	switch {
	case found.invalid != nil:
		return fmt.Sprintf("an extension by the rule %s, which is not valid: %s", excerpt.Quote(l.text), excerpt.Fold(found.invalid.Error()))
	case negated:
		return fmt.Sprintf("no extension for which the rule %s is true, but it is for %s", excerpt.Quote(l.text), excerpt.Quote(found.extension))
	}
	return fmt.Sprintf("an extension for which the rule %s is true, which is not installed", excerpt.Quote(l.text))
}

// ruleResult of a rule on all extensions; zero if it is true for none of them.
type ruleResult struct {
	met       bool
	extension string // that the rule is true for

	invalid error
	unknown error
}

// evaluate remembers the outcome by the text of the rule: versions of a package
// mostly share their rules.
func (c *Checker) evaluate(l *ruleLeaf) ruleResult {
	found, known := c.rules[l.text]
	if !known {
		found = c.evaluateNew(l)
		if c.rules == nil {
			c.rules = map[string]ruleResult{}
		}
		c.rules[l.text] = found
	}
	return found
}

// evaluateNew charges for compiling even if it was done before, so that the
// answer does not depend on what was checked against another cluster.
func (c *Checker) evaluateNew(l *ruleLeaf) ruleResult {
	var found ruleResult
	if !c.spend(costCompile + costCompileByte*uint64(min(len(l.text), maxRule))) {
		found.unknown = &CostError{Rule: l.text}
		return found
	}
	program, err := l.compiled()
	if err != nil {
		found.invalid = err
		return found
	}
	if c.cluster.ExtensionsErr != nil {
		found.unknown = c.cluster.ExtensionsErr
		return found
	}
	for i := range c.cluster.Extensions {
		if c.spent >= maxCost {
			found.unknown = &CostError{Rule: l.text}
			return found
		}
		isTrue, cost, err := program.evaluate(c.properties(i))
		c.spent += cost
		if isTrue {
			return ruleResult{met: true, extension: c.cluster.Extensions[i].Name}
		}
		if err != nil {
			found.unknown = &CostError{Rule: l.text}
		}
	}
	return found
}

// spend is false if there is nothing left to spend.
func (c *Checker) spend(cost uint64) bool {
	if c.spent >= maxCost {
		return false
	}
	c.spent += cost
	return true
}
