package policyfile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// Check gives what is wrong with the file, sorted. Certificates are held against now.
func (f *File) Check(now time.Time) []Problem {
	c := checker{File: f, now: now}
	c.problems = slices.Clone(f.problems)
	for i := range f.policies {
		c.checkPolicy(&f.policies[i])
	}
	slices.SortStableFunc(c.problems, compareProblems)
	return slices.Compact(c.problems)
}

type checker struct {
	*File

	now      time.Time
	problems []Problem
}

func (c *checker) report(policy *policyv1alpha1.ImagePolicy, severity Severity, format string, args ...any) {
	c.problems = append(c.problems, newProblem(objectName(kindPolicy, policy.Name), severity, fmt.Sprintf(format, args...)))
}

func (c *checker) checkPolicy(policy *policyv1alpha1.ImagePolicy) {
	for _, match := range policy.Spec.Match {
		c.checkPrefix(policy, imagepolicy.CanonicalPrefix(match.Prefix))
	}
	// Those that are left have nothing that can be wrong but the content of their Secrets.
	checkable := policy.DeepCopy()
	checkable.Spec.Authorities = nil
	for _, authority := range policy.Spec.Authorities {
		usable := c.checkExpressions(policy, authority)
		switch name := imagepolicy.SecretOf(authority); {
		case !c.names[objectName(kindSecret, name)]:
			c.report(policy, Note, "authority %q: the Secret %q is not in the file, and is not checked", authority.Name, name)
		case usable && c.secrets[name] != nil:
			checkable.Spec.Authorities = append(checkable.Spec.Authorities, authority)
		}
	}
	set := imagepolicy.Compile([]policyv1alpha1.ImagePolicy{*checkable}, c.secret)
	problems, _ := set.Problems(policy.Name)
	for _, problem := range problems {
		c.report(policy, Error, "%s", problem)
	}
	c.checkCertificates(policy, set.Certificates(policy.Name))
}

// checkExpressions says whether all expressions of an authority compile.
func (c *checker) checkExpressions(policy *policyv1alpha1.ImagePolicy, authority policyv1alpha1.Authority) bool {
	usable := true
	check := func(field, expression string) {
		if expression == "" {
			return
		}
		if _, err := regexp.Compile(expression); err != nil {
			usable = false
			c.report(policy, Error, "authority %q: %s: %q is not a regular expression: %v", authority.Name, field, expression, err)
			return
		}
		for _, warning := range looseEnds(expression) {
			c.report(policy, Warning, "authority %q: %s: %q %s", authority.Name, field, expression, warning)
		}
	}
	if authority.Certificate != nil {
		for i, subject := range authority.Certificate.Subjects {
			check(fmt.Sprintf("subjects[%d].subjectRegExp", i), subject.SubjectRegExp)
		}
	}
	if authority.Keyless != nil {
		for i, identity := range authority.Keyless.Identities {
			check(fmt.Sprintf("identities[%d].issuerRegExp", i), identity.IssuerRegExp)
			check(fmt.Sprintf("identities[%d].subjectRegExp", i), identity.SubjectRegExp)
		}
	}
	return usable
}

// checkPrefix compares a prefix with those of the policies that come behind this one, and with the
// longest of others within which it lies.
func (c *checker) checkPrefix(policy *policyv1alpha1.ImagePolicy, prefix string) {
	var around *policyv1alpha1.ImagePolicy
	longest := ""
	for i := range c.policies {
		other := &c.policies[i]
		if other.Name == policy.Name {
			continue
		}
		for _, match := range other.Spec.Match {
			wider := imagepolicy.CanonicalPrefix(match.Prefix)
			switch {
			case wider == prefix:
				if policy.Name < other.Name {
					c.report(policy, Warning, "the prefix %q is that of ImagePolicy %q too: both have to accept such an image", prefix, other.Name)
				}
			case (wider == "" || strings.HasPrefix(prefix, wider+"/")) && (around == nil || len(wider) > len(longest)):
				around, longest = other, wider
			}
		}
	}
	if around == nil {
		return
	}
	if policy.Spec.Mode == policyv1alpha1.ModeWarn && around.Spec.Mode != policyv1alpha1.ModeWarn {
		c.report(policy, Warning, "the prefix %q is within %q of ImagePolicy %q, which enforces: this one decides, and only warns", prefix, longest, around.Name)
		return
	}
	c.report(policy, Note, "the prefix %q is within %q of ImagePolicy %q, which does not decide about such images", prefix, longest, around.Name)
}

// checkCertificates says which are trusted no more, for each authority in one severity: that one
// of several is over is usual.
func (c *checker) checkCertificates(policy *policyv1alpha1.ImagePolicy, all []imagepolicy.TrustedCertificate) {
	current := map[string]bool{}
	for _, one := range all {
		current[one.Authority] = current[one.Authority] || c.now.Before(one.End)
	}
	for _, one := range all {
		if c.now.Before(one.End) {
			continue
		}
		severity, then := Warning, "nothing that it vouches for is accepted any more"
		switch {
		case one.CountsThen && current[one.Authority]:
			severity, then = Note, "what was signed before that still counts"
		case one.CountsThen:
			then = "only what was signed before that still counts"
		case !current[one.Authority]:
			severity = Error
		}
		c.report(policy, severity, "authority %q: the certificate of %s has ended on %s: %s",
			one.Authority, cmp.Or(one.Subject, "an authority without a name"), one.End.UTC().Format(time.DateOnly), then)
	}
}
