package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// CertificateLog is a log of certificates, as in RFC 6962.
type CertificateLog struct {
	key *ecdsa.PrivateKey

	// id is the SHA-256 sum of the public key.
	id [sha256.Size]byte
}

// NewCertificateLog makes a log.
func NewCertificateLog() (*CertificateLog, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return &CertificateLog{key: key, id: sha256.Sum256(der)}, nil
}

// Impostor is a log that says that it is this one, and has another key.
func (l *CertificateLog) Impostor() (*CertificateLog, error) {
	other, err := NewCertificateLog()
	if err != nil {
		return nil, err
	}
	return &CertificateLog{key: other.key, id: l.id}, nil
}

// trusted is the log as a trusted root has it.
func (l *CertificateLog) trusted(from, until time.Time) map[string]*root.TransparencyLog {
	return map[string]*root.TransparencyLog{hex.EncodeToString(l.id[:]): {
		BaseURL: "https://ct.test", ID: l.id[:], ValidityPeriodStart: from, ValidityPeriodEnd: until,
		HashFunc: crypto.SHA256, PublicKey: l.key.Public(), SignatureHashFunc: crypto.SHA256,
	}}
}

// timestamp is the extension by which a certificate says that it is in the log. What is signed is
// the certificate without that extension, which has to be its last.
func (l *CertificateLog) timestamp(without, issuer *x509.Certificate, at time.Time) (pkix.Extension, error) {
	const version, certificateTimestamp, precertificate = 0, 0, 1
	millis := uint64(at.UnixMilli())
	issuerKey := sha256.Sum256(issuer.RawSubjectPublicKeyInfo)
	size := len(without.RawTBSCertificate)

	signed := binary.BigEndian.AppendUint64([]byte{version, certificateTimestamp}, millis)
	signed = append(signed, 0, precertificate)
	signed = append(signed, issuerKey[:]...)
	signed = append(signed, byte(size>>16), byte(size>>8), byte(size))
	signed = append(signed, without.RawTBSCertificate...)
	signed = append(signed, 0, 0) // no extensions
	sum := sha256.Sum256(signed)
	signature, err := ecdsa.SignASN1(rand.Reader, l.key, sum[:])
	if err != nil {
		return pkix.Extension{}, err
	}

	const sha256WithECDSA = "\x04\x03"
	made := append([]byte{version}, l.id[:]...)
	made = binary.BigEndian.AppendUint64(made, millis)
	made = append(made, 0, 0) // no extensions
	made = append(made, sha256WithECDSA...)
	made = append(made, prefixed(signature)...)
	value, err := asn1.Marshal(prefixed(prefixed(made)))
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: value}, err
}

// prefixed has the size before the data.
func prefixed(data []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(data))), data...)
}
