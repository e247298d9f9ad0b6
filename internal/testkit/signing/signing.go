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
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"github.com/opencontainers/go-digest"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// Signer signs images.
type Signer struct {
	key *ecdsa.PrivateKey

	// chain is the certificate of the key and those above it but for the root; empty for a
	// key that has none.
	chain []*x509.Certificate

	// log is where signatures are entered; nil for nowhere.
	log *ca.VirtualSigstore

	// at is when it signs.
	at time.Time
}

// NewKey makes a signer with a key that nobody vouches for, and the public key in PEM.
func NewKey() (*Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	return &Signer{key: key}, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// Sigstore is an instance of Sigstore: an authority for certificates, a log of these, and a log of
// signatures.
type Sigstore struct {
	log                           *ca.VirtualSigstore
	certificates                  *CertificateLog
	root, intermediate            *x509.Certificate
	intermediateKey               crypto.Signer
	certificatesFrom, signedUntil time.Time
}

// NewSigstore makes an instance.
func NewSigstore(now time.Time) (*Sigstore, error) {
	log, err := ca.NewVirtualSigstore()
	if err != nil {
		return nil, err
	}
	certificates, err := NewCertificateLog()
	if err != nil {
		return nil, err
	}
	trusted, key, err := ca.GenerateRootCa()
	if err != nil {
		return nil, err
	}
	intermediate, intermediateKey, err := ca.GenerateFulcioIntermediate(trusted, key)
	if err != nil {
		return nil, err
	}
	return &Sigstore{
		log: log, certificates: certificates, root: trusted, intermediate: intermediate, intermediateKey: intermediateKey,
		certificatesFrom: now.Add(-time.Hour), signedUntil: now.Add(time.Hour),
	}, nil
}

// CertificateLog is where its certificates are entered.
func (s *Sigstore) CertificateLog() *CertificateLog { return s.certificates }

// LoggingTo is the same instance with another log of certificates; nil for none.
func (s *Sigstore) LoggingTo(certificates *CertificateLog) *Sigstore {
	other := *s
	other.certificates = certificates
	return &other
}

// TrustedRoot is what has to be trusted of it, as in trusted_root.json.
func (s *Sigstore) TrustedRoot() ([]byte, error) {
	authority := &root.FulcioCertificateAuthority{
		Root: s.root, Intermediates: []*x509.Certificate{s.intermediate},
		ValidityPeriodStart: s.certificatesFrom, ValidityPeriodEnd: s.signedUntil, URI: "https://fulcio.test",
	}
	certificates := map[string]*root.TransparencyLog{}
	if s.certificates != nil {
		certificates = s.certificates.trusted(s.certificatesFrom, s.signedUntil)
	}
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{authority}, certificates, nil, binaryIDs(s.log.RekorLogs()))
	if err != nil {
		return nil, err
	}
	return made.MarshalJSON()
}

// binaryIDs has the names of logs as a trusted root has them.
func binaryIDs(logs map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
	for name, log := range logs {
		if id, err := hex.DecodeString(name); err == nil {
			log.ID = id
		}
	}
	return logs
}

// Certificates are those of the authority alone, in PEM.
func (s *Sigstore) Certificates() []byte {
	return append(encode(s.root), encode(s.intermediate)...)
}

// NewSigner makes a signer whose certificate names subject, a URL, and who vouches for it. It is
// valid from the given time, at which it signs, and for as long as is said.
func (s *Sigstore) NewSigner(subject, issuer string, at time.Time, valid time.Duration) (*Signer, error) {
	name, err := url.Parse(subject)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := s.Issue(key.Public(), name, issuer, at, valid)
	if err != nil {
		return nil, err
	}
	return &Signer{key: key, chain: []*x509.Certificate{certificate, s.intermediate}, log: s.log, at: at}, nil
}

// Log returns the log of signatures.
func (s *Sigstore) Log() *ca.VirtualSigstore { return s.log }

// Authorities returns the certificates that issue those of signers: the intermediate one and the
// root.
func (s *Sigstore) Authorities() []*x509.Certificate {
	return []*x509.Certificate{s.intermediate, s.root}
}

// Issue returns a certificate for key that names subject and is valid from at. It adds the
// certificate to the log of certificates.
func (s *Sigstore) Issue(key crypto.PublicKey, subject *url.URL, issuer string, at time.Time, valid time.Duration) (*x509.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		URIs:         []*url.URL{subject},
		NotBefore:    at.Add(-time.Second),
		NotAfter:     at.Add(valid),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	if issuer != "" {
		template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer)}}
	}
	certificate, err := s.create(template, key)
	if err != nil || s.certificates == nil {
		return certificate, err
	}
	timestamp, err := s.certificates.timestamp(certificate, s.intermediate, at)
	if err != nil {
		return nil, err
	}
	template.ExtraExtensions = append(template.ExtraExtensions, timestamp)
	return s.create(template, key)
}

func (s *Sigstore) create(template *x509.Certificate, key crypto.PublicKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, s.intermediate, key, s.intermediateKey)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// WithoutLog enters its signatures nowhere.
func (s *Signer) WithoutLog() *Signer {
	return &Signer{key: s.key, chain: s.chain, at: s.at}
}

// Old signs an image as cosign did before version 3.
func (s *Signer) Old(image digest.Digest) (imagepolicy.Evidence, error) {
	payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"registry.test/pkg"},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":null}`, image)
	sum := sha256.Sum256(payload)
	signature, err := s.key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		return imagepolicy.Evidence{}, err
	}
	annotations := map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)}
	body := map[string]any{
		"apiVersion": "0.0.1", "kind": "hashedrekord",
		"spec": map[string]any{
			"data":      map[string]any{"hash": map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(sum[:])}},
			"signature": map[string]any{"content": signature, "publicKey": map[string]any{"content": s.leaf()}},
		},
	}
	if err := s.annotate(annotations, body); err != nil {
		return imagepolicy.Evidence{}, err
	}
	return imagepolicy.Evidence{MediaType: imagepolicy.MediaTypeSimpleSigning, Data: payload, Annotations: annotations}, nil
}

// OldAttestation makes an attestation as cosign did before version 3.
func (s *Signer) OldAttestation(image digest.Digest, predicateType string) (imagepolicy.Evidence, error) {
	signed, signature, err := s.sign(image, predicateType)
	if err != nil {
		return imagepolicy.Evidence{}, err
	}
	envelope, err := envelopeOf(signed)
	if err != nil {
		return imagepolicy.Evidence{}, err
	}
	data, err := json.Marshal(envelope.RawEnvelope())
	if err != nil {
		return imagepolicy.Evidence{}, err
	}
	annotations := map[string]string{"predicateType": predicateType}
	if s.log == nil {
		err = s.annotate(annotations, nil)
	} else {
		var entry *tlog.Entry
		if entry, err = s.log.GenerateTlogEntry(s.chain[0], envelope.RawEnvelope(), signature, s.at.Unix(), false); err == nil {
			var body any
			if err = json.Unmarshal(entry.TransparencyLogEntry().GetCanonicalizedBody(), &body); err == nil {
				err = s.annotate(annotations, body)
			}
		}
	}
	return imagepolicy.Evidence{MediaType: imagepolicy.MediaTypeEnvelope, Data: data, Annotations: annotations}, err
}

// annotate adds the certificates and the entry of the log to a signature.
func (s *Signer) annotate(annotations map[string]string, body any) error {
	if len(s.chain) > 0 {
		annotations["dev.sigstore.cosign/certificate"] = string(encode(s.chain[0]))
		annotations["dev.sigstore.cosign/chain"] = string(encode(s.chain[1]))
	}
	if s.log == nil {
		return nil
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	id, err := s.log.RekorLogID()
	if err != nil {
		return err
	}
	payload := tlog.RekorPayload{Body: base64.StdEncoding.EncodeToString(data), IntegratedTime: s.at.Unix(), LogIndex: 7, LogID: id}
	promise, err := s.log.RekorSignPayload(payload)
	if err != nil {
		return err
	}
	entry, err := json.Marshal(map[string]any{"SignedEntryTimestamp": promise, "Payload": payload})
	annotations["dev.sigstore.cosign/bundle"] = string(entry)
	return err
}

// New signs an image as cosign does since version 3, or states something of it.
func (s *Signer) New(image digest.Digest, predicateType string) (imagepolicy.Evidence, error) {
	signed, signature, err := s.sign(image, predicateType)
	if err != nil {
		return imagepolicy.Evidence{}, err
	}
	material := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: "any"}}}
	if len(s.chain) > 0 {
		material.Content = &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: s.chain[0].Raw}}
	}
	if s.log != nil {
		envelope, err := envelopeOf(signed)
		if err != nil {
			return imagepolicy.Evidence{}, err
		}
		entry, err := s.log.GenerateTlogEntry(s.chain[0], envelope.RawEnvelope(), signature, s.at.Unix(), true)
		if err != nil {
			return imagepolicy.Evidence{}, err
		}
		proven := entry.TransparencyLogEntry()
		proven.KindVersion = &protorekor.KindVersion{Kind: "dsse", Version: "0.0.1"}
		if err := s.promise(proven); err != nil {
			return imagepolicy.Evidence{}, err
		}
		material.TlogEntries = []*protorekor.TransparencyLogEntry{proven}
	}
	data, err := protojson.Marshal(&protobundle.Bundle{
		MediaType:            "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: material,
		Content:              &protobundle.Bundle_DsseEnvelope{DsseEnvelope: signed},
	})
	return imagepolicy.Evidence{MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json", Data: data}, err
}

// promise has the log sign when it was entered.
func (s *Signer) promise(entry *protorekor.TransparencyLogEntry) error {
	id, err := s.log.RekorLogID()
	if err != nil {
		return err
	}
	signed, err := s.log.RekorSignPayload(tlog.RekorPayload{
		Body:           base64.StdEncoding.EncodeToString(entry.GetCanonicalizedBody()),
		IntegratedTime: entry.GetIntegratedTime(), LogIndex: entry.GetLogIndex(), LogID: id,
	})
	entry.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: signed}
	return err
}

// sign returns a statement about image in a signed envelope, and the signature alone.
func (s *Signer) sign(image digest.Digest, predicateType string) (*protodsse.Envelope, []byte, error) {
	if image.Validate() != nil {
		return nil, nil, errors.New("the image has no digest")
	}
	payload, err := json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": predicateType,
		"subject":   []any{map[string]any{"name": "", "digest": map[string]string{image.Algorithm().String(): image.Encoded()}}},
		"predicate": map[string]any{},
	})
	if err != nil {
		return nil, nil, err
	}
	const payloadType = "application/vnd.in-toto+json"
	// The DSSE specification calls this the pre-authentication encoding.
	sum := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload))
	signature, err := s.key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		return nil, nil, err
	}
	return &protodsse.Envelope{
		PayloadType: payloadType, Payload: payload, Signatures: []*protodsse.Signature{{Sig: signature}},
	}, signature, nil
}

// envelopeOf returns an envelope in the form that logs and cosign before version 3 use.
func envelopeOf(signed *protodsse.Envelope) (*bundle.Envelope, error) {
	content := &protobundle.Bundle_DsseEnvelope{DsseEnvelope: signed}
	return (&bundle.Bundle{Bundle: &protobundle.Bundle{Content: content}}).Envelope()
}

// leaf is the key, or its certificate, in PEM.
func (s *Signer) leaf() []byte {
	if len(s.chain) > 0 {
		return encode(s.chain[0])
	}
	return nil
}

func encode(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}
