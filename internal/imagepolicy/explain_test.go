package imagepolicy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// TestExplain: each authority says for itself who has signed or why that does not count, and the
// verdict is that of Judge.
func TestExplain(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	at := func(place string, made imagepolicy.Evidence, err error) imagepolicy.Evidence {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		made.Place = place
		return made
	}
	old, err := s.theirs.Old(image)
	signed := at("old", old, err)
	attested, err := s.key.New(image, provenance)
	attestation := at("new", attested, err)
	spec := policyv1alpha1.ImagePolicySpec{Authorities: []policyv1alpha1.Authority{byKey("key", ""), byIdentity("root", acme, policyv1alpha1.Identity{Issuer: issuer, Subject: stranger})}}
	only := policyv1alpha1.ImagePolicySpec{Authorities: spec.Authorities[:1], Mode: policyv1alpha1.ModeWarn}
	demands := spec
	demands.Attestations = []policyv1alpha1.Attestation{{PredicateType: provenance}}
	gone := policyv1alpha1.ImagePolicySpec{Authorities: []policyv1alpha1.Authority{byKey("gone", "")}}
	const accepted, noKey = `signed by "` + stranger + `" of "` + issuer + `"`, "it is not signed with its key"
	for name, tc := range map[string]struct {
		spec     policyv1alpha1.ImagePolicySpec
		has      []imagepolicy.Evidence
		outcome  imagepolicy.Outcome
		mode     policyv1alpha1.Mode
		findings []string // of signatures, and then of attestations
		found    []string
	}{
		"signed by one of two": {spec, list(signed), imagepolicy.Accepted, policyv1alpha1.ModeEnforce, []string{"key: " + noKey, "ci: " + accepted}, []string{"old signature"}},
		"only warns":           {only, list(signed), imagepolicy.Warned, policyv1alpha1.ModeWarn, []string{"key: " + noKey}, []string{"old signature"}},
		"unsigned":             {spec, nil, imagepolicy.Refused, policyv1alpha1.ModeEnforce, []string{"key: it has no signature", "ci: it has no signature"}, nil},
		"attested": {
			demands, list(signed, attestation), imagepolicy.Accepted, policyv1alpha1.ModeEnforce,
			[]string{"key: " + noKey, "ci: " + accepted, "key: signed by its key", "ci: error"},
			[]string{"old signature", "new " + provenance},
		},
		"V12: not attested": {
			demands, list(signed), imagepolicy.Refused, policyv1alpha1.ModeEnforce,
			[]string{"key: " + noKey, "ci: " + accepted, "key: there is none", "ci: there is none"},
			[]string{"old signature"},
		},
		"cannot be used": {gone, list(signed), imagepolicy.Refused, policyv1alpha1.ModeEnforce, []string{`key: there is no Secret "gone"`}, []string{"old signature"}},
		"cannot be read": {
			only, list(imagepolicy.Evidence{MediaType: imagepolicy.MediaTypeSimpleSigning, Data: []byte("{"), Place: "bad"}), imagepolicy.Warned, policyv1alpha1.ModeWarn,
			[]string{"key: it has no signature"},
			[]string{"bad its payload is malformed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := s.compile(policyOf("p", tc.spec)).For("registry.test/acme/pkg")
			got, judged := rule.Explain(t.Context(), imagepolicy.Subject{image}, tc.has), rule.Judge(t.Context(), imagepolicy.Subject{image}, tc.has)
			if got.Verdict.Outcome() != tc.outcome || !slices.Equal(got.Verdict.Refusals, judged.Refusals) || !slices.Equal(got.Verdict.Signers, judged.Signers) {
				t.Errorf("verdict = %+v, that of Judge is %+v", got.Verdict, judged)
			}
			if got.Prefix != "registry.test/acme" || len(got.Policies) != 1 || got.Policies[0].Name != "p" || got.Policies[0].Mode != tc.mode ||
				got.Policies[0].Accepted != (tc.outcome == imagepolicy.Accepted) {
				t.Fatalf("policies = %+v by %q", got.Policies, got.Prefix)
			}
			findings := got.Policies[0].Signatures
			for _, demanded := range got.Policies[0].Attestations {
				findings = append(findings, demanded.Findings...)
			}
			var found []string
			for _, evidence := range got.Found {
				what := evidence.PredicateType + evidence.Problem
				if what == "" {
					what = "signature"
				}
				found = append(found, evidence.Place+" "+what)
			}
			wantPrefixes(t, "findings", textsOf(findings), tc.findings)
			wantPrefixes(t, "found", found, tc.found)
		})
	}
}

// textsOf has "error" for the reasons of Sigstore's library.
func textsOf(findings []imagepolicy.Finding) []string {
	var texts []string
	for _, finding := range findings {
		text := finding.Authority + ": " + finding.Reason
		if finding.Signer != "" {
			text += "signed by " + finding.Signer
		}
		texts = append(texts, text)
	}
	return texts
}

func wantPrefixes(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s = %q, want %q", what, got, want)
	}
	for i := range want {
		if prefix := strings.TrimSuffix(want[i], "error"); !strings.HasPrefix(got[i], prefix) || want[i] != prefix && len(got[i]) == len(prefix) {
			t.Errorf("%s: %q, want %q", what, got[i], want[i])
		}
	}
}

// TestExplainNothing: an image that no policy is about is accepted.
func TestExplainNothing(t *testing.T) {
	t.Parallel()
	got := (imagepolicy.Rule{}).Explain(t.Context(), imagepolicy.Subject{image}, nil)
	if got.Verdict.Outcome() != imagepolicy.Accepted || len(got.Policies) != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestCertificates: a set knows when those end that are trusted, and for which this matters to
// what was signed before.
func TestCertificates(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	set := s.compile(policyOf("p", policyv1alpha1.ImagePolicySpec{Authorities: []policyv1alpha1.Authority{
		byKey("key", ""), byCertificate("authority", policyv1alpha1.Subject{Subject: workflow}), byIdentity("root", acme),
	}}))
	got := set.Certificates("p")
	if len(got) != 2 || got[0].Authority != "ca" || got[0].CountsThen || got[1].Authority != "ci" || !got[1].CountsThen {
		t.Fatalf("certificates = %+v", got)
	}
	// The trusted root of the tests says that its authority has been at work for no longer.
	if !got[0].End.After(got[1].End) || got[1].End.After(time.Now().Add(2*time.Hour)) || got[0].Subject == "" {
		t.Errorf("certificates = %+v", got)
	}
}
