package imagepolicy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
)

// rulesVersion is another one when this program has come to judge the same signatures by the same
// policy otherwise: verdicts of before do not count any more.
const rulesVersion = "2"

// Secrets gives the data of a Secret. The error names the Secret and says why it cannot be had,
// which differs: those of a cluster are looked for elsewhere than those of files.
type Secrets func(name string) (map[string][]byte, error)

// InNamespace are the Secrets that a namespace was found to have, by their names.
func InNamespace(namespace string, found map[string]map[string][]byte) Secrets {
	return func(name string) (map[string][]byte, error) {
		if data := found[name]; data != nil {
			return data, nil
		}
		return nil, fmt.Errorf("there is no Secret %q in namespace %q", name, namespace)
	}
}

// Set is all policies that there are. The zero Set has none. It does not change.
type Set struct {
	byPrefix map[string][]*policy
	problems map[string][]string
	digest   string

	// certificates are those that are trusted, by policy.
	certificates map[string][]TrustedCertificate
}

// policy is an ImagePolicy, ready to judge by.
type policy struct {
	name         string
	digest       string // of all that it demands, keys and certificates included
	enforces     bool
	authorities  []authority
	attestations []string // the types of the predicates that are demanded
}

// Compile makes the policies ready. An authority that cannot be used is one that has signed
// nothing; see [Set.Problems].
func Compile(policies []policyv1alpha1.ImagePolicy, secrets Secrets) *Set {
	set := &Set{byPrefix: map[string][]*policy{}, problems: map[string][]string{}, certificates: map[string][]TrustedCertificate{}}
	policies = slices.SortedFunc(slices.Values(policies), func(a, b policyv1alpha1.ImagePolicy) int { return strings.Compare(a.Name, b.Name) })
	content := sha256.New()
	for i := range policies {
		compiled, problems := compile(&policies[i], secrets)
		fmt.Fprintln(content, compiled.digest)
		set.problems[compiled.name] = problems
		for _, authority := range compiled.authorities {
			set.certificates[compiled.name] = append(set.certificates[compiled.name], authority.certificates...)
		}
		prefixes := map[string]bool{}
		for _, match := range policies[i].Spec.Match {
			prefixes[CanonicalPrefix(match.Prefix)] = true
		}
		for prefix := range maps.Keys(prefixes) {
			set.byPrefix[prefix] = append(set.byPrefix[prefix], compiled)
		}
	}
	set.digest = hex.EncodeToString(content.Sum(nil))
	return set
}

// Digest is another one whenever some image could be judged otherwise.
func (s *Set) Digest() string { return s.digest }

func compile(from *policyv1alpha1.ImagePolicy, secrets Secrets) (*policy, []string) {
	compiled := &policy{name: from.Name, enforces: from.Spec.Mode != policyv1alpha1.ModeWarn}
	content := sha256.New()
	fmt.Fprintf(content, "%s %q\n", rulesVersion, from.Name)
	addJSON(content, from.Spec)
	var problems []string
	for _, wanted := range from.Spec.Authorities {
		made := newAuthority(wanted, func(ref policyv1alpha1.SecretReference, usual string) ([]byte, error) {
			data, err := valueOf(secrets, ref, usual)
			fmt.Fprintf(content, "%t %d\n%s\n", err == nil, len(data), data)
			return data, err
		})
		if made.unusable != nil {
			problems = append(problems, fmt.Sprintf("authority %q cannot be used: %v", wanted.Name, made.unusable))
		}
		compiled.authorities = append(compiled.authorities, made)
	}
	for _, demanded := range from.Spec.Attestations {
		compiled.attestations = append(compiled.attestations, demanded.PredicateType)
	}
	compiled.digest = hex.EncodeToString(content.Sum(nil))
	return compiled, problems
}

// SecretsOf names the Secrets of the authorities of a policy, in their order.
func SecretsOf(policy *policyv1alpha1.ImagePolicy) []string {
	var names []string
	for _, authority := range policy.Spec.Authorities {
		if name := SecretOf(authority); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// SecretOf names the Secret of an authority.
func SecretOf(authority policyv1alpha1.Authority) string {
	switch {
	case authority.Key != nil:
		return authority.Key.SecretRef.Name
	case authority.Certificate != nil:
		return authority.Certificate.SecretRef.Name
	case authority.Keyless != nil:
		return authority.Keyless.TrustedRoot.SecretRef.Name
	}
	return ""
}

// addJSON adds a part of the API, which can always be written as JSON.
func addJSON(to hash.Hash, part any) {
	data, err := json.Marshal(part)
	fmt.Fprintf(to, "%s %v\n", data, err)
}

func valueOf(secrets Secrets, ref policyv1alpha1.SecretReference, usual string) ([]byte, error) {
	key := ref.Key
	if key == "" {
		key = usual
	}
	data, err := secrets(ref.Name)
	if err != nil {
		return nil, err
	}
	value, ok := data[key]
	if !ok {
		return nil, fmt.Errorf("the Secret %q has no key %q", ref.Name, key)
	}
	return value, nil
}

// Problems says of a policy which of its authorities cannot be used, and why, in their order;
// known is false for a policy that is not in the set.
func (s *Set) Problems(name string) (problems []string, known bool) {
	problems, known = s.problems[name]
	return problems, known
}

// Certificates are those that the authorities of a policy trust others by, in their order.
func (s *Set) Certificates(name string) []TrustedCertificate { return s.certificates[name] }

// For gives what is demanded of the images of a repository, by its name with the registry and
// without a tag. The longest prefix decides; if several policies have it, all of them do.
func (s *Set) For(repository string) Rule {
	if s == nil {
		return Rule{}
	}
	for prefix := canonical(repository); ; {
		if found := s.byPrefix[prefix]; len(found) > 0 {
			return Rule{policies: found, prefix: prefix}
		}
		if prefix == "" {
			return Rule{}
		}
		prefix = prefix[:max(0, strings.LastIndexByte(prefix, '/'))]
	}
}

// CanonicalPrefix is a prefix as it is compared with others: without a slash at its end, and with
// the one name of a registry that can be written in several ways.
func CanonicalPrefix(prefix string) string { return canonical(strings.TrimSuffix(prefix, "/")) }

func canonical(name string) string {
	registry, path, below := strings.Cut(name, "/")
	if !below {
		return canonicalRegistry(registry)
	}
	return canonicalRegistry(registry) + "/" + path
}

// dockerHub is docker.io in the names of images, and the other hosts where it has the same.
var dockerHub = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// canonicalRegistry is the same for a host in upper and in lower case, and with and without the
// port that it has anyway: whoever names an image would get around a policy otherwise.
func canonicalRegistry(registry string) string {
	host, text, hasPort := strings.Cut(strings.ToLower(registry), ":")
	port, err := strconv.ParseUint(text, 10, 32)
	if hasPort && (err != nil || port != 443 && port != 80) {
		return host + ":" + strings.TrimLeft(text, "0")
	}
	if slices.Contains(dockerHub, host) {
		return dockerHub[0]
	}
	return host
}

// Rule is what is demanded of an image. The zero Rule demands nothing.
type Rule struct {
	policies []*policy

	// prefix is the one that all of them have.
	prefix string
}

// IsZero says that nothing is demanded.
func (r Rule) IsZero() bool { return len(r.policies) == 0 }

// Digest is another one whenever the verdict on the same image could be another one: it covers
// the policies and the keys and certificates that they name. It is empty for the zero Rule.
func (r Rule) Digest() string {
	if r.IsZero() {
		return ""
	}
	var all strings.Builder
	for _, policy := range r.policies {
		all.WriteString(policy.digest)
	}
	sum := sha256.Sum256([]byte(all.String()))
	return hex.EncodeToString(sum[:])
}

// Policies are the names of the policies, sorted.
func (r Rule) Policies() []string {
	names := make([]string, len(r.policies))
	for i, policy := range r.policies {
		names[i] = policy.name
	}
	return names
}

// WantsAttestation says whether attestations of that type are of any use.
func (r Rule) WantsAttestation(predicateType string) bool {
	return slices.ContainsFunc(r.policies, func(p *policy) bool { return slices.Contains(p.attestations, predicateType) })
}

// WantsAttestations says whether any is demanded.
func (r Rule) WantsAttestations() bool {
	return slices.ContainsFunc(r.policies, func(p *policy) bool { return len(p.attestations) > 0 })
}
