package object

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Fingerprint changes when an object differs in anything that a revision may
// set.
type Fingerprint struct {
	UID types.UID

	// ResourceVersion is of kinds that do not count generations: every write to them
	// counts.
	ResourceVersion string

	// Generation and Metadata are of kinds that do. The former changes with the spec,
	// the latter is a digest of the metadata. Status updates go unnoticed.
	Generation int64
	Metadata   uint64

	// Deleted is set, and nothing else, when the object does not exist any more.
	Deleted bool
}

// priorityClassKind has a generation that never changes.
var priorityClassKind = schema.GroupKind{Group: schedulingv1.GroupName, Kind: "PriorityClass"}

// FingerprintOf is that of an object of the kind.
func FingerprintOf(kind schema.GroupKind, object metav1.Object) Fingerprint {
	if object.GetGeneration() == 0 || kind == priorityClassKind {
		return Fingerprint{UID: object.GetUID(), ResourceVersion: object.GetResourceVersion()}
	}
	digest := fnv.New64a()
	// fmt prints maps in the order of their keys.
	_, _ = fmt.Fprint(digest, object.GetLabels(), withoutRevision(object.GetAnnotations()))
	for _, owner := range object.GetOwnerReferences() {
		_, _ = fmt.Fprint(digest, owner.UID, owner.Controller != nil && *owner.Controller)
	}
	if object.GetDeletionTimestamp() != nil {
		_, _ = fmt.Fprint(digest, "deleted")
	}
	return Fingerprint{UID: object.GetUID(), Generation: object.GetGeneration(), Metadata: digest.Sum64()}
}

// annotationRevision is set by the cluster on every Deployment, at each rollout.
const annotationRevision = "deployment.kubernetes.io/revision"

func withoutRevision(annotations map[string]string) map[string]string {
	if _, found := annotations[annotationRevision]; !found {
		return annotations
	}
	rest := maps.Clone(annotations)
	delete(rest, annotationRevision)
	return rest
}

// deletedText is the form of a fingerprint of an object that does not exist.
const deletedText = "deleted"

// MarshalText gives the form that release records have: uid/resourceVersion, or
// uid/generation/metadata.
func (f Fingerprint) MarshalText() ([]byte, error) {
	if f.Deleted {
		return []byte(deletedText), nil
	}
	if f.Generation == 0 {
		return fmt.Appendf(nil, "%s/%s", f.UID, f.ResourceVersion), nil
	}
	return fmt.Appendf(nil, "%s/%d/%x", f.UID, f.Generation, f.Metadata), nil
}

// UnmarshalText reads what [Fingerprint.MarshalText] gives.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	if string(text) == deletedText {
		*f = Fingerprint{Deleted: true}
		return nil
	}
	parts := strings.Split(string(text), "/")
	var err error
	switch len(parts) {
	case 2:
		*f = Fingerprint{UID: types.UID(parts[0]), ResourceVersion: parts[1]}
		return nil
	case 3:
		*f = Fingerprint{UID: types.UID(parts[0])}
		if f.Generation, err = strconv.ParseInt(parts[1], 10, 64); err == nil {
			f.Metadata, err = strconv.ParseUint(parts[2], 16, 64)
		}
		return err
	}
	return fmt.Errorf("%q is no fingerprint", text)
}
