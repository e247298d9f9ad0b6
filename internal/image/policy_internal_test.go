package image

import (
	"encoding/json"
	"slices"
	"testing"

	"go.podman.io/image/v5/signature"
)

// TestFilesOfAPolicy builds every rule that names files with the constructors of the
// library, so that none is forgotten that its format has.
func TestFilesOfAPolicy(t *testing.T) {
	t.Parallel()
	must := func(rule signature.PolicyRequirement, err error) signature.PolicyRequirement {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return rule
	}
	identity := signature.NewPRMMatchRepository()
	fulcio, err := signature.NewPRSigstoreSignedFulcio(signature.PRSigstoreSignedFulcioWithCAPath("/fulcio"),
		signature.PRSigstoreSignedFulcioWithOIDCIssuer("i"), signature.PRSigstoreSignedFulcioWithSubjectEmail("s"))
	if err != nil {
		t.Fatal(err)
	}
	pki, err := signature.NewPRSigstoreSignedPKI(signature.PRSigstoreSignedPKIWithCARootsPath("/roots"),
		signature.PRSigstoreSignedPKIWithCAIntermediatesPath("/intermediates"), signature.PRSigstoreSignedPKIWithSubjectEmail("s"))
	if err != nil {
		t.Fatal(err)
	}
	const gpg = signature.SBKeyTypeGPGKeys
	rules := signature.PolicyRequirements{
		must(signature.NewPRSignedByKeyPath(gpg, "/gpg", identity)),
		must(signature.NewPRSignedByKeyPaths(gpg, []string{"/gpg-one", "/gpg-two"}, identity)),
		must(signature.NewPRSigstoreSigned(signature.PRSigstoreSignedWithKeyPath("/key"),
			signature.PRSigstoreSignedWithRekorPublicKeyPath("/rekor"), signature.PRSigstoreSignedWithSignedIdentity(identity))),
		must(signature.NewPRSigstoreSigned(signature.PRSigstoreSignedWithKeyPaths([]string{"/key-one", "/key"}),
			signature.PRSigstoreSignedWithRekorPublicKeyPaths([]string{"/rekor-one"}), signature.PRSigstoreSignedWithSignedIdentity(identity))),
		must(signature.NewPRSigstoreSigned(signature.PRSigstoreSignedWithFulcio(fulcio),
			signature.PRSigstoreSignedWithRekorPublicKeyPath("/rekor"), signature.PRSigstoreSignedWithSignedIdentity(identity))),
		must(signature.NewPRSigstoreSigned(signature.PRSigstoreSignedWithPKI(pki), signature.PRSigstoreSignedWithSignedIdentity(identity))),
	}
	policy := signature.Policy{
		Default:    signature.PolicyRequirements{signature.NewPRReject()},
		Transports: map[string]signature.PolicyTransportScopes{"docker": {"registry.test/somePath": rules}},
	}
	data, err := json.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	got, err := namedFiles(data)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/fulcio", "/gpg", "/gpg-one", "/gpg-two", "/intermediates", "/key", "/key-one", "/rekor", "/rekor-one", "/roots"}
	if !slices.Equal(got, want) {
		t.Errorf("files = %v, want %v", got, want)
	}
}
