package selfissued

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"time"
)

// backdate lets clocks differ.
const backdate = time.Hour

// Terms are what a certificate is made to. Every field is required.
type Terms struct {
	// Subject tells people what the certificate is for.
	Subject string
	// Names are those of the server, which may be addresses.
	Names []string
	// Lifetime is that of the certificate and of its authority.
	Lifetime time.Duration
}

// Issued is a certificate for servers as PEM, with its key and its authority.
type Issued struct{ Certificate, Key, Authority []byte }

// Issue makes a certificate, and an authority that signed it and can sign
// nothing else. It fails if no certificate can be for the names: one that never
// fits would be replaced for ever.
func Issue(terms Terms, now time.Time) (Issued, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Issued{}, fmt.Errorf("making a key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Issued{}, fmt.Errorf("making a key: %w", err)
	}
	authority := authorityTemplate(terms, now)
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return Issued{}, fmt.Errorf("making a certificate authority: %w", err)
	}
	// With what was made of it, the certificate gets its key identifier.
	if authority, err = x509.ParseCertificate(authorityDER); err != nil {
		return Issued{}, fmt.Errorf("making a certificate authority: %w", err)
	}
	certificateDER, err := x509.CreateCertificate(rand.Reader, serverTemplate(terms, now), authority, key.Public(), authorityKey)
	if err != nil {
		return Issued{}, fmt.Errorf("making a certificate for %q: %w", terms.Names, err)
	}
	if err := verify(certificateDER, terms.Names); err != nil {
		return Issued{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Issued{}, fmt.Errorf("encoding a key: %w", err)
	}
	return Issued{
		Certificate: encode(typeCertificate, certificateDER),
		Key:         encode(typePrivateKey, keyDER),
		Authority:   encode(typeCertificate, authorityDER),
	}, nil
}

func verify(certificateDER []byte, names []string) error {
	leaf, err := x509.ParseCertificate(certificateDER)
	if err != nil {
		return fmt.Errorf("reading a certificate for %q: %w", names, err)
	}
	if !Covers(leaf, names) {
		return fmt.Errorf("no certificate can be for %q", names)
	}
	return nil
}

func authorityName(subject string) string { return subject + " authority" }

func authorityTemplate(terms Terms, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: authorityName(terms.Subject)},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(terms.Lifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
}

func serverTemplate(terms Terms, now time.Time) *x509.Certificate {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: terms.Subject},
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(terms.Lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range slices.Sorted(slices.Values(terms.Names)) {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return template
}

const (
	typeCertificate = "CERTIFICATE"
	typePrivateKey  = "PRIVATE KEY"
)

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
