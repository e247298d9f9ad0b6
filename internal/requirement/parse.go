package requirement

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Types of the properties that state a requirement.
const (
	packageRequired     = "olm.package.required"
	gvkRequired         = "olm.gvk.required"
	constraintProperty  = "olm.constraint"
	maxOpenShiftVersion = "olm.maxOpenShiftVersion"

	// KubeVersion has a range of versions of Kubernetes as Chart.yaml has it, a text. The
	// catalog format knows a lowest version alone.
	KubeVersion = "clusterextensions.dev/kubeVersion"
)

// maxValue bounds the bytes of a property that states a requirement. It is the
// bound that publishers know for olm.constraint; it bounds the nesting as well.
const maxValue = 64 << 10

// Bounds on what one bundle states, far beyond what published ones do: a dozen
// requirements of a hundred bytes.
const (
	// maxConditions bounds the conditions, those within others counted each.
	maxConditions = 256

	// maxStated bounds the bytes of the properties that state them. A range of
	// versions takes up to fifty times its length once it is parsed.
	maxStated = 128 << 10
)

const requires = "requires "

// readers of the properties that state a requirement.
var readers = map[string]func(json.RawMessage) (item, error){
	packageRequired:     readPackage,
	gvkRequired:         readAPI,
	constraintProperty:  readConstraint,
	maxOpenShiftVersion: readOpenShift,
	KubeVersion:         readKubeVersion,
}

// Bytes is the size of the properties that state a requirement, types and values. It
// is what Parse has to read.
func Bytes(properties []*Property) int {
	size := 0
	for _, property := range properties {
		if readers[property.Type] != nil {
			size += len(property.Type) + len(property.Value)
		}
	}
	return size
}

// Parse reads what a bundle states that it needs: in its properties, and in the
// minKubeVersion of its CSV, empty if there is none. It cannot fail: a statement
// that cannot be read is a requirement that nothing meets, and says so; and so is
// all that a bundle states, if it is too much.
func Parse(properties []*Property, minKubernetes string) List {
	if Bytes(properties) > maxStated {
		return Unmeetable(fmt.Sprintf("states requirements of more than %d bytes", maxStated))
	}
	var list List
	conditions := 0
	for _, property := range properties {
		read := readers[property.Type]
		if read == nil {
			continue
		}
		found := readItem(property, read)
		if conditions += found.term.conditions(); conditions > maxConditions {
			return Unmeetable(fmt.Sprintf("states more than %d requirements", maxConditions))
		}
		list.items = append(list.items, found)
	}
	// What cannot be read here is no requirement: bundles with a bad
	// minKubeVersion are installed everywhere, because nobody looks at it.
	if lowest, ok := parseRelease(minKubernetes); ok {
		list.items = append(list.items, item{
			verb: requires,
			term: term{leaf: &kubernetesLeaf{text: minKubernetes, lowest: lowest}},
		})
	}
	return list
}

// Unmeetable is a requirement that nothing meets, with a text that says so of the
// bundle.
func Unmeetable(text string) List {
	return List{items: []item{{term: term{leaf: unmeetableLeaf(text)}}}}
}

// conditions that t consists of.
func (t *term) conditions() int {
	if t.leaf != nil {
		return 1
	}
	count := 0
	for i := range t.terms {
		count += t.terms[i].conditions()
	}
	return count
}

func readItem(property *Property, read func(json.RawMessage) (item, error)) item {
	err := fmt.Errorf("longer than %d bytes", maxValue)
	if len(property.Value) <= maxValue {
		var found item
		if found, err = read(property.Value); err == nil {
			return found
		}
	}
	return item{term: term{leaf: &unreadableLeaf{property: property.Type, err: err}}}
}

// packageValue is also what an olm.constraint has under "package".
type packageValue struct {
	PackageName  string `json:"packageName"`
	VersionRange string `json:"versionRange"`
}

func readPackage(value json.RawMessage) (item, error) {
	var wanted packageValue
	if err := json.Unmarshal(value, &wanted); err != nil {
		return item{}, err
	}
	leaf, err := wanted.leaf()
	return item{verb: requires, term: term{leaf: leaf}}, err
}

func (v packageValue) leaf() (leaf, error) {
	if v.PackageName == "" {
		return nil, errors.New("no packageName")
	}
	read := &packageLeaf{name: v.PackageName, rangeText: v.VersionRange}
	if contains, err := bundle.ParseVersionRange(v.VersionRange); err == nil {
		read.contains = contains
	}
	return read, nil
}

func readAPI(value json.RawMessage) (item, error) {
	var wanted API
	if err := json.Unmarshal(value, &wanted); err != nil {
		return item{}, err
	}
	leaf, err := wanted.leaf()
	return item{verb: requires, term: term{leaf: leaf}}, err
}

// leaf takes an empty group, that of the core API.
func (a API) leaf() (leaf, error) {
	if a.Version == "" || a.Kind == "" {
		return nil, errors.New("no version or no kind")
	}
	return &apiLeaf{api: a}, nil
}

func readKubeVersion(value json.RawMessage) (item, error) {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return item{}, err
	}
	contains, err := bundle.ParseKubeVersion(text)
	return item{verb: requires, term: term{leaf: &kubernetesRangeLeaf{text: text, contains: contains}}}, err
}

func readOpenShift(value json.RawMessage) (item, error) {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		// A number stands for itself, digit by digit: 4.10 is not 4.1.
		text = string(bytes.TrimSpace(value))
	}
	highest, ok := parseRelease(text)
	return item{term: term{leaf: &openShiftLeaf{text: text, highest: highest, valid: ok}}}, nil
}

// constraint is the value of an olm.constraint. Exactly one of its members
// besides the message is set.
type constraint struct {
	FailureMessage string        `json:"failureMessage"`
	GVK            *API          `json:"gvk"`
	Package        *packageValue `json:"package"`
	CEL            *ruleValue    `json:"cel"`
	All            *constraints  `json:"all"`
	Any            *constraints  `json:"any"`
	Not            *constraints  `json:"not"`
}

type constraints struct {
	Constraints []constraint `json:"constraints"`
}

type ruleValue struct {
	Rule string `json:"rule"`
}

// readConstraint refuses members that it does not know: they may be conditions.
func readConstraint(value json.RawMessage) (item, error) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.DisallowUnknownFields()
	var wanted constraint
	if err := decoder.Decode(&wanted); err != nil {
		return item{}, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return item{}, errors.New("more than one value")
	}
	read, err := wanted.term(false)
	return item{verb: requires, term: read}, err
}

// term of the constraint, or of its opposite. Messages of the publisher speak
// about what is not there; they make no sense about the opposite.
func (c *constraint) term(negated bool) (term, error) {
	if kinds := c.kinds(); kinds != 1 {
		return term{}, fmt.Errorf("a constraint with %d conditions instead of one", kinds)
	}
	var read term
	var err error
	switch {
	case c.GVK != nil:
		read.negated = negated
		read.leaf, err = c.GVK.leaf()
	case c.Package != nil:
		read.negated = negated
		read.leaf, err = c.Package.leaf()
	case c.CEL != nil:
		read.negated = negated
		read.leaf, err = c.CEL.leaf()
	case c.All != nil:
		read, err = c.All.term(negated, negated)
	case c.Any != nil:
		read, err = c.Any.term(!negated, negated)
	case c.Not != nil:
		// None of them, whose opposite is any of them.
		read, err = c.Not.term(negated, !negated)
	}
	if !negated && c.FailureMessage != "" {
		read.message = c.FailureMessage
	}
	return read, err
}

func (c *constraint) kinds() int {
	count := 0
	for _, set := range []bool{c.GVK != nil, c.Package != nil, c.CEL != nil, c.All != nil, c.Any != nil, c.Not != nil} {
		if set {
			count++
		}
	}
	return count
}

// term of a list. An empty one is no condition but, most likely, a mistake in
// the name of its only member.
func (c *constraints) term(anyOf, negated bool) (term, error) {
	if len(c.Constraints) == 0 {
		return term{}, errors.New("an empty list of constraints")
	}
	group := term{anyOf: anyOf, terms: make([]term, 0, len(c.Constraints))}
	for i := range c.Constraints {
		read, err := c.Constraints[i].term(negated)
		if err != nil {
			return term{}, err
		}
		group.terms = append(group.terms, read)
	}
	if len(group.terms) == 1 {
		return group.terms[0], nil
	}
	return group, nil
}
