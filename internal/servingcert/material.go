package servingcert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
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

// material is what a Secret holds, without what cannot be used.
type material struct {
	// authorities are valid at the time of reading; the latest is the first.
	authorities []*x509.Certificate
	// current and next are signed by one of authorities and valid, or nil.
	current, next *tls.Certificate
}

// read returns what the data of a Secret is good for at the time now.
func read(data map[string][]byte, now time.Time) material {
	var m material
	roots := x509.NewCertPool()
	for rest := data[keyAuthorities]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !authority.IsCA || now.After(authority.NotAfter) {
			continue
		}
		m.authorities = append(m.authorities, authority)
		roots.AddCert(authority)
	}
	slices.SortStableFunc(m.authorities, func(a, b *x509.Certificate) int { return b.NotBefore.Compare(a.NotBefore) })
	m.current = readPair(data[keyCertificate], data[keyPrivate], roots, now)
	m.next = readPair(data[keyNextCertificate], data[keyNextPrivate], roots, now)
	return m
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

// bundle returns the authorities as PEM.
func (m material) bundle() []byte {
	var pems bytes.Buffer
	for _, authority := range m.authorities[:min(len(m.authorities), maxAuthorities)] {
		pems.Write(encode(typeCertificate, authority.Raw))
	}
	return pems.Bytes()
}

// replaced returns the data of the Secret with a certificate that is served from
// now on.
func (m material) replaced(data map[string][]byte, by issued) map[string][]byte {
	data = with(data, map[string][]byte{
		keyAuthorities: append(by.authority, m.bundle()...), keyCertificate: by.certificate, keyPrivate: by.key,
	})
	return without(data, keyNextCertificate, keyNextPrivate)
}

// staged returns the data of the Secret with a certificate that is trusted from
// now on, and served later.
func (m material) staged(data map[string][]byte, next issued) map[string][]byte {
	return with(data, map[string][]byte{
		keyAuthorities: append(next.authority, m.bundle()...), keyNextCertificate: next.certificate, keyNextPrivate: next.key,
	})
}

// promoted returns the data of the Secret with the staged certificate as the one
// that is served.
func (m material) promoted(data map[string][]byte) map[string][]byte {
	data = with(data, map[string][]byte{
		keyAuthorities: m.bundle(), keyCertificate: data[keyNextCertificate], keyPrivate: data[keyNextPrivate],
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
