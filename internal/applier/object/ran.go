package object

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// JobKind is the kind of Jobs.
var JobKind = schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}

// Ran contains the Jobs that were created and that the cluster deletes after they have finished: a digest of the
// spec in the manifest by namespace and name. If such a Job does not exist, it counts as done.
type Ran map[string]string

// Note adds a Job that was created from a manifest.
func (r Ran) Note(key Key, manifest *unstructured.Unstructured) {
	r[key.Namespace+"/"+key.Name] = specDigest(manifest)
}

// Has reports whether a Job with the same spec ran. A Job with another spec has to run again.
func (r Ran) Has(key Key, manifest *unstructured.Unstructured) bool {
	digest, known := r[key.Namespace+"/"+key.Name]
	return known && key.GroupKind == JobKind && digest == specDigest(manifest)
}

// Expires reports whether the cluster deletes a Job after it has finished. A live Job may have its
// ttlSecondsAfterFinished from a mutating webhook.
func Expires(job *unstructured.Unstructured) bool {
	value, found, _ := unstructured.NestedFieldNoCopy(job.Object, "spec", "ttlSecondsAfterFinished")
	return found && value != nil && job.GroupVersionKind().GroupKind() == JobKind
}

// specDigest is empty for a spec that cannot be encoded.
func specDigest(manifest *unstructured.Unstructured) string {
	text, err := json.Marshal(manifest.Object["spec"])
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
