package health

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// annotationsProvisioner lists the annotations that the cluster sets when it asks a provisioner for a volume. The
// volume does not wait for a pod then.
var annotationsProvisioner = []string{"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"}

// OfClaim reports whether a PersistentVolumeClaim has a volume. A claim that may wait for its first pod
// counts as available: only its StorageClass shows whether it waits, and the controller does not read that. Pods
// that need the volume report a missing one.
func OfClaim(key object.Key, claim *corev1.PersistentVolumeClaim) Workload {
	workload := Workload{Key: key, Available: metav1.ConditionFalse, Created: claim.CreationTimestamp.UTC()}
	switch {
	case claim.Status.Phase == corev1.ClaimLost:
		workload.Created, workload.Reason = time.Time{}, "its PersistentVolume "+claim.Spec.VolumeName+" does not exist any more"
	case claim.Status.Phase != corev1.ClaimPending:
		return Workload{Key: key, Available: metav1.ConditionTrue}
	case ptr.Deref(claim.Spec.StorageClassName, "") == "":
		workload.Reason = "no PersistentVolume fits, and it names no StorageClass"
	case isProvisioned(claim):
		workload.Reason = "it waits for a volume of StorageClass " + *claim.Spec.StorageClassName
	default:
		return Workload{Key: key, Available: metav1.ConditionTrue}
	}
	return workload
}

func isProvisioned(claim *corev1.PersistentVolumeClaim) bool {
	for _, annotation := range annotationsProvisioner {
		if claim.Annotations[annotation] != "" {
			return true
		}
	}
	return false
}
