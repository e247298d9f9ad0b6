package applier

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/release"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// tracesFormat is raised with every change to [object.FingerprintOf], to what [object.Owner.Stamp] adds
// or to what a patch covers: traces of an earlier format are then not believed,
// and objects are compared anew.
const tracesFormat = 1

// traces are the fingerprints of the objects of a revision as it left them. They
// are kept in its record, so that a process that starts need not read what still
// looks like that.
type traces struct {
	Format int `json:"format"`

	// Manifest is the digest of the manifest that the objects are of. Other
	// writers of records carry labels over to revisions of other manifests.
	Manifest string `json:"manifest"`

	// Objects has fingerprints by the text of their keys.
	Objects map[string]object.Fingerprint `json:"objects"`
}

// tracesOf gives the text of traces. It is empty where certificates of webhooks
// are ours to keep: those are looked after by their content.
func tracesOf(manifest string, done outcome) (string, error) {
	for _, object := range done.live {
		if webhookcert.Concerns(object) {
			return "", nil
		}
	}
	made := traces{Format: tracesFormat, Manifest: manifestDigest(manifest), Objects: map[string]object.Fingerprint{}}
	for key, left := range done.fingerprints() {
		made.Objects[traceKey(key)] = left
	}
	text, err := json.Marshal(made)
	if err != nil {
		return "", fmt.Errorf("encoding how objects were left: %w", err)
	}
	return string(text), nil
}

// tracesIn gives the fingerprints in a record if they are those of exactly these
// objects of its manifest; nil if not.
func tracesIn(rel *release.Release, keys []object.Key) map[object.Key]object.Fingerprint {
	var found traces
	if err := json.Unmarshal([]byte(rel.Labels[labelTraces]), &found); err != nil {
		return nil
	}
	if found.Format != tracesFormat || found.Manifest != manifestDigest(rel.Manifest) {
		return nil
	}
	prints := make(map[object.Key]object.Fingerprint, len(keys))
	for _, key := range keys {
		prints[key] = found.Objects[traceKey(key)]
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

// traceKey is unique: none of the parts can have a slash.
func traceKey(key object.Key) string {
	return strings.Join([]string{key.Group, key.Kind, key.Namespace, key.Name}, "/")
}
