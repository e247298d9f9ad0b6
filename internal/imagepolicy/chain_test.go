package imagepolicy_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// TestChains: certificates between an authority of one's own and the signer may come with the
// signature, as cosign pushes them. Those of Fulcio are in the trusted root, or count nothing.
func TestChains(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	certificates := string(s.secrets["authority"]["ca.crt"])
	end := strings.Index(certificates, "-----END CERTIFICATE-----\n") + len("-----END CERTIFICATE-----\n")
	root, between := certificates[:end], certificates[end:]
	block, _ := pem.Decode([]byte(between))
	s.secrets["root alone"] = map[string][]byte{
		"ca.crt": []byte(root),
		"trusted_root.json": edited(t, s.secrets["root"]["trusted_root.json"], func(trusted map[string]any) {
			authority := at[map[string]any](t, at[[]any](t, trusted["certificateAuthorities"])[0])
			chain := at[map[string]any](t, authority["certChain"])
			chain["certificates"] = at[[]any](t, chain["certificates"])[1:]
		}),
	}
	own, fulcio := byCertificate("root alone", policyv1alpha1.Subject{Subject: workflow}), byIdentity("root alone", acme)
	for name, tc := range map[string]struct {
		by      policyv1alpha1.Authority
		has     imagepolicy.Evidence
		refusal string
	}{
		"own authority":                     {own, chained(t, evidence(t)(s.private.New(image, imagepolicy.PredicateSignature)), block.Bytes, 1), ""},
		"own authority, nothing in between": {own, chained(t, evidence(t)(s.private.New(image, imagepolicy.PredicateSignature)), block.Bytes, 0), "leaf certificate verification failed"},
		"as many as there may be":           {own, chained(t, evidence(t)(s.private.New(image, imagepolicy.PredicateSignature)), block.Bytes, 63), ""},
		"too many":                          {own, chained(t, evidence(t)(s.private.New(image, imagepolicy.PredicateSignature)), block.Bytes, 64), "its bundle has more than 64 certificates"},
		"Fulcio":                            {fulcio, chained(t, evidence(t)(s.ours.New(image, imagepolicy.PredicateSignature)), block.Bytes, 1), "leaf certificate verification failed"},
		"Fulcio, before cosign 3":           {fulcio, evidence(t)(s.ours.Old(image)), "leaf certificate verification failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := policyv1alpha1.ImagePolicySpec{Authorities: []policyv1alpha1.Authority{tc.by}}
			got := s.compile(policyOf("p", spec)).For("registry.test/acme/pkg").Judge(t.Context(), imagepolicy.Subject{image}, list(tc.has))
			if got.Refused != (tc.refusal != "") || got.Refused && !strings.Contains(got.Refusals[0], tc.refusal) {
				t.Errorf("verdict = %+v, want %q", got, tc.refusal)
			}
		})
	}
}

// chained is a bundle whose certificate is followed by another one, so many times.
func chained(t *testing.T, bundle imagepolicy.Evidence, certificate []byte, times int) imagepolicy.Evidence {
	t.Helper()
	bundle.Data = edited(t, bundle.Data, func(content map[string]any) {
		material := at[map[string]any](t, content["verificationMaterial"])
		next := map[string]any{"rawBytes": base64.StdEncoding.EncodeToString(certificate)}
		chain := append([]any{material["certificate"]}, slices.Repeat([]any{next}, times)...)
		delete(material, "certificate")
		material["x509CertificateChain"] = map[string]any{"certificates": chain}
	})
	return bundle
}

func edited(t *testing.T, data []byte, edit func(map[string]any)) []byte {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		t.Fatal(err)
	}
	edit(content)
	data, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// at is a part of JSON of which the type is known.
func at[T any](t *testing.T, part any) T {
	t.Helper()
	typed, ok := part.(T)
	if !ok {
		t.Fatalf("it is %T: %v", part, part)
	}
	return typed
}
