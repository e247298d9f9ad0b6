package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

// certificateLifetime outlives every cluster that somebody forgets to stop.
const certificateLifetime = 10 * 365 * 24 * time.Hour

// clockSkew is how far the clocks of two machines may differ.
const clockSkew = time.Hour

// authority signs every certificate of one cluster.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	keyPair
}

// keyPair is a certificate and its private key, PEM encoded.
type keyPair struct {
	certPEM, keyPEM []byte
}

// subject is who a certificate is for.
type subject struct {
	// user and groups are what RBAC sees of a client.
	user   string
	groups []string
	// hosts and addresses are where a server is reached; clients have none.
	hosts     []string
	addresses []netip.Addr
}

func newAuthority() (*authority, error) {
	template := certificateTemplate(subject{user: "operator-controller-test-cluster"})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageCertSign
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(pair.certPEM)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading certificate authority: %w", err)
	}
	return &authority{certificate: certificate, key: key, keyPair: pair}, nil
}

// issue makes a certificate for the subject that serves as client and, if it
// has hosts or addresses, as server.
func (a *authority) issue(to subject) (keyPair, error) {
	template := certificateTemplate(to)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	template.DNSNames = to.hosts
	for _, address := range to.addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	if len(to.hosts)+len(to.addresses) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	key, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	return sign(template, a.certificate, key, a.key)
}

func certificateTemplate(to subject) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: to.user, Organization: to.groups},
		NotBefore: now.Add(-clockSkew),
		NotAfter:  now.Add(certificateLifetime),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating key: %w", err)
	}
	return key, nil
}

func sign(template, issuer *x509.Certificate, key, issuerKey *ecdsa.PrivateKey) (keyPair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), issuerKey)
	if err != nil {
		return keyPair{}, fmt.Errorf("signing certificate of %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return keyPair{certPEM: certPEM, keyPEM: keyPEM}, nil
}

// encodeKey writes SEC 1, the only form of a private key from which the API
// server also takes the public half.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// write writes both halves to <path>.crt and <path>.key.
func (p keyPair) write(path string) error {
	if err := os.WriteFile(path+".crt", p.certPEM, 0o600); err != nil {
		return fmt.Errorf("writing certificate: %w", err)
	}
	if err := os.WriteFile(path+".key", p.keyPEM, 0o600); err != nil {
		return fmt.Errorf("writing key: %w", err)
	}
	return nil
}
