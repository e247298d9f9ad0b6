package helmchart

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"helm.sh/helm/v3/pkg/provenance"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxOpenPGPError bounds what a message quotes of the OpenPGP library, in bytes.
const maxOpenPGPError = 300

// Archive is a packaged chart.
type Archive struct {
	// Name is the name of the file without a folder, such as web-1.0.0.tgz. A provenance file
	// states the digest of an archive by this name.
	Name    string
	Content []byte
}

// Signer is the key that a provenance file was signed with.
type Signer struct {
	// Identity is the user ID of the key, such as "Alice <alice@example.com>".
	Identity string

	// Fingerprint of the primary key, in hex.
	Fingerprint string
}

// Keyring is a set of OpenPGP public keys of publishers.
type Keyring struct{ keys openpgp.EntityList }

// ReadKeyring reads public keys as "gpg --export" writes them, with or without --armor. The error
// reports that there is none.
func ReadKeyring(content []byte) (*Keyring, error) {
	read := openpgp.ReadKeyRing
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("-----BEGIN PGP")) {
		read = openpgp.ReadArmoredKeyRing
	}
	keys, err := read(bytes.NewReader(content))
	if err == nil && len(keys) == 0 {
		err = errors.New("it contains no key")
	}
	if err != nil {
		return nil, fmt.Errorf("it is no keyring as gpg --export writes it: %s", excerpt.Line(err.Error(), maxOpenPGPError))
	}
	return &Keyring{keys: keys}, nil
}

// CheckProvenance verifies the signature of the provenance file of an archive, and compares the
// digest of the archive with that in the file, as "helm verify" does. The error reports that
// no key of the keyring has made a valid signature, or what is wrong with the file or the archive.
func (k *Keyring) CheckProvenance(file []byte, archive Archive) (Signer, error) {
	block, err := signedBlock(file)
	if err != nil {
		return Signer{}, err
	}
	key, err := block.VerifySignature(k.keys, &packet.Config{})
	if err != nil {
		return Signer{}, fmt.Errorf("no key of the keyring verifies the signature: %s", excerpt.Line(err.Error(), maxOpenPGPError))
	}
	signer := Signer{Fingerprint: fmt.Sprintf("%X", key.PrimaryKey.Fingerprint)}
	if identity := key.PrimaryIdentity(); identity != nil {
		signer.Identity = identity.Name
	}
	return signer, checkStatedDigest(block.Plaintext, archive)
}

// CheckProvenanceDigest compares the digest of an archive with that in its provenance file, and
// ignores the signature. A damaged archive is an error. A forged archive is none if its
// provenance file is forged too.
func CheckProvenanceDigest(file []byte, archive Archive) error {
	block, err := signedBlock(file)
	if err != nil {
		return err
	}
	return checkStatedDigest(block.Plaintext, archive)
}

func signedBlock(file []byte) (*clearsign.Block, error) {
	block, _ := clearsign.Decode(file)
	if block == nil {
		return nil, errors.New("it is no provenance file: it contains no signed message")
	}
	return block, nil
}

// documentEnd separates Chart.yaml from the digests in the text of a provenance file.
var documentEnd = []byte("\n...\n")

// checkStatedDigest compares the digest of an archive with that in the text of a provenance file.
func checkStatedDigest(text []byte, archive Archive) error {
	parts := bytes.Split(text, documentEnd)
	if len(parts) < 2 {
		return errors.New("it is no provenance file: it states no digests")
	}
	var stated provenance.SumCollection
	if err := yaml.Unmarshal(parts[1], &stated); err != nil {
		return fmt.Errorf("its digests cannot be read: %s", excerpt.Line(err.Error(), maxOpenPGPError))
	}
	want, isStated := stated.Files[archive.Name]
	if !isStated {
		return fmt.Errorf("it states no digest of a file with the name %s", excerpt.Quote(archive.Name))
	}
	sum := sha256.Sum256(archive.Content)
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != want {
		return fmt.Errorf("it states the digest %s, and the archive has %s", excerpt.Quote(want), got)
	}
	return nil
}
