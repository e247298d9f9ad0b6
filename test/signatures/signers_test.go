package signatures_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
)

// Who signs without a key, and who vouches for it.
const (
	workflow = "https://github.com/acme/pkg/.github/workflows/release.yaml@refs/tags/v1.2.3"
	issuer   = "https://token.actions.githubusercontent.com"
)

// century is for how long certificates are valid whose signatures are kept as test data.
const century = 100 * 365 * 24 * time.Hour

// signer is one way to have cosign sign, and who a policy has to name for that.
type signer struct {
	// flags are those by which cosign signs so.
	flags func(format string) []string

	trusted authority

	// called is a part of how a verdict calls the signer.
	called string

	// other is somebody else of the same kind, and refusal why this signature does not count for
	// who trusts that one.
	other   authority
	refusal string
}

// authority is one of a policy, with its Secret.
type authority struct {
	policyv1alpha1.Authority

	secret map[string]string
}

// policy names the signer, and demands attestations.
func (s signer) policy(t *testing.T, predicateTypes ...string) string {
	t.Helper()
	return s.trusted.policy(t, predicateTypes...)
}

// stranger is a policy that names somebody else.
func (s signer) stranger(t *testing.T) string {
	t.Helper()
	return s.other.policy(t)
}

func (a authority) policy(t *testing.T, predicateTypes ...string) string {
	t.Helper()
	policy := policyv1alpha1.ImagePolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: "ImagePolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: policyv1alpha1.ImagePolicySpec{
			Match: []policyv1alpha1.ImageMatch{{Prefix: "registry.test"}}, Authorities: []policyv1alpha1.Authority{a.Authority},
		},
	}
	for _, demanded := range predicateTypes {
		policy.Spec.Attestations = append(policy.Spec.Attestations, policyv1alpha1.Attestation{PredicateType: demanded})
	}
	secret := corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "trusted"}, StringData: a.secret,
	}
	first, err := yaml.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	second, err := yaml.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s---\n%s", first, second)
}

// trusted is the Secret that all these policies name.
var trusted = policyv1alpha1.SecretReference{Name: "trusted"}

func byKey(public string) authority {
	return authority{policyv1alpha1.Authority{Name: "key", Key: &policyv1alpha1.KeyAuthority{SecretRef: trusted}}, map[string]string{"cosign.pub": public}}
}

func byCertificate(subject string, certificates []byte) authority {
	return authority{policyv1alpha1.Authority{Name: "certificate", Certificate: &policyv1alpha1.CertificateAuthority{
		SecretRef: trusted, Subjects: []policyv1alpha1.Subject{{Subject: subject}},
	}}, map[string]string{"ca.crt": string(certificates)}}
}

func byIdentity(subject string, trustedRoot []byte) authority {
	return authority{policyv1alpha1.Authority{Name: "identity", Keyless: &policyv1alpha1.KeylessAuthority{
		TrustedRoot: policyv1alpha1.TrustedRoot{SecretRef: trusted}, Identities: []policyv1alpha1.Identity{{Issuer: issuer, Subject: subject}},
	}}, map[string]string{"trusted_root.json": string(trustedRoot)}}
}

// newSigners makes all signers that there are, by name.
func newSigners(t *testing.T) map[string]signer {
	t.Helper()
	dir := t.TempDir()
	_, stranger, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]signer{}
	for name, generate := range map[string]func() (crypto.Signer, error){
		"p256":    func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) },
		"p384":    func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) },
		"p521":    func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P521(), rand.Reader) },
		"rsa":     func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) },
		"ed25519": func() (crypto.Signer, error) { _, key, err := ed25519.GenerateKey(rand.Reader); return key, err },
	} {
		key, err := generate()
		if err != nil {
			t.Fatal(err)
		}
		private, public := importKey(t, dir, name, key)
		made[name] = signer{
			flags:   withoutLog("--key", private),
			trusted: byKey(public), called: `authority "key"`,
			other: byKey(string(stranger)), refusal: "it is not signed with its key",
		}
	}
	made["certificate"] = newCertified(t, dir)
	made["keyless"] = newKeyless(t, dir, workflow)
	return made
}

// withoutLog are flags of cosign to sign without asking anybody.
func withoutLog(flags ...string) func(string) []string {
	return func(string) []string {
		return append(slices.Clone(flags), "--use-signing-config=false", "--tlog-upload=false")
	}
}

// importKey has cosign encrypt a key, and gives the file of it and the public key.
func importKey(t *testing.T, dir, name string, key crypto.Signer) (private, public string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	plain, prefix := filepath.Join(dir, name+".pem"), filepath.Join(dir, name)
	write(t, plain, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	cosign(t, dir, "import-key-pair", "--key", plain, "--output-key-prefix", prefix)
	data, err := os.ReadFile(prefix + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return prefix + ".key", string(data)
}

// newCertified signs with a certificate of an authority of its own, and pushes the one in between.
func newCertified(t *testing.T, dir string) signer {
	t.Helper()
	const subject = "https://corp.example/build"
	root, rootKey := certify(t, "root", nil, nil)
	between, betweenKey := certify(t, "between", root, rootKey)
	leaf, key := certify(t, subject, between, betweenKey)
	stranger, _ := certify(t, "root", nil, nil)
	private, _ := importKey(t, dir, "certified", key)
	certificate, chain := filepath.Join(dir, "leaf.crt"), filepath.Join(dir, "chain.crt")
	write(t, certificate, string(encode(leaf)))
	write(t, chain, string(encode(between))+string(encode(root)))
	return signer{
		flags:   withoutLog("--key", private, "--certificate", certificate, "--certificate-chain", chain),
		trusted: byCertificate(subject, encode(root)), called: subject,
		other: byCertificate(subject, encode(stranger)), refusal: "certificate",
	}
}

// certify makes a certificate: of an authority, or of who signs code if the name is a URL.
func certify(t *testing.T, name string, by *x509.Certificate, byKey crypto.Signer) (*x509.Certificate, crypto.Signer) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(century), BasicConstraintsValid: true,
	}
	if subject, err := url.Parse(name); err == nil && subject.IsAbs() {
		template.Subject, template.URIs = pkix.Name{}, []*url.URL{subject}
		template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
	} else {
		template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	}
	if by == nil {
		by, byKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), byKey)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

func encode(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// newKeyless signs as a workflow without a key: with a certificate of Fulcio, and an entry of Rekor.
func newKeyless(t *testing.T, dir, workflow string) signer {
	t.Helper()
	sigstore, err := signing.NewSigstore(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(service{sigstore}.handler())
	t.Cleanup(server.Close)
	root, err := sigstore.TrustedRoot()
	if err != nil {
		t.Fatal(err)
	}
	token, err := newToken(workflow, issuer)
	if err != nil {
		t.Fatal(err)
	}
	rootFile := filepath.Join(dir, "trusted_root.json")
	write(t, rootFile, string(root))
	return signer{
		flags: func(string) []string {
			return []string{
				"--use-signing-config=false", "--fulcio-url", server.URL, "--rekor-url", server.URL, "--trusted-root", rootFile, "--identity-token", token,
			}
		},
		trusted: byIdentity(workflow, root), called: `"` + workflow + `" of "` + issuer + `"`,
		other: byIdentity("https://github.com/mallory/pkg", root), refusal: "who is none of its identities",
	}
}
