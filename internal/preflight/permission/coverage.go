package permission

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// maxLookedUp is how many rights there are to look up, beside those of rules that are
// hardly larger than they are written. Rules that do not fit are looked through.
const maxLookedUp = 50_000

// multiplies is how many rights there are to a word of a rule that is not hardly larger
// than it is written.
const multiplies = 16

// coverage answers as validation.Covers of k8s.io/component-helpers does, without
// holding each right against each rule: large bundles take thousands of rights.
type coverage struct {
	rights map[right]struct{}

	// urls are the patterns among the rights, such as /metrics/*: sorted, and none of
	// them is included in another one.
	urls map[urlSpace][]pattern

	// wide are the rules that stand for too many rights, by namespace.
	wide map[string][]wideRule
}

// urlSpace is what patterns differ in besides.
type urlSpace struct {
	namespace, verb string
}

// pattern includes all URLs with a prefix. There can be several with one prefix, of
// which this one is the last.
type pattern struct {
	prefix, url string
}

func newCoverage() coverage {
	return coverage{rights: map[right]struct{}{}, urls: map[urlSpace][]pattern{}, wide: map[string][]wideRule{}}
}

func coverageOf(rules []Rule) coverage {
	c := newCoverage()
	c.add(rules...)
	return c
}

func (c coverage) add(rules ...Rule) {
	var added []right
	for _, rule := range rules {
		limit := max(maxLookedUp-len(c.rights), multiplies*wordsOf(rule.PolicyRule))
		if sizeOf(rule.PolicyRule, limit) > limit {
			c.wide[rule.Namespace] = append(c.wide[rule.Namespace], wideRuleOf(rule.PolicyRule))
			continue
		}
		rule.each(func(r right) {
			c.rights[r] = struct{}{}
			if strings.HasSuffix(r.url, "*") {
				added = append(added, r)
			}
		})
	}
	c.index(added)
}

func wordsOf(rule rbacv1.PolicyRule) int {
	return len(rule.APIGroups) + len(rule.Resources) + len(rule.ResourceNames) + len(rule.Verbs) + len(rule.NonResourceURLs)
}

// index adds the patterns among rights.
func (c coverage) index(rights []right) {
	added := map[urlSpace]struct{}{}
	for _, r := range rights {
		if strings.HasSuffix(r.url, "*") {
			space := urlSpace{r.namespace, r.verb}
			c.urls[space] = append(c.urls[space], pattern{strings.TrimRight(r.url, "*"), r.url})
			added[space] = struct{}{}
		}
	}
	for space := range added {
		c.urls[space] = widest(c.urls[space])
	}
}

// widest leaves out the patterns that another of them includes. Sorted.
func widest(patterns []pattern) []pattern {
	slices.SortFunc(patterns, func(a, b pattern) int {
		if a.prefix == b.prefix {
			return strings.Compare(b.url, a.url)
		}
		return strings.Compare(a.prefix, b.prefix)
	})
	kept := patterns[:0]
	for _, p := range patterns {
		// What is between two texts that begin alike begins like them.
		if len(kept) == 0 || !strings.HasPrefix(p.prefix, kept[len(kept)-1].prefix) {
			kept = append(kept, p)
		}
	}
	return kept
}

// covers says whether a right is held, or one that includes it.
func (c coverage) covers(r right) bool {
	if _, found := c.rights[r]; found || c.includesMore(r) {
		return true
	}
	holds := func(rule wideRule) bool { return rule.covers(r) }
	return slices.ContainsFunc(c.wide[""], holds) || r.namespace != "" && slices.ContainsFunc(c.wide[r.namespace], holds)
}

// includesMore finds another right that includes this one: everywhere, of all verbs,
// and so on.
func (c coverage) includesMore(r right) bool {
	for _, verb := range different(r.verb, rbacv1.VerbAll) {
		for _, namespace := range different(r.namespace, "") {
			more := r
			more.verb, more.namespace = verb, namespace
			if r.url != "" && c.includesURL(more, r) || r.url == "" && c.includesResource(more, r) {
				return true
			}
		}
	}
	return false
}

func (c coverage) includesURL(more, r right) bool {
	if c.has(more, r) {
		return true
	}
	patterns := c.urls[urlSpace{more.namespace, more.verb}]
	// If there is one with a prefix of the URL, it is the last that is not after it.
	i, found := slices.BinarySearchFunc(patterns, r.url, func(p pattern, url string) int { return strings.Compare(p.prefix, url) })
	if !found {
		i--
	}
	if i < 0 || !strings.HasPrefix(r.url, patterns[i].prefix) {
		return false
	}
	more.url = patterns[i].url
	return c.has(more, r)
}

func (c coverage) includesResource(more, r right) bool {
	for _, more.group = range different(r.group, rbacv1.APIGroupAll) {
		for _, more.resource = range widerResources(r.resource) {
			for _, more.name = range different(r.name, "") {
				if c.has(more, r) {
					return true
				}
			}
		}
	}
	return false
}

func (c coverage) has(more, r right) bool {
	_, found := c.rights[more]
	return found && more != r
}

// different are two values, or one if they are the same.
func different(value, wider string) []string {
	if value == wider {
		return []string{value}
	}
	return []string{value, wider}
}

// widerResources are those that include a resource, itself among them. A subresource is
// in "*" and in that of all resources, as in "*/scale".
func widerResources(resource string) []string {
	wider := different(resource, rbacv1.ResourceAll)
	if _, subresource, found := strings.Cut(resource, "/"); found {
		wider = append(wider, "*/"+subresource)
	}
	return wider
}

// uncovered are the parts of a rule that no rule covers, in any order.
func (c coverage) uncovered(rule Rule) []right {
	var left []right
	for r := range rightSet([]Rule{rule}) {
		if !c.covers(r) {
			left = append(left, r)
		}
	}
	return left
}

// wideRule is a rule that is not taken apart.
type wideRule struct {
	verbs, groups, resources, names map[string]struct{}

	urls coverage
}

func wideRuleOf(rule rbacv1.PolicyRule) wideRule {
	urls := newCoverage()
	patterns := make([]right, len(rule.NonResourceURLs))
	for i, url := range rule.NonResourceURLs {
		patterns[i] = right{url: url}
		urls.rights[patterns[i]] = struct{}{}
	}
	urls.index(patterns)
	return wideRule{
		verbs: setOf(rule.Verbs), groups: setOf(rule.APIGroups), resources: setOf(rule.Resources), names: setOf(rule.ResourceNames),
		urls: urls,
	}
}

func setOf(words []string) map[string]struct{} {
	set := make(map[string]struct{}, len(words))
	for _, word := range words {
		set[word] = struct{}{}
	}
	return set
}

func (w wideRule) covers(r right) bool {
	in := func(set map[string]struct{}, words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { _, found := set[word]; return found })
	}
	if !in(w.verbs, r.verb, rbacv1.VerbAll) {
		return false
	}
	if r.url != "" {
		return w.urls.covers(right{url: r.url})
	}
	return in(w.groups, r.group, rbacv1.APIGroupAll) && in(w.resources, widerResources(r.resource)...) &&
		(len(w.names) == 0 || in(w.names, r.name))
}

// includes finds a right, the same for all names, everywhere, or both.
func includes(set map[right]struct{}, r right) bool {
	if _, found := set[r]; found {
		return true
	}
	return includesMore(set, r)
}

// includesMore finds a right for all names, everywhere, or both.
func includesMore(set map[right]struct{}, r right) bool {
	unnamed, everywhere, both := r, r, r
	unnamed.name, everywhere.namespace, both.name, both.namespace = "", "", "", ""
	for _, more := range []right{unnamed, everywhere, both} {
		if _, found := set[more]; found && more != r {
			return true
		}
	}
	return false
}
