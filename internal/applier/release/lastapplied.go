package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// lastAppliedFormat is raised with every change to [object.FingerprintOf], to what [object.Owner.Stamp] adds
// or to what a patch covers: fingerprints of an earlier format are then not believed,
// and objects are compared anew.
const lastAppliedFormat = 1

// lastApplied are the fingerprints of the objects of a revision as it left them. They
// are kept in its record, so that a process that starts need not read what still
// looks like that.
type lastApplied struct {
	Format int `json:"format"`

	// Manifest is the digest of the manifest that the objects are of. Other
	// writers of records carry labels over to revisions of other manifests.
	Manifest string `json:"manifest"`

	// Objects has fingerprints by the text of their keys.
	Objects map[string]object.Fingerprint `json:"objects"`
}

// encodeLastApplied gives the text for a record.
func encodeLastApplied(manifest string, prints map[object.Key]object.Fingerprint) (string, error) {
	made := lastApplied{Format: lastAppliedFormat, Manifest: manifestDigest(manifest), Objects: map[string]object.Fingerprint{}}
	for key, left := range prints {
		made.Objects[textOf(key)] = left
	}
	text, err := json.Marshal(made)
	if err != nil {
		return "", fmt.Errorf("encoding how objects were left: %w", err)
	}
	return string(text), nil
}

// LastApplied gives the fingerprints in the record if they are those of exactly these
// objects of its manifest; nil if not.
func (i *Installed) LastApplied(keys []object.Key) map[object.Key]object.Fingerprint {
	var found lastApplied
	if err := json.Unmarshal([]byte(i.release.Labels[labelLastApplied]), &found); err != nil {
		return nil
	}
	if found.Format != lastAppliedFormat || found.Manifest != manifestDigest(i.release.Manifest) {
		return nil
	}
	prints := make(map[object.Key]object.Fingerprint, len(keys))
	for _, key := range keys {
		prints[key] = found.Objects[textOf(key)]
	}
	if len(prints) != len(found.Objects) || slices.Contains(slices.Collect(maps.Values(prints)), object.Fingerprint{}) {
		return nil
	}
	return prints
}

func manifestDigest(manifest string) string {
	sum := sha256.Sum256([]byte(manifest))
	return hex.EncodeToString(sum[:])
}

// textOf is unique: none of the parts can have a slash.
func textOf(key object.Key) string {
	return strings.Join([]string{key.Group, key.Kind, key.Namespace, key.Name}, "/")
}
