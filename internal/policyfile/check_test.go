package policyfile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/policyfile"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
)

// policy is one with a spec in YAML.
func policy(name, spec string) string {
	return "apiVersion: policy.clusterextensions.dev/v1alpha1\nkind: ImagePolicy\nmetadata: {name: " + name + "}\nspec: " + spec
}

const (
	byKey = `{match: [{prefix: quay.io/acme}], authorities: [{name: k, key: {secretRef: {name: s}}}]}`
	wide  = `{match: [{prefix: quay.io}], authorities: [{name: k, key: {secretRef: {name: s}}}]}`
	warns = `{mode: Warn, match: [{prefix: quay.io/acme/}], authorities: [{name: k, key: {secretRef: {name: s}}}]}`
)

// secret is one with a text under a key.
func secret(t *testing.T, key, text string) string {
	t.Helper()
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "stringData": map[string]any{key: text},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func read(t *testing.T, documents ...string) (*policyfile.File, error) {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, document := range documents {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		objects = append(objects, object)
	}
	return policyfile.Read(t.Context(), objects)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	_, key, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	sigstore, err := signing.NewSigstore(now)
	if err != nil {
		t.Fatal(err)
	}
	root, err := sigstore.TrustedRoot()
	if err != nil {
		t.Fatal(err)
	}
	keyed := secret(t, "cosign.pub", string(key))
	authority := secret(t, "ca.crt", string(sigstore.Certificates()))
	trusted := secret(t, "trusted_root.json", string(root))
	certificate := func(subject string) string {
		return policy("p", `{match: [{prefix: quay.io}], authorities: [{name: c, certificate: {secretRef: {name: s}, subjects: [`+subject+`]}}]}`)
	}
	keyless := func(identity string) string {
		return policy("p", `{match: [{prefix: quay.io}], authorities: [{name: c, keyless: {identities: [`+identity+`], trustedRoot: {secretRef: {name: s}}}}]}`)
	}
	const fine = `{issuer: "https://issuer.test", subjectRegExp: '^https://github\.com/acme/'}`
	century := now.AddDate(100, 0, 0)
	for name, tc := range map[string]struct {
		documents []string
		now       time.Time
		want      []string // how the problems begin, up to an asterisk, which stands for anything
	}{
		"a key":               {[]string{policy("p", byKey), keyed}, now, nil},
		"a certificate":       {[]string{certificate(`{subject: a@corp.example}`), authority}, now, nil},
		"a trusted root":      {[]string{keyless(fine), trusted}, now, nil},
		"no Secret":           {[]string{policy("p", byKey)}, now, []string{`ImagePolicy "p": note: authority "k": the Secret "s" is not in the file`}},
		"another key":         {[]string{policy("p", byKey), secret(t, "x", "y")}, now, []string{`ImagePolicy "p": error: authority "k" cannot be used: the Secret "s" has no key "cosign.pub"`}},
		"no key":              {[]string{policy("p", byKey), secret(t, "cosign.pub", "y")}, now, []string{`ImagePolicy "p": error: authority "k" cannot be used: its Secret has no public key in PEM`}},
		"no certificate":      {[]string{certificate(`{subject: a}`), secret(t, "ca.crt", string(key))}, now, []string{`ImagePolicy "p": error: authority "c" cannot be used: block 1 of its Secret is not a certificate`}},
		"no trusted root":     {[]string{keyless(fine), secret(t, "trusted_root.json", "{}")}, now, []string{`ImagePolicy "p": error: authority "c" cannot be used: its Secret has no trusted root`}},
		"certificates ended":  {[]string{certificate(`{subject: a}`), authority}, century, []string{`ImagePolicy "p": error: authority "c": the certificate of *: nothing that it vouches for is accepted any more`}},
		"trusted root ended":  {[]string{keyless(fine), trusted}, century, []string{`ImagePolicy "p": warning: authority "c": the certificate of *: only what was signed before that still counts`}},
		"field that is not":   {[]string{policy("p", strings.Replace(byKey, "{match", "{modus: Warn, match", 1)), keyed}, now, []string{`ImagePolicy "p": error: unknown field "spec.modus"`}},
		"value that is not":   {[]string{policy("p", strings.Replace(byKey, "{match", "{mode: Loud, match", 1)), keyed}, now, []string{`ImagePolicy "p": error: spec.mode: Unsupported value: "Loud"`}},
		"prefix with a tag":   {[]string{policy("p", strings.Replace(byKey, "quay.io/acme", "quay.io/acme:v1/", 1)), keyed}, now, []string{`ImagePolicy "p": error: spec.match[0].prefix: prefix must be a registry`}},
		"without a registry":  {[]string{policy("p", strings.Replace(byKey, "quay.io/acme", "acme/operators", 1)), keyed}, now, []string{`ImagePolicy "p": error: spec.match[0].prefix: prefix must be a registry`}},
		"on this machine":     {[]string{policy("p", strings.Replace(byKey, "quay.io/acme", "localhost/acme", 1)), keyed}, now, nil},
		"a port":              {[]string{policy("p", strings.Replace(byKey, "quay.io/acme", "registry:5000", 1)), keyed}, now, nil},
		"in upper case":       {[]string{policy("p", byKey), policy("q", strings.Replace(byKey, "quay.io", "Quay.io", 1)), keyed}, now, []string{`ImagePolicy "p": warning: the prefix "quay.io/acme" is that of ImagePolicy "q" too: both have to accept`}},
		"twice in a list":     {[]string{policy("p", strings.Replace(byKey, "[{prefix: quay.io/acme}", "[{prefix: quay.io/acme}, {prefix: quay.io/acme}", 1)), keyed}, now, []string{`ImagePolicy "p": error: spec.match[1]: Duplicate value`}},
		"no authority":        {[]string{policy("p", `{match: [{prefix: quay.io}], authorities: []}`)}, now, []string{`ImagePolicy "p": error: spec.authorities: spec.authorities in body should have at least 1 items`}},
		"two kinds of them":   {[]string{policy("p", strings.Replace(byKey, "key: {", "certificate: {secretRef: {name: s}, subjects: [{subject: a}]}, key: {", 1)), keyed}, now, []string{`ImagePolicy "p": error: spec.authorities[0]: exactly one of key, certificate and keyless is required`}},
		"no name":             {[]string{policy("P_", byKey), keyed}, now, []string{`ImagePolicy "P_": error: metadata.name: `}},
		"a name twice":        {[]string{policy("p", byKey), policy("p", byKey), keyed}, now, []string{`ImagePolicy "p": error: there is another one of that name in the file`}},
		"Secret malformed":    {[]string{policy("p", byKey), keyed + "data: {x: '%'}\n"}, now, []string{`Secret "s": error: `}},
		"not an expression":   {[]string{keyless(`{issuer: a, subjectRegExp: '('}`), trusted}, now, []string{`ImagePolicy "p": error: authority "c": identities[0].subjectRegExp: "(" is not a regular expression`}},
		"an open expression":  {[]string{certificate(`{subjectRegExp: 'corp'}`), authority}, now, []string{`ImagePolicy "p": warning: authority "c": subjects[0].subjectRegExp: "corp" does not begin with ^`}},
		"an issuer":           {[]string{keyless(`{issuerRegExp: '^https://a.test$', subject: s}`), trusted}, now, []string{`ImagePolicy "p": warning: authority "c": identities[0].issuerRegExp: "^https://a.test$" has a dot in the host "a.test"`}},
		"the same prefix":     {[]string{policy("p", byKey), policy("q", warns), keyed}, now, []string{`ImagePolicy "p": warning: the prefix "quay.io/acme" is that of ImagePolicy "q" too: both have to accept`}},
		"a prefix within":     {[]string{policy("p", byKey), policy("q", wide), policy("r", strings.Replace(wide, "quay.io", `""`, 1)), keyed}, now, []string{`ImagePolicy "p": note: the prefix "quay.io/acme" is within "quay.io" of ImagePolicy "q"`, `ImagePolicy "q": note: the prefix "quay.io" is within "" of ImagePolicy "r"`}},
		"a hole":              {[]string{policy("p", warns), policy("q", wide), keyed}, now, []string{`ImagePolicy "p": warning: the prefix "quay.io/acme" is within "quay.io" of ImagePolicy "q", which enforces`}},
		"names that begin so": {[]string{policy("p", byKey), policy("q", strings.Replace(wide, "quay.io", "quay.io/ac", 1)), keyed}, now, nil},
		"objects of others":   {[]string{policy("p", byKey), keyed, "apiVersion: config.openshift.io/v1\nkind: ImagePolicy\nmetadata: {name: p}\n"}, now, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := read(t, tc.documents...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, problem := range file.Check(tc.now) {
				got = append(got, problem.String())
			}
			if !slices.EqualFunc(got, tc.want, begins) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func begins(text, want string) bool {
	first, then, _ := strings.Cut(want, "*")
	rest, ok := strings.CutPrefix(text, first)
	return ok && strings.Contains(rest, then)
}

func TestNoPolicy(t *testing.T) {
	t.Parallel()
	if _, err := read(t, secret(t, "a", "b")); !errors.Is(err, policyfile.ErrNoPolicy) {
		t.Errorf("got %v", err)
	}
}

// TestSet judges by what is in the file, and says what is not to be judged by.
func TestSet(t *testing.T) {
	t.Parallel()
	file, err := read(t, policy("p", byKey), secret(t, "cosign.pub", "none"))
	if err != nil {
		t.Fatal(err)
	}
	if got := file.Set().For("quay.io/acme/x").Policies(); !slices.Equal(got, []string{"p"}) || len(file.Refused()) != 0 {
		t.Errorf("policies = %q, refused %v", got, file.Refused())
	}
	if file, err = read(t, policy("p", `{}`)); err != nil || len(file.Refused()) == 0 || !file.Set().For("quay.io/acme/x").IsZero() {
		t.Errorf("of a policy that is none: %+v, %v", file, err)
	}
}
