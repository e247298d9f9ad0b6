package imagepolicy

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// The keys in Secrets that are looked at if a policy names none: as cosign, cert-manager and
// Sigstore call such files.
const (
	usualKey         = "cosign.pub"
	usualCertificate = "ca.crt"
	usualTrustedRoot = "trusted_root.json"
)

// Bounds of what one Secret has for an authority: each key is a try of each signature.
const (
	maxKeys         = 16
	maxCertificates = 64
)

// authority is one of a policy, ready to judge by.
type authority struct {
	name string

	// verifiers are tried one after the other: one for each key, or one for all certificates.
	verifiers []*verify.Verifier

	// signers are whose certificates are accepted; nil for an authority with keys.
	signers []signer

	// certificates are those at the top that are trusted; nil for an authority with keys.
	certificates []TrustedCertificate

	// unusable says why there are no verifiers.
	unusable error
}

// TrustedCertificate is one of an authority for certificates that a policy trusts.
type TrustedCertificate struct {
	// Authority is the one of the policy.
	Authority string

	// Subject is whose certificate it is.
	Subject string

	// End is when it is not trusted any more.
	End time.Time

	// CountsThen says that what was signed before the end still counts after it.
	CountsThen bool
}

// signer matches the name in a certificate, and who vouches for it.
type signer struct{ subject, issuer func(string) bool }

func newAuthority(wanted policyv1alpha1.Authority, value func(policyv1alpha1.SecretReference, string) ([]byte, error)) authority {
	made := authority{name: wanted.Name}
	switch {
	case wanted.Key != nil:
		made.unusable = made.useKeys(value(wanted.Key.SecretRef, usualKey))
	case wanted.Certificate != nil:
		made.unusable = made.useCertificates(value(wanted.Certificate.SecretRef, usualCertificate))
		made.addSubjects(wanted.Certificate.Subjects)
	case wanted.Keyless != nil:
		made.unusable = made.useTrustedRoot(value(wanted.Keyless.TrustedRoot.SecretRef, usualTrustedRoot))
		made.addIdentities(wanted.Keyless.Identities)
	default:
		made.unusable = errors.New("it has neither a key, nor a certificate, nor identities")
	}
	if made.unusable != nil {
		made.verifiers = nil
	}
	return made
}

// fail notes the first reason why an authority cannot be used.
func (a *authority) fail(err error) {
	if a.unusable == nil {
		a.unusable = err
	}
}

func (a *authority) addSubjects(subjects []policyv1alpha1.Subject) {
	for _, wanted := range subjects {
		subject, err := matcher(wanted.Subject, wanted.SubjectRegExp)
		if err != nil {
			a.fail(err)
			continue
		}
		a.signers = append(a.signers, signer{subject: subject, issuer: func(string) bool { return true }})
	}
}

func (a *authority) addIdentities(identities []policyv1alpha1.Identity) {
	for _, wanted := range identities {
		subject, err := matcher(wanted.Subject, wanted.SubjectRegExp)
		if err != nil {
			a.fail(err)
			continue
		}
		issuer, err := matcher(wanted.Issuer, wanted.IssuerRegExp)
		if err != nil {
			a.fail(err)
			continue
		}
		a.signers = append(a.signers, signer{subject: subject, issuer: issuer})
	}
}

// matcher matches one text, or all in which an expression is found.
func matcher(text, expression string) (func(string) bool, error) {
	if text != "" {
		return func(found string) bool { return found == text }, nil
	}
	if expression == "" {
		return nil, errors.New("an identity is empty")
	}
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("%q is not a regular expression: %w", expression, err)
	}
	return compiled.MatchString, nil
}

// useKeys takes public keys in PEM.
func (a *authority) useKeys(data []byte, err error) error {
	if err != nil {
		return err
	}
	blocks, err := blocksOf(data, maxKeys, "public key")
	if err != nil {
		return err
	}
	for i, block := range blocks {
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return notPublicKey(i+1, block.Type)
		}
		verifiers, err := verifiersOf(key)
		if err != nil {
			return fmt.Errorf("public key %d of its Secret is of a kind that is not supported", i+1)
		}
		for _, verifier := range verifiers {
			material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
				return root.NewExpiringKey(verifier, time.Time{}, time.Time{}), nil
			})
			made, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
			if err != nil {
				return fmt.Errorf("public key %d of its Secret cannot be used: %w", i+1, err)
			}
			a.verifiers = append(a.verifiers, made)
		}
	}
	return nil
}

// verifiersOf are the ways in which cosign signs with a key. It began with a SHA-256 sum whatever the
// curve, and with the text itself for Ed25519. By now it takes the sum that fits the curve, and a
// SHA-512 sum for Ed25519. A signature does not say which it is.
func verifiersOf(key crypto.PublicKey) ([]signature.Verifier, error) {
	first, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	var by signature.LoadOption
	switch key := key.(type) {
	case ed25519.PublicKey:
		by = options.WithED25519ph()
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P384():
			by = options.WithHash(crypto.SHA384)
		case elliptic.P521():
			by = options.WithHash(crypto.SHA512)
		}
	}
	if by == nil {
		return []signature.Verifier{first}, nil
	}
	second, err := signature.LoadVerifierWithOpts(key, by)
	return []signature.Verifier{first, second}, err
}

// notPublicKey says what is there in place of a public key, by the type that PEM gives it.
func notPublicKey(number int, found string) error {
	switch {
	case strings.HasSuffix(found, "PRIVATE KEY"):
		return fmt.Errorf("block %d of its Secret is a private key: put the public one in its place, such as cosign.pub, and keep the private one off the cluster", number)
	case found == "CERTIFICATE":
		return fmt.Errorf("block %d of its Secret is a certificate and not a public key", number)
	default:
		return fmt.Errorf("block %d of its Secret, %s in PEM, is not a public key as cosign writes it", number, excerpt.Quote(found))
	}
}

// useCertificates takes certificates in PEM: those that have signed themselves are trusted.
func (a *authority) useCertificates(data []byte, err error) error {
	if err != nil {
		return err
	}
	blocks, err := blocksOf(data, maxCertificates, "certificate")
	if err != nil {
		return err
	}
	var roots, between []*x509.Certificate
	for i, block := range blocks {
		parsed, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			return fmt.Errorf("block %d of its Secret is not a certificate", i+1)
		case isRoot(parsed):
			roots = append(roots, parsed)
			a.certificates = append(a.certificates, TrustedCertificate{Authority: a.name, Subject: parsed.Subject.String(), End: parsed.NotAfter})
		default:
			between = append(between, parsed)
		}
	}
	if len(roots) == 0 {
		return errors.New("its Secret has no certificate of an authority that has signed itself")
	}
	made, err := verify.NewVerifier(certificateMaterial{BaseTrustedMaterial: &root.BaseTrustedMaterial{}, roots: roots, between: between}, verify.WithCurrentTime(), verify.WithoutStatementPredicate())
	if err != nil {
		return fmt.Errorf("its certificates cannot be used: %w", err)
	}
	a.verifiers = append(a.verifiers, made)
	return nil
}

// certificateMaterial are the certificates of an authority of one's own, which has no logs.
type certificateMaterial struct {
	*root.BaseTrustedMaterial
	roots, between []*x509.Certificate
}

// FulcioCertificateAuthorities are trusted to issue certificates.
func (m certificateMaterial) FulcioCertificateAuthorities() []root.CertificateAuthority {
	all := make([]root.CertificateAuthority, len(m.roots))
	for i, trusted := range m.roots {
		all[i] = &root.FulcioCertificateAuthority{Root: trusted, Intermediates: m.between}
	}
	return all
}

// useTrustedRoot takes a trusted root. All that it has is demanded.
func (a *authority) useTrustedRoot(data []byte, err error) error {
	if err != nil {
		return err
	}
	material, err := root.NewTrustedRootFromJSON(data)
	if err != nil {
		return errors.New("its Secret has no trusted root: a file trusted_root.json of Sigstore is needed, with the media type " + root.TrustedRootMediaType01)
	}
	if len(material.FulcioCertificateAuthorities()) == 0 {
		return errors.New("its trusted root has no certificate authority")
	}
	for _, trusted := range material.FulcioCertificateAuthorities() {
		if fulcio, ok := trusted.(*root.FulcioCertificateAuthority); ok && fulcio.Root != nil {
			end := fulcio.Root.NotAfter
			if until := fulcio.ValidityPeriodEnd; !until.IsZero() && until.Before(end) {
				end = until
			}
			a.certificates = append(a.certificates, TrustedCertificate{Authority: a.name, Subject: fulcio.Root.Subject.String(), End: end, CountsThen: true})
		}
	}
	if len(material.RekorLogs())+len(material.TimestampingAuthorities()) == 0 {
		return errors.New("its trusted root has neither a log of signatures nor an authority for timestamps, so that nobody knows when something was signed")
	}
	// When it was signed is known from a log or from an authority for timestamps.
	demanded := []verify.VerifierOption{verify.WithObserverTimestamps(1), verify.WithoutStatementPredicate()}
	if len(material.RekorLogs()) > 0 {
		demanded = append(demanded, verify.WithTransparencyLog(1))
	}
	if len(material.CTLogs()) > 0 {
		demanded = append(demanded, verify.WithSignedCertificateTimestamps(1))
	}
	made, err := verify.NewVerifier(rootMaterial{material}, demanded...)
	if err != nil {
		return fmt.Errorf("its trusted root cannot be used: %w", err)
	}
	a.verifiers = append(a.verifiers, made)
	return nil
}

// rootMaterial is a trusted root whose authorities take no certificates from a signature: what
// lies between them and a signer is in the trusted root.
type rootMaterial struct{ *root.TrustedRoot }

// FulcioCertificateAuthorities are trusted to issue certificates.
func (m rootMaterial) FulcioCertificateAuthorities() []root.CertificateAuthority {
	all := m.TrustedRoot.FulcioCertificateAuthorities()
	made := make([]root.CertificateAuthority, len(all))
	for i, trusted := range all {
		made[i] = closedAuthority{trusted}
	}
	return made
}

// closedAuthority hides from the library that it could add certificates.
type closedAuthority struct{ root.CertificateAuthority }

// blocksOf reads blocks of PEM: at least one, and no more than most.
func blocksOf(data []byte, most int, what string) ([]*pem.Block, error) {
	var blocks []*pem.Block
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if blocks = append(blocks, block); len(blocks) > most {
			return nil, fmt.Errorf("its Secret has more than %d blocks of PEM", most)
		}
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("its Secret has no %s in PEM", what)
	}
	return blocks, nil
}
