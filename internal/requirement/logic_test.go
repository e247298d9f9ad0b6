package requirement_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// truth of a constraint, in the order of Kleene: all is the least, any the
// greatest, not the opposite.
type truth int

const (
	unmet   truth = -1
	unknown truth = 0
	met     truth = 1
)

// on a cluster whose APIs are not known.
func judge(value string) truth {
	on := cluster()
	on.APIsErr = errDown
	result := check(on, constraint(value))
	switch {
	case len(result.Unmet) > 0:
		return unmet
	case result.Err != nil:
		return unknown
	}
	return met
}

var leaves = map[truth]string{
	unmet:   `{"package":{"packageName":"a","versionRange":"1.x"}}`,
	unknown: `{"gvk":{"version":"v1","kind":"K"}}`,
	met:     `{"package":{"packageName":"there","versionRange":"1.x"}}`,
}

func group(kind string, constraints ...string) string {
	return fmt.Sprintf(`{%q:{"constraints":[%s]}}`, kind, strings.Join(constraints, ","))
}

func TestLogicOfTwo(t *testing.T) {
	t.Parallel()
	tests := []struct{ a, b, all, any, not truth }{
		{a: met, b: met, all: met, any: met, not: unmet},
		{a: met, b: unknown, all: unknown, any: met, not: unmet},
		{a: met, b: unmet, all: unmet, any: met, not: unmet},
		{a: unknown, b: unknown, all: unknown, any: unknown, not: unknown},
		{a: unknown, b: unmet, all: unmet, any: unknown, not: unknown},
		{a: unmet, b: unmet, all: unmet, any: unmet, not: met},
	}
	for _, test := range tests {
		for kind, want := range map[string]truth{"all": test.all, "any": test.any, "not": test.not} {
			for _, value := range []string{group(kind, leaves[test.a], leaves[test.b]), group(kind, leaves[test.b], leaves[test.a])} {
				if got := judge(value); got != want {
					t.Errorf("%s is %d, want %d", value, got, want)
				}
			}
		}
	}
}

// tree is a random constraint with its truth by the definition.
type tree struct {
	kind  string // empty for a leaf
	parts []tree
	truth truth
}

func randomTree(random *rand.Rand, depth int) tree {
	if depth == 0 || random.IntN(4) == 0 {
		return tree{truth: truth(random.IntN(3) - 1)}
	}
	grown := tree{kind: []string{"all", "any", "not"}[random.IntN(3)]}
	least, greatest := met, unmet
	for range 1 + random.IntN(4) {
		part := randomTree(random, depth-1)
		grown.parts = append(grown.parts, part)
		least, greatest = min(least, part.truth), max(greatest, part.truth)
	}
	grown.truth = map[string]truth{"all": least, "any": greatest, "not": -greatest}[grown.kind]
	return grown
}

// text in a random order.
func (t tree) text(random *rand.Rand) string {
	if t.kind == "" {
		return leaves[t.truth]
	}
	parts := make([]string, len(t.parts))
	for i, position := range random.Perm(len(t.parts)) {
		parts[i] = t.parts[position].text(random)
	}
	return group(t.kind, parts...)
}

func TestLogicOfTrees(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		grown := randomTree(random, 5)
		for range 2 {
			text := grown.text(random)
			if got := judge(text); got != grown.truth {
				t.Fatalf("seed %d: %s is %d, want %d", seed, text, got, grown.truth)
			}
			if got := judge(group("not", text)); got != -grown.truth {
				t.Fatalf("seed %d: the opposite of %s is %d, want %d", seed, text, got, -grown.truth)
			}
		}
	}
}

// TestUnreadableIsNeverMet, nor is its opposite.
func TestUnreadableIsNeverMet(t *testing.T) {
	t.Parallel()
	for _, leaf := range []string{
		`{"package":{"packageName":"there","versionRange":"?"}}`, `{"cel":{"rule":"("}}`, `{}`, `{"all":{"constraints":[]}}`,
	} {
		for _, value := range []string{leaf, group("not", leaf), group("not", group("not", leaf)), group("all", leaves[met], leaf)} {
			if got := judge(value); got != unmet {
				t.Errorf("%s is %d, want %d", value, got, unmet)
			}
		}
	}
}
