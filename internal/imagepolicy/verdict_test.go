package imagepolicy_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
)

const (
	image      = digest.Digest("sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	other      = digest.Digest("sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")
	workflow   = "https://github.com/acme/pkg/.github/workflows/release.yaml@refs/tags/v1.2.3"
	stranger   = "https://github.com/mallory/pkg/.github/workflows/release.yaml@refs/tags/v1.2.3"
	issuer     = "https://token.actions.githubusercontent.com"
	provenance = "https://slsa.dev/provenance/v1"
)

// signers are those of these tests, with what has to be trusted of them.
type signers struct {
	key, otherKey, ours, theirs, expired, private, unlogged *signing.Signer

	// uncertified has a certificate that is in no log, elsewhere in another one, and forged in
	// one that says that it is the one that is trusted.
	uncertified, elsewhere, forged *signing.Signer

	secrets map[string]map[string][]byte
}

func newSigners(t *testing.T) signers {
	t.Helper()
	now := time.Now()
	made := signers{secrets: map[string]map[string][]byte{}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var public []byte
	var err error
	made.key, public, err = signing.NewKey()
	must(err)
	made.secrets["key"] = map[string][]byte{"cosign.pub": public}
	made.otherKey, public, err = signing.NewKey()
	must(err)
	made.secrets["both"] = map[string][]byte{"keys": append(public, made.secrets["key"]["cosign.pub"]...)}
	made.secrets["other"] = map[string][]byte{"cosign.pub": public}
	sigstore, err := signing.NewSigstore(now)
	must(err)
	made.ours, err = sigstore.NewSigner(workflow, issuer, now, time.Hour)
	must(err)
	made.theirs, err = sigstore.NewSigner(stranger, issuer, now, time.Hour)
	must(err)
	made.expired, err = sigstore.NewSigner(workflow, issuer, now.Add(-90*time.Second), 20*time.Second)
	must(err)
	made.unlogged = made.ours.WithoutLog()
	another, err := signing.NewCertificateLog()
	must(err)
	impostor, err := sigstore.CertificateLog().Impostor()
	must(err)
	made.uncertified, err = sigstore.LoggingTo(nil).NewSigner(workflow, issuer, now, time.Hour)
	must(err)
	made.elsewhere, err = sigstore.LoggingTo(another).NewSigner(workflow, issuer, now, time.Hour)
	must(err)
	made.forged, err = sigstore.LoggingTo(impostor).NewSigner(workflow, issuer, now, time.Hour)
	must(err)
	for name, of := range map[string]*signing.Sigstore{"root": sigstore, "another log": sigstore.LoggingTo(another), "no log": sigstore.LoggingTo(nil)} {
		trusted, err := of.TrustedRoot()
		must(err)
		made.secrets[name] = map[string][]byte{"trusted_root.json": trusted}
	}
	made.secrets["authority"] = map[string][]byte{"ca.crt": sigstore.Certificates()}
	made.private, err = sigstore.LoggingTo(nil).NewSigner(workflow, "", now, time.Hour)
	must(err)
	made.private = made.private.WithoutLog()
	made.secrets["broken"] = map[string][]byte{"cosign.pub": []byte("no key"), "ca.crt": public, "trusted_root.json": []byte("{}")}
	return made
}

func (s signers) compile(policies ...policyv1alpha1.ImagePolicy) *imagepolicy.Set {
	return imagepolicy.Compile(policies, imagepolicy.InNamespace("system", s.secrets))
}

func policyOf(name string, spec policyv1alpha1.ImagePolicySpec) policyv1alpha1.ImagePolicy {
	if spec.Match == nil {
		spec.Match = []policyv1alpha1.ImageMatch{{Prefix: "registry.test/acme"}}
	}
	return policyv1alpha1.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

func byKey(secret, key string) policyv1alpha1.Authority {
	return policyv1alpha1.Authority{Name: "key", Key: &policyv1alpha1.KeyAuthority{SecretRef: policyv1alpha1.SecretReference{Name: secret, Key: key}}}
}

func byIdentity(secret string, identities ...policyv1alpha1.Identity) policyv1alpha1.Authority {
	return policyv1alpha1.Authority{Name: "ci", Keyless: &policyv1alpha1.KeylessAuthority{
		Identities: identities, TrustedRoot: policyv1alpha1.TrustedRoot{SecretRef: policyv1alpha1.SecretReference{Name: secret}},
	}}
}

func byCertificate(secret string, subjects ...policyv1alpha1.Subject) policyv1alpha1.Authority {
	return policyv1alpha1.Authority{Name: "ca", Certificate: &policyv1alpha1.CertificateAuthority{
		Subjects: subjects, SecretRef: policyv1alpha1.SecretReference{Name: secret},
	}}
}

var acme = policyv1alpha1.Identity{Issuer: issuer, SubjectRegExp: `^https://github.com/acme/[^@]+@refs/tags/v`}

// TestJudge has the vectors of the specification that are about signatures alone, by their
// numbers.
func TestJudge(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	old := func(by *signing.Signer, of digest.Digest) imagepolicy.Evidence { return evidence(t)(by.Old(of)) }
	bundle := func(by *signing.Signer, of digest.Digest, predicateType string) imagepolicy.Evidence {
		return evidence(t)(by.New(of, predicateType))
	}
	attestation := func(by *signing.Signer, of digest.Digest) imagepolicy.Evidence {
		return evidence(t)(by.OldAttestation(of, provenance))
	}
	const signature = imagepolicy.PredicateSignature
	authorities := func(all ...policyv1alpha1.Authority) policyv1alpha1.ImagePolicySpec {
		return policyv1alpha1.ImagePolicySpec{Authorities: all}
	}
	attested := authorities(byKey("key", ""), byIdentity("root", acme))
	attested.Attestations = []policyv1alpha1.Attestation{{PredicateType: provenance}}
	for name, tc := range map[string]struct {
		spec    policyv1alpha1.ImagePolicySpec
		has     []imagepolicy.Evidence
		subject imagepolicy.Subject
		signer  string // whose signature is accepted
		refusal string // a part of why none is
	}{
		"V1: with a key, before cosign 3":               {spec: authorities(byKey("key", "")), has: list(old(s.key, image)), signer: `authority "key"`},
		"V2: with a key, since cosign 3":                {spec: authorities(byKey("key", "")), has: list(bundle(s.key, image, signature)), signer: `authority "key"`},
		"one of several keys":                           {spec: authorities(byKey("both", "keys")), has: list(old(s.key, image)), signer: `authority "key"`},
		"the second signature":                          {spec: authorities(byKey("key", "")), has: list(old(s.otherKey, image), bundle(s.key, image, signature)), signer: `authority "key"`},
		"the second authority":                          {spec: authorities(byIdentity("root", acme), byKey("key", "")), has: list(old(s.key, image)), signer: `authority "key"`},
		"another key":                                   {spec: authorities(byKey("key", "")), has: list(old(s.otherKey, image), bundle(s.otherKey, image, signature)), refusal: `authority "key": it is not signed with its key`},
		"unsigned":                                      {spec: authorities(byKey("key", "")), refusal: `ImagePolicy "p": it has no signature`},
		"V3: a workflow, before cosign 3":               {spec: authorities(byIdentity("root", acme)), has: list(old(s.ours, image)), signer: `authority "ci": "` + workflow + `" of "` + issuer + `"`},
		"V3: a workflow, since cosign 3":                {spec: authorities(byIdentity("root", acme)), has: list(bundle(s.ours, image, signature)), signer: workflow},
		"V3: another repository, before cosign 3":       {spec: authorities(byIdentity("root", acme)), has: list(old(s.theirs, image)), refusal: `authority "ci": it is signed by "` + stranger + `" of "` + issuer + `", who is none of its identities`},
		"V3: another repository, since cosign 3":        {spec: authorities(byIdentity("root", acme)), has: list(bundle(s.theirs, image, signature)), refusal: stranger},
		"V3: another repository, and a key":             {spec: authorities(byIdentity("root", acme)), has: list(old(s.theirs, image), old(s.key, image)), refusal: stranger},
		"another issuer":                                {spec: authorities(byIdentity("root", policyv1alpha1.Identity{Issuer: "https://issuer.test", Subject: workflow})), has: list(old(s.ours, image)), refusal: "who is none of its identities"},
		"issuer by an expression":                       {spec: authorities(byIdentity("root", policyv1alpha1.Identity{IssuerRegExp: `^https://token\.actions\.`, Subject: workflow})), has: list(old(s.ours, image)), signer: workflow},
		"V7: of another image, before cosign 3":         {spec: authorities(byKey("key", "")), has: list(old(s.key, other)), refusal: "what is signed is another image"},
		"V7: of another image, since cosign 3":          {spec: authorities(byKey("key", "")), has: list(bundle(s.key, other, signature)), refusal: "what is signed is another image"},
		"V7: says that it is of this one":               {spec: authorities(byKey("key", "")), has: list(relabelled(old(s.key, other))), refusal: "it is not signed with its key"},
		"V8: certificate expired, signed before that":   {spec: authorities(byIdentity("root", acme)), has: list(old(s.expired, image)), signer: workflow},
		"V8: the same in a bundle":                      {spec: authorities(byIdentity("root", acme)), has: list(bundle(s.expired, image, signature)), signer: workflow},
		"in no log":                                     {spec: authorities(byIdentity("root", acme)), has: list(old(s.unlogged, image), bundle(s.unlogged, image, signature)), refusal: "log"},
		"certificate in no log":                         {spec: authorities(byIdentity("root", acme)), has: list(old(s.uncertified, image)), refusal: "signed certificate timestamp"},
		"certificate in no log, a bundle":               {spec: authorities(byIdentity("root", acme)), has: list(bundle(s.uncertified, image, signature)), refusal: "signed certificate timestamp"},
		"certificate in another log":                    {spec: authorities(byIdentity("root", acme)), has: list(bundle(s.elsewhere, image, signature)), refusal: "signed certificate timestamp"},
		"certificate in the log, by another key":        {spec: authorities(byIdentity("root", acme)), has: list(bundle(s.forged, image, signature)), refusal: "signed certificate timestamp"},
		"another log of certificates is trusted":        {spec: authorities(byIdentity("another log", acme)), has: list(old(s.ours, image)), refusal: "signed certificate timestamp"},
		"no log of certificates is trusted":             {spec: authorities(byIdentity("no log", acme)), has: list(old(s.uncertified, image)), signer: workflow},
		"V11: the index is signed":                      {spec: authorities(byKey("key", "")), has: list(bundle(s.key, other, signature)), subject: imagepolicy.Subject{image, other}, signer: `authority "key"`},
		"V12: no attestation":                           {spec: attested, has: list(old(s.key, image)), refusal: `the attestation "` + provenance + `" is demanded: there is none`},
		"V12: an attestation is no signature":           {spec: attested, has: list(bundle(s.key, image, provenance)), refusal: "it has no signature"},
		"attested, before cosign 3":                     {spec: attested, has: list(old(s.key, image), attestation(s.ours, image)), signer: `authority "key"`},
		"attested with a key, before cosign 3":          {spec: attested, has: list(old(s.key, image), attestation(s.key, image)), signer: `authority "key"`},
		"attested, since cosign 3":                      {spec: attested, has: list(bundle(s.ours, image, signature), bundle(s.ours, image, provenance)), signer: workflow},
		"attested by a stranger":                        {spec: attested, has: list(old(s.key, image), bundle(s.theirs, image, provenance)), refusal: "is demanded: authority \"ci\": it is signed by"},
		"attestation of another image":                  {spec: attested, has: list(old(s.key, image), bundle(s.key, other, provenance)), refusal: "what is signed is another image"},
		"attestation of another kind":                   {spec: attested, has: list(old(s.key, image), bundle(s.key, image, "https://spdx.dev/Document")), refusal: "there is none"},
		"certificate of one's own authority":            {spec: authorities(byCertificate("authority", policyv1alpha1.Subject{Subject: workflow})), has: list(old(s.private, image)), signer: `authority "ca": "` + workflow + `"`},
		"certificate of one's own authority, a bundle":  {spec: authorities(byCertificate("authority", policyv1alpha1.Subject{SubjectRegExp: "^https://github.com/acme/"})), has: list(bundle(s.private, image, signature)), signer: `authority "ca"`},
		"another subject":                               {spec: authorities(byCertificate("authority", policyv1alpha1.Subject{Subject: stranger})), has: list(old(s.private, image)), refusal: `it is signed by "` + workflow + `", who is none of its identities`},
		"certificate that is not valid any more":        {spec: authorities(byCertificate("authority", policyv1alpha1.Subject{Subject: workflow})), has: list(old(s.expired.WithoutLog(), image)), refusal: "leaf certificate verification failed"},
		"key where a certificate is wanted":             {spec: authorities(byIdentity("root", acme)), has: list(bundle(s.key, image, signature)), refusal: `authority "ci"`},
		"certificate where a key is wanted":             {spec: authorities(byKey("key", "")), has: list(old(s.ours, image)), refusal: "it is not signed with its key"},
		"no Secret":                                     {spec: authorities(byKey("gone", "")), has: list(old(s.key, image)), refusal: `authority "key": there is no Secret "gone" in namespace "system"`},
		"no such key in it":                             {spec: authorities(byKey("key", "gone")), has: list(old(s.key, image)), refusal: `the Secret "key" has no key "gone"`},
		"no public key":                                 {spec: authorities(byKey("broken", "")), has: list(old(s.key, image)), refusal: "its Secret has no public key in PEM"},
		"no certificate":                                {spec: authorities(byCertificate("broken", policyv1alpha1.Subject{Subject: workflow})), has: list(old(s.private, image)), refusal: "is not a certificate"},
		"no trusted root":                               {spec: authorities(byIdentity("broken", acme)), has: list(old(s.ours, image)), refusal: "its Secret has no trusted root"},
		"no expression":                                 {spec: authorities(byIdentity("root", policyv1alpha1.Identity{Issuer: issuer, SubjectRegExp: "("})), has: list(old(s.ours, image)), refusal: `"(" is not a regular expression`},
		"an authority that cannot be used, and another": {spec: authorities(byIdentity("gone", acme), byKey("key", "")), has: list(old(s.key, image)), signer: `authority "key"`},
		"nothing that can be read":                      {spec: authorities(byKey("key", "")), has: list(imagepolicy.Evidence{MediaType: imagepolicy.MediaTypeBundle + ".v0.3+json", Data: []byte("{")}), refusal: "it has no signature that can be read"},
		"a key that takes hours to try":                 {spec: authorities(byKey("key", "")), has: list(withLargeKey(t, old(s.private, image))), refusal: "a certificate with it has a key of more than 8192 bits"},
		"much to verify it by, before cosign 3":         {spec: authorities(byKey("key", "")), has: list(stamped(old(s.key, image))), refusal: "what it is to be verified by has more than 32768 bytes"},
		"much to verify it by, since cosign 3":          {spec: authorities(byKey("key", "")), has: list(stamped(bundle(s.key, image, signature))), refusal: "what it is to be verified by has more than 32768 bytes"},
		"something that cannot be read":                 {spec: authorities(byKey("key", "")), has: list(imagepolicy.Evidence{MediaType: imagepolicy.MediaTypeSimpleSigning, Data: []byte("{}")}, old(s.key, image)), signer: `authority "key"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			subject := tc.subject
			if subject == nil {
				subject = imagepolicy.Subject{image}
			}
			got := s.compile(policyOf("p", tc.spec)).For("registry.test/acme/pkg").Judge(t.Context(), subject, tc.has)
			if !slices.Equal(got.Policies, []string{"p"}) || got.Refused == (tc.signer != "") {
				t.Fatalf("verdict = %+v", got)
			}
			if tc.signer != "" && (len(got.Signers) != 1 || !strings.Contains(got.Signers[0], tc.signer)) {
				t.Errorf("signers = %q, want %q", got.Signers, tc.signer)
			}
			if tc.refusal != "" && (len(got.Refusals) != 1 || !strings.Contains(got.Refusals[0], tc.refusal)) {
				t.Errorf("refusals = %q, want %q", got.Refusals, tc.refusal)
			}
		})
	}
}

func list(all ...imagepolicy.Evidence) []imagepolicy.Evidence { return all }

func evidence(t *testing.T) func(imagepolicy.Evidence, error) imagepolicy.Evidence {
	t.Helper()
	return func(made imagepolicy.Evidence, err error) imagepolicy.Evidence {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
}

// withLargeKey comes with the certificate of an authority that has one.
func withLargeKey(t *testing.T, signed imagepolicy.Evidence) imagepolicy.Evidence {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	large := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 16_384, 1), E: 1<<31 - 1}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(nil, template, template, large, key)
	if err != nil {
		t.Fatal(err)
	}
	signed.Annotations["dev.sigstore.cosign/chain"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return signed
}

// stamped comes with a timestamp that has large keys of its own.
func stamped(signed imagepolicy.Evidence) imagepolicy.Evidence {
	stamp := base64.StdEncoding.EncodeToString(make([]byte, 32<<10))
	if signed.MediaType == imagepolicy.MediaTypeSimpleSigning {
		signed.Annotations["dev.sigstore.cosign/rfc3161timestamp"] = `{"SignedRFC3161Timestamp":"` + stamp + `"}`
		return signed
	}
	signed.Data = bytes.Replace(signed.Data, []byte(`"verificationMaterial":{`),
		[]byte(`"verificationMaterial":{"timestampVerificationData":{"rfc3161Timestamps":[{"signedTimestamp":"`+stamp+`"}]},`), 1)
	return signed
}

// relabelled says that it is about the image, whatever was signed.
func relabelled(signed imagepolicy.Evidence) imagepolicy.Evidence {
	signed.Data = []byte(strings.ReplaceAll(string(signed.Data), string(other), string(image)))
	return signed
}

// TestJudgeEnds: what there was no time to look at does not count, whoever has signed it.
func TestJudgeEnds(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rule := s.compile(policyOf("p", policyv1alpha1.ImagePolicySpec{Authorities: []policyv1alpha1.Authority{byKey("key", "")}})).For("registry.test/acme/pkg")
	if got := rule.Judge(ctx, imagepolicy.Subject{image}, list(evidence(t)(s.key.Old(image)))); !got.Refused || len(got.Signers) > 0 {
		t.Errorf("verdict = %+v", got)
	}
}

// TestFor has V9: of policies that match, the longest prefix decides.
func TestFor(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	match := func(name string, prefixes ...string) policyv1alpha1.ImagePolicy {
		spec := policyv1alpha1.ImagePolicySpec{Authorities: []policyv1alpha1.Authority{byKey("key", "")}}
		for _, prefix := range prefixes {
			spec.Match = append(spec.Match, policyv1alpha1.ImageMatch{Prefix: prefix})
		}
		return policyOf(name, spec)
	}
	some := s.compile(match("host", "registry.test"), match("acme", "registry.test/acme/"), match("labs", "registry.test/acme/labs", "other.test:5000"), match("twin", "registry.test/acme"))
	names := s.compile(match("tls", "tls.test:443"), match("hub", "docker.io/library"), match("index", "index.docker.io/acme"))
	all := s.compile(match("all", ""), match("host", "registry.test"))
	for name, tc := range map[string]struct {
		set        *imagepolicy.Set
		repository string
		want       []string
	}{
		"V9: longest":           {some, "registry.test/acme/labs/pkg", []string{"labs"}},
		"several":               {some, "registry.test/acme/pkg", []string{"acme", "twin"}},
		"whole elements":        {some, "registry.test/acme-labs/pkg", []string{"host"}},
		"the repository":        {some, "registry.test/acme/labs", []string{"labs"}},
		"port":                  {some, "other.test:5000/x", []string{"labs"}},
		"in upper case":         {some, "Registry.TEST/acme/pkg", []string{"acme", "twin"}},
		"host in upper case":    {s.compile(match("host", "Registry.TEST")), "registry.test/acme/pkg", []string{"host"}},
		"another port":          {some, "other.test:50001/x", []string{}},
		"none":                  {some, "example.com/acme/pkg", []string{}},
		"a host that begins so": {some, "registry.test.example.com/acme", []string{}},
		"all":                   {all, "example.com/acme/pkg", []string{"all"}},
		"all but":               {all, "registry.test/acme/pkg", []string{"host"}},
		"port of TLS":           {some, "registry.test:443/acme/labs/pkg", []string{"labs"}},
		"port, in other digits": {some, "other.test:05000/x", []string{"labs"}},
		"prefix with its port":  {names, "tls.test/x", []string{"tls"}},
		"Docker Hub's own host": {names, "registry-1.docker.io/library/x", []string{"hub"}},
		"Docker Hub's old host": {names, "INDEX.docker.io/library/x", []string{"hub"}},
		"prefix of that host":   {names, "docker.io/acme/x", []string{"index"}},
		"no policies":           {s.compile(), "registry.test/acme/pkg", []string{}},
		"nil":                   {nil, "registry.test/acme/pkg", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := tc.set.For(tc.repository)
			if got := rule.Policies(); !slices.Equal(got, tc.want) || rule.IsZero() != (len(tc.want) == 0) || (rule.Digest() == "") != rule.IsZero() {
				t.Errorf("policies = %q, digest %q", got, rule.Digest())
			}
		})
	}
}

// TestSeveralPoliciesOfOnePrefix: all of them have to accept an image, and those that only warn
// refuse nothing.
func TestSeveralPoliciesOfOnePrefix(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	key := policyOf("key", policyv1alpha1.ImagePolicySpec{Authorities: []policyv1alpha1.Authority{byKey("key", "")}})
	second := policyOf("other", policyv1alpha1.ImagePolicySpec{Authorities: []policyv1alpha1.Authority{byKey("other", "")}})
	warns := second
	warns.Spec.Mode = policyv1alpha1.ModeWarn
	has := list(evidence(t)(s.key.Old(image)))
	for name, tc := range map[string]struct {
		second  policyv1alpha1.ImagePolicy
		refused bool
	}{
		"both enforce": {second, true}, "V4: one warns": {warns, false},
	} {
		got := s.compile(key, tc.second).For("registry.test/acme/pkg").Judge(t.Context(), imagepolicy.Subject{image}, has)
		if got.Refused != tc.refused || len(got.Signers) != 1 || len(got.Refusals) != 1 || !strings.HasPrefix(got.Refusals[0], `ImagePolicy "other": `) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestDigest: whatever a verdict follows from makes another digest.
func TestDigest(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	spec := policyv1alpha1.ImagePolicySpec{Authorities: []policyv1alpha1.Authority{byKey("key", ""), byIdentity("root", acme)}}
	digestOf := func(p policyv1alpha1.ImagePolicy, secrets map[string]map[string][]byte) string {
		return imagepolicy.Compile([]policyv1alpha1.ImagePolicy{p}, imagepolicy.InNamespace("system", secrets)).For("registry.test/acme").Digest()
	}
	base := digestOf(policyOf("p", spec), s.secrets)
	if again := digestOf(policyOf("p", spec), s.secrets); again != base {
		t.Errorf("the same policy has %s and %s", base, again)
	}
	same := policyOf("p", spec)
	same.Status.Conditions, same.ResourceVersion, same.Labels = []metav1.Condition{{Type: "Ready"}}, "7", map[string]string{"a": "b"}
	if got := digestOf(same, s.secrets); got != base {
		t.Error("what does not decide anything makes another digest")
	}
	warns := spec
	warns.Mode = policyv1alpha1.ModeWarn
	fewer := spec
	fewer.Authorities = spec.Authorities[:1]
	for name, got := range map[string]string{
		"mode":         digestOf(policyOf("p", warns), s.secrets),
		"authorities":  digestOf(policyOf("p", fewer), s.secrets),
		"name":         digestOf(policyOf("q", spec), s.secrets),
		"key":          digestOf(policyOf("p", spec), map[string]map[string][]byte{"key": s.secrets["other"], "root": s.secrets["root"]}),
		"trusted root": digestOf(policyOf("p", spec), map[string]map[string][]byte{"key": s.secrets["key"], "root": s.secrets["no log"]}),
		"Secret gone":  digestOf(policyOf("p", spec), map[string]map[string][]byte{"root": s.secrets["root"]}),
	} {
		if got == base || got == "" {
			t.Errorf("%s: digest %q", name, got)
		}
	}
}

// TestManyKeys: there are so many keys and certificates in a Secret as there may be, and with one
// more the authority cannot be used.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	key, certificates := s.secrets["key"]["cosign.pub"], s.secrets["authority"]["ca.crt"]
	for name, tc := range map[string]struct {
		authority policyv1alpha1.Authority
		one       []byte
		most      int
	}{
		"keys":         {byKey("many", "x"), key, 16},
		"certificates": {policyv1alpha1.Authority{Name: "ca", Certificate: &policyv1alpha1.CertificateAuthority{SecretRef: policyv1alpha1.SecretReference{Name: "many", Key: "x"}}}, certificates[:strings.Index(string(certificates), "-----END")+len("-----END CERTIFICATE-----\n")], 64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, more := range []int{0, 1} {
				secret := map[string][]byte{"x": []byte(strings.Repeat(string(tc.one), tc.most+more))}
				set := imagepolicy.Compile([]policyv1alpha1.ImagePolicy{policyOf("p", policyv1alpha1.ImagePolicySpec{Authorities: []policyv1alpha1.Authority{tc.authority}})},
					imagepolicy.InNamespace("system", map[string]map[string][]byte{"many": secret}))
				if problems, known := set.Problems("p"); !known || len(problems) != more {
					t.Errorf("with %d of them, problems are %q", tc.most+more, problems)
				}
			}
		})
	}
}

// TestNoPublicKey: what is there in place of a public key is said by its kind, and nothing of its content.
func TestNoPublicKey(t *testing.T) {
	t.Parallel()
	for found, want := range map[string]string{
		"ENCRYPTED SIGSTORE PRIVATE KEY": "block 1 of its Secret is a private key: put the public one in its place",
		"EC PRIVATE KEY":                 "block 1 of its Secret is a private key: put the public one in its place",
		"CERTIFICATE":                    "block 1 of its Secret is a certificate and not a public key",
		"RSA PUBLIC KEY":                 `block 1 of its Secret, "RSA PUBLIC KEY" in PEM, is not a public key as cosign writes it`,
	} {
		content := pem.EncodeToMemory(&pem.Block{Type: found, Bytes: []byte("content")})
		set := imagepolicy.Compile([]policyv1alpha1.ImagePolicy{policyOf("p", policyv1alpha1.ImagePolicySpec{Authorities: []policyv1alpha1.Authority{byKey("key", "")}})},
			imagepolicy.InNamespace("system", map[string]map[string][]byte{"key": {"cosign.pub": content}}))
		if problems, _ := set.Problems("p"); len(problems) != 1 || !strings.Contains(problems[0], want) || strings.Contains(problems[0], "content") {
			t.Errorf("%s: problems = %q, want %q", found, problems, want)
		}
	}
}

// TestLongNames: what whoever signs can choose is cut.
func TestLongNames(t *testing.T) {
	t.Parallel()
	now := time.Now()
	sigstore, err := signing.NewSigstore(now)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := sigstore.TrustedRoot()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := sigstore.NewSigner("https://example.com/"+strings.Repeat("x", 1_000), "https://"+strings.Repeat("y", 1_000), now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	set := imagepolicy.Compile([]policyv1alpha1.ImagePolicy{policyOf("p", policyv1alpha1.ImagePolicySpec{Authorities: []policyv1alpha1.Authority{byIdentity("root", acme)}})},
		imagepolicy.InNamespace("system", map[string]map[string][]byte{"root": {"trusted_root.json": trusted}}))
	judge := func(all ...imagepolicy.Evidence) string {
		t.Helper()
		got := set.For("registry.test/acme").Judge(t.Context(), imagepolicy.Subject{image}, all)
		if len(got.Refusals) != 1 {
			t.Fatalf("verdict = %+v", got)
		}
		return got.Refusals[0]
	}
	if got := judge(evidence(t)(signer.Old(image))); len(got) > 800 || !strings.Contains(got, "xxx") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	long := imagepolicy.Evidence{MediaType: imagepolicy.MediaTypeBundle + ".v0.3+json", Data: []byte(`{"mediaType":"` + strings.Repeat("z", 10_000) + `"}`)}
	if got := judge(long); len(got) > 400 || !strings.Contains(got, "no signature that can be read") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
