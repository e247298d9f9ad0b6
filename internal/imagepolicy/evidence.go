package imagepolicy

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Media types of what registries have of an image. The first two are those of cosign before
// version 3, the third is Sigstore's own, with a version in it.
const (
	MediaTypeSimpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	MediaTypeEnvelope      = "application/vnd.dsse.envelope.v1+json"
	MediaTypeBundle        = "application/vnd.dev.sigstore.bundle"
)

// PredicateSignature is the type of the statement that cosign makes of an image that it signs,
// since version 3: it says nothing but which image that is.
const PredicateSignature = "https://sigstore.dev/cosign/sign/v1"

// Annotations of a signature of cosign before version 3.
const (
	annotationSignature   = "dev.cosignproject.cosign/signature"
	annotationCertificate = "dev.sigstore.cosign/certificate"
	annotationChain       = "dev.sigstore.cosign/chain"
	annotationLogEntry    = "dev.sigstore.cosign/bundle"
	annotationTimestamp   = "dev.sigstore.cosign/rfc3161timestamp"
)

// Bounds of what a signature is to be verified by: all of it together, and a key of RSA among it.
// How long a try of such a key takes grows with the square of its size, and nothing can end it.
const (
	maxMaterialBytes = 32 << 10
	maxKeyBytes      = 1 << 10
)

var (
	errMaterial = fmt.Errorf("what it is to be verified by has more than %d bytes", maxMaterialBytes)
	errKey      = fmt.Errorf("a certificate with it has a key of more than %d bits", 8*maxKeyBytes)
)

// payloadInToto is the type of what an envelope has if it is a statement.
const payloadInToto = "application/vnd.in-toto+json"

// Evidence is one signature or attestation, as a registry has it. Nothing of it is verified.
type Evidence struct {
	// MediaType is one of those above; others are not read.
	MediaType string

	// Data is the content of the layer.
	Data []byte

	// Annotations are those of the layer.
	Annotations map[string]string

	// Place says for people where a registry has it. Nothing is decided by it.
	Place string
}

// claim is what a piece of evidence says. It is not verified yet.
type claim struct {
	entity *bundle.Bundle

	// payload is what was signed, if that is neither a statement nor the image itself.
	payload []byte

	// about are the images that it says it is about; nil if only a verification tells.
	about []digest.Digest

	// predicateType is that of a statement; empty for a signature.
	predicateType string
}

// read parses a piece of evidence.
func (e Evidence) read() (claim, error) {
	switch {
	case e.MediaType == MediaTypeSimpleSigning:
		return e.readSimpleSigning()
	case e.MediaType == MediaTypeEnvelope:
		return e.readEnvelope()
	case strings.HasPrefix(e.MediaType, MediaTypeBundle):
		return e.readBundle()
	default:
		return claim{}, fmt.Errorf("%q is no media type of a signature", e.MediaType)
	}
}

// readBundle reads what Sigstore's own tools make.
func (e Evidence) readBundle() (claim, error) {
	made := &protobundle.Bundle{}
	if err := protojson.Unmarshal(e.Data, made); err != nil {
		return claim{}, fmt.Errorf("its bundle is malformed: %w", err)
	}
	entity, err := entityOf(made, chainOptions(made)...)
	if err != nil {
		return claim{}, fmt.Errorf("its bundle is malformed: %w", err)
	}
	if count := len(made.GetVerificationMaterial().GetX509CertificateChain().GetCertificates()); count > maxCertificates {
		return claim{}, fmt.Errorf("its bundle has more than %d certificates", maxCertificates)
	}
	envelope := entity.GetDsseEnvelope()
	if envelope == nil {
		return claim{entity: entity}, nil
	}
	return newStatement(entity, envelope)
}

// chainOptions let a bundle have the certificates between an authority of one's own and the signer.
// Cosign writes them, although the format has but one certificate since version 0.3; before that,
// what is there besides the first one is not looked at.
func chainOptions(made *protobundle.Bundle) []bundle.Option {
	version, err := (&bundle.Bundle{Bundle: made}).Version()
	if err != nil || version == "v0.1" || version == "v0.2" {
		return nil
	}
	return []bundle.Option{bundle.AllowCertificateChain()}
}

// readEnvelope reads an attestation of cosign before version 3.
func (e Evidence) readEnvelope() (claim, error) {
	var envelope struct {
		PayloadType string `json:"payloadType"`
		Payload     []byte `json:"payload"`
		Signatures  []struct {
			KeyID string `json:"keyid"`
			Sig   []byte `json:"sig"`
		} `json:"signatures"`
	}
	if err := json.Unmarshal(e.Data, &envelope); err != nil {
		return claim{}, fmt.Errorf("its envelope is malformed: %w", err)
	}
	content := &protodsse.Envelope{PayloadType: envelope.PayloadType, Payload: envelope.Payload}
	for _, by := range envelope.Signatures {
		content.Signatures = append(content.Signatures, &protodsse.Signature{Keyid: by.KeyID, Sig: by.Sig})
	}
	entity, err := e.newBundle(&protobundle.Bundle{Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: content}})
	if err != nil {
		return claim{}, err
	}
	return newStatement(entity, content)
}

// newStatement reads which images a statement says it is about.
func newStatement(entity *bundle.Bundle, envelope *protodsse.Envelope) (claim, error) {
	if envelope.GetPayloadType() != payloadInToto {
		return claim{}, fmt.Errorf("its envelope has %q where a statement is wanted", envelope.GetPayloadType())
	}
	var statement struct {
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if err := json.Unmarshal(envelope.GetPayload(), &statement); err != nil {
		return claim{}, fmt.Errorf("its statement is malformed: %w", err)
	}
	made := claim{entity: entity, about: []digest.Digest{}}
	for _, subject := range statement.Subject {
		for algorithm, value := range subject.Digest {
			made.about = append(made.about, digest.NewDigestFromEncoded(digest.Algorithm(algorithm), value))
		}
	}
	if made.predicateType = statement.PredicateType; made.predicateType == PredicateSignature {
		made.predicateType = ""
	}
	return made, nil
}

// readSimpleSigning reads a signature of cosign before version 3: of a text that names the
// digest of the image.
func (e Evidence) readSimpleSigning() (claim, error) {
	var payload struct {
		Critical struct {
			Image struct {
				Digest digest.Digest `json:"docker-manifest-digest"`
			} `json:"image"`
		} `json:"critical"`
	}
	if err := json.Unmarshal(e.Data, &payload); err != nil {
		return claim{}, fmt.Errorf("its payload is malformed: %w", err)
	}
	signature, err := base64.StdEncoding.DecodeString(e.Annotations[annotationSignature])
	if err != nil || len(signature) == 0 {
		return claim{}, fmt.Errorf("it has no annotation %s", annotationSignature)
	}
	sum := sha256.Sum256(e.Data)
	entity, err := e.newBundle(&protobundle.Bundle{Content: &protobundle.Bundle_MessageSignature{
		MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     signature,
		},
	}})
	if err != nil {
		return claim{}, err
	}
	return claim{entity: entity, payload: e.Data, about: []digest.Digest{payload.Critical.Image.Digest}}, nil
}

// newBundle makes a bundle of content, with what the annotations have to verify it by. Cosign
// made such before there were bundles. An entry of a log is a promise there and not a proof, which
// is what bundles had at first, too; certificates between an authority and the signer may come
// with newer ones only, which have no promises.
func (e Evidence) newBundle(made *protobundle.Bundle) (*bundle.Bundle, error) {
	material := &protobundle.VerificationMaterial{}
	made.VerificationMaterial = material
	entries, err := e.logEntries()
	if err != nil {
		return nil, err
	}
	material.TlogEntries = entries
	if material.TimestampVerificationData, err = e.timestamps(); err != nil {
		return nil, err
	}
	version, options := "0.1", []bundle.Option(nil)
	chain, err := e.certificates()
	switch {
	case err != nil:
		return nil, err
	case len(chain) == 0:
		material.Content = &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}}
	default:
		if len(entries) == 0 {
			version, options = "0.3", []bundle.Option{bundle.AllowCertificateChain()}
		}
		material.Content = &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{Certificates: chain}}
	}
	if made.MediaType, err = bundle.MediaTypeString(version); err != nil {
		return nil, fmt.Errorf("naming a bundle: %w", err)
	}
	entity, err := entityOf(made, options...)
	if err != nil {
		return nil, fmt.Errorf("it is malformed: %w", err)
	}
	return entity, nil
}

// entityOf takes what is not verified yet. Certificates, timestamps and entries of logs bring keys
// that the libraries try before they ask whether anybody trusts them.
func entityOf(made *protobundle.Bundle, options ...bundle.Option) (*bundle.Bundle, error) {
	material := made.GetVerificationMaterial()
	if proto.Size(material) > maxMaterialBytes {
		return nil, errMaterial
	}
	for _, raw := range material.GetX509CertificateChain().GetCertificates() {
		if parsed, err := x509.ParseCertificate(raw.GetRawBytes()); err == nil && hasLargeKey(parsed) {
			return nil, errKey
		}
	}
	return bundle.NewBundle(made, options...)
}

func hasLargeKey(certificate *x509.Certificate) bool {
	key, ok := certificate.PublicKey.(*rsa.PublicKey)
	return ok && key.Size() > maxKeyBytes
}

// certificates are that of the signer and those that lie between it and an authority, if any.
func (e Evidence) certificates() ([]*protocommon.X509Certificate, error) {
	if e.Annotations[annotationCertificate] == "" {
		return nil, nil
	}
	blocks, err := blocksOf([]byte(e.Annotations[annotationCertificate]+"\n"+e.Annotations[annotationChain]), maxCertificates, "certificate")
	if err != nil {
		return nil, errors.New("its certificate is not in PEM")
	}
	all := make([]*protocommon.X509Certificate, 0, len(blocks))
	for i, block := range blocks {
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("its certificate is malformed")
		}
		if hasLargeKey(parsed) {
			return nil, errKey
		}
		if i == 0 || !isRoot(parsed) {
			all = append(all, &protocommon.X509Certificate{RawBytes: block.Bytes})
		}
	}
	return all, nil
}

// isRoot says that a certificate has signed itself: it is trusted only if a policy has it.
func isRoot(certificate *x509.Certificate) bool {
	return certificate.CheckSignatureFrom(certificate) == nil
}

// logEntries reads the entry in Sigstore's log of signatures, if there is one.
func (e Evidence) logEntries() ([]*protorekor.TransparencyLogEntry, error) {
	text := e.Annotations[annotationLogEntry]
	if text == "" {
		return nil, nil
	}
	var entry struct {
		SignedEntryTimestamp []byte `json:"SignedEntryTimestamp"` //nolint:tagliatelle // as cosign writes it
		Payload              struct {
			Body           []byte `json:"body"`
			IntegratedTime int64  `json:"integratedTime"`
			LogIndex       int64  `json:"logIndex"`
			LogID          string `json:"logID"` //nolint:tagliatelle // as cosign writes it
		} `json:"Payload"` //nolint:tagliatelle // as cosign writes it
	}
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		return nil, fmt.Errorf("its entry of a log is malformed: %w", err)
	}
	log, err := hex.DecodeString(entry.Payload.LogID)
	if err != nil {
		return nil, errors.New("its entry of a log names no log")
	}
	var kind struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}
	if err := json.Unmarshal(entry.Payload.Body, &kind); err != nil {
		return nil, fmt.Errorf("its entry of a log is malformed: %w", err)
	}
	return []*protorekor.TransparencyLogEntry{{
		LogIndex:          entry.Payload.LogIndex,
		LogId:             &protocommon.LogId{KeyId: log},
		KindVersion:       &protorekor.KindVersion{Kind: kind.Kind, Version: kind.APIVersion},
		IntegratedTime:    entry.Payload.IntegratedTime,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: entry.SignedEntryTimestamp},
		CanonicalizedBody: entry.Payload.Body,
	}}, nil
}

// timestamps reads that of an authority for timestamps, if there is one.
func (e Evidence) timestamps() (*protobundle.TimestampVerificationData, error) {
	text := e.Annotations[annotationTimestamp]
	if text == "" {
		return nil, nil //nolint:nilnil // there need not be one
	}
	var stamp struct {
		SignedRFC3161Timestamp []byte `json:"SignedRFC3161Timestamp"` //nolint:tagliatelle // as cosign writes it
	}
	if err := json.Unmarshal([]byte(text), &stamp); err != nil {
		return nil, fmt.Errorf("its timestamp is malformed: %w", err)
	}
	return &protobundle.TimestampVerificationData{
		Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: stamp.SignedRFC3161Timestamp}},
	}, nil
}
