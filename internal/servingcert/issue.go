package servingcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// lifetime is that of a certificate and of its authority.
	lifetime = 90 * 24 * time.Hour
	// backdate lets the clocks of replicas differ.
	backdate = time.Hour
)

// Names returns the names under which the server at external is reached: its
// host and, when that is the name of a Service, the other form of it.
func Names(external *url.URL) []string {
	const service, cluster = ".svc", ".cluster.local"
	host := strings.ToLower(external.Hostname())
	switch {
	case strings.HasSuffix(host, service):
		return []string{host, host + cluster}
	case strings.HasSuffix(host, service+cluster):
		return []string{strings.TrimSuffix(host, cluster), host}
	}
	return []string{host}
}

// issued is a certificate for servers as PEM, with its key and its authority.
type issued struct{ certificate, key, authority []byte }

// issue makes a certificate for names, which may be addresses, and an authority
// that signed it and can sign nothing else.
func issue(names []string, now time.Time) (issued, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issued{}, fmt.Errorf("making a key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issued{}, fmt.Errorf("making a key: %w", err)
	}
	authority := authorityTemplate(now)
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return issued{}, fmt.Errorf("making a certificate authority: %w", err)
	}
	// With what was made of it, the certificate gets its key identifier.
	if authority, err = x509.ParseCertificate(authorityDER); err != nil {
		return issued{}, fmt.Errorf("making a certificate authority: %w", err)
	}
	certificateDER, err := x509.CreateCertificate(rand.Reader, serverTemplate(names, now), authority, key.Public(), authorityKey)
	if err != nil {
		return issued{}, fmt.Errorf("making a certificate for %q: %w", names, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return issued{}, fmt.Errorf("encoding a key: %w", err)
	}
	return issued{
		certificate: encode(typeCertificate, certificateDER),
		key:         encode(typePrivateKey, keyDER),
		authority:   encode(typeCertificate, authorityDER),
	}, nil
}

func authorityTemplate(now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: "operator-controller catalog server authority"},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(lifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
}

func serverTemplate(names []string, now time.Time) *x509.Certificate {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "operator-controller catalog server"},
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
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
