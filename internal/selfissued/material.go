package selfissued

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The keys of the Secret. Its current certificate is where other programs look
// for one, and so are the authorities that clients have to trust.
const (
	keyAuthorities     = corev1.ServiceAccountRootCAKey
	keyCertificate     = corev1.TLSCertKey
	keyPrivate         = corev1.TLSPrivateKeyKey
	keyNextCertificate = "next-" + corev1.TLSCertKey
	keyNextPrivate     = "next-" + corev1.TLSPrivateKeyKey
)

// maxAuthorities bounds what is trusted: the current one, its successor, and
// some that were replaced early because names changed.
const maxAuthorities = 8

// Material is what a Secret holds, without what cannot be used.
type Material struct {
	// Authorities are valid at the time of reading; the latest is the first.
	Authorities []*x509.Certificate
	// Current and Next are signed by one of Authorities and valid, or nil.
	Current, Next *tls.Certificate
}

// Read returns what the data of a Secret is good for at the time now.
func Read(data map[string][]byte, now time.Time) Material {
	m := Material{Authorities: readAuthorities(data[keyAuthorities], now)}
	roots := x509.NewCertPool()
	for _, authority := range m.Authorities {
		roots.AddCert(authority)
	}
	m.Current = readPair(data[keyCertificate], data[keyPrivate], roots, now)
	m.Next = readPair(data[keyNextCertificate], data[keyNextPrivate], roots, now)
	return m
}

// readAuthorities returns those that are valid at the time now, the latest first.
func readAuthorities(pems []byte, now time.Time) []*x509.Certificate {
	var authorities []*x509.Certificate
	for rest := pems; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !authority.IsCA || now.After(authority.NotAfter) {
			continue
		}
		isKnown := slices.ContainsFunc(authorities, authority.Equal)
		if !isKnown {
			authorities = append(authorities, authority)
		}
	}
	slices.SortStableFunc(authorities, func(a, b *x509.Certificate) int { return b.NotBefore.Compare(a.NotBefore) })
	return authorities
}

// readPair returns nil when the certificate cannot be served, or would not be
// trusted.
func readPair(certificate, key []byte, roots *x509.CertPool, now time.Time) *tls.Certificate {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil
	}
	options := x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if _, err := pair.Leaf.Verify(options); err != nil {
		return nil
	}
	return &pair
}

// Adopting returns the same, with authorities from pems that were made for the
// subject: what they signed is out of reach, but may still be in use.
func (m Material) Adopting(subject string, pems []byte, now time.Time) Material {
	all := m.Bundle()
	for _, authority := range readAuthorities(pems, now) {
		if authority.Subject.CommonName == authorityName(subject) {
			all = append(all, encode(typeCertificate, authority.Raw)...)
		}
	}
	m.Authorities = readAuthorities(all, now)
	return m
}

// NextEnd returns how long all of the authorities remain valid.
func (m Material) NextEnd(now time.Time) time.Duration {
	end := time.Duration(math.MaxInt64)
	for _, authority := range m.Authorities {
		end = min(end, authority.NotAfter.Sub(now)+1)
	}
	return end
}

// Bundle returns the authorities as PEM.
func (m Material) Bundle() []byte {
	var pems bytes.Buffer
	for _, authority := range m.Authorities[:min(len(m.Authorities), maxAuthorities)] {
		pems.Write(encode(typeCertificate, authority.Raw))
	}
	return pems.Bytes()
}

// Replaced returns the data of the Secret with a certificate that is served from
// now on.
func (m Material) Replaced(data map[string][]byte, by Issued) map[string][]byte {
	data = with(data, map[string][]byte{
		keyAuthorities: append(by.Authority, m.Bundle()...), keyCertificate: by.Certificate, keyPrivate: by.Key,
	})
	return without(data, keyNextCertificate, keyNextPrivate)
}

// Staged returns the data of the Secret with a certificate that is trusted from
// now on, and served later.
func (m Material) Staged(data map[string][]byte, next Issued) map[string][]byte {
	return with(data, map[string][]byte{
		keyAuthorities: append(next.Authority, m.Bundle()...), keyNextCertificate: next.Certificate, keyNextPrivate: next.Key,
	})
}

// Promoted returns the data of the Secret with the staged certificate as the one
// that is served.
func (m Material) Promoted(data map[string][]byte) map[string][]byte {
	data = with(data, map[string][]byte{
		keyAuthorities: m.Bundle(), keyCertificate: data[keyNextCertificate], keyPrivate: data[keyNextPrivate],
	})
	return without(data, keyNextCertificate, keyNextPrivate)
}

func with(data, more map[string][]byte) map[string][]byte {
	result := make(map[string][]byte, len(data)+len(more))
	maps.Copy(result, data)
	maps.Copy(result, more)
	return result
}

func without(data map[string][]byte, keys ...string) map[string][]byte {
	for _, key := range keys {
		delete(data, key)
	}
	return data
}
