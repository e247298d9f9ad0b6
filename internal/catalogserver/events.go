package catalogserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxNoteBytes bounds the text of Ready, which is also that of an event; the API allows
// 1024 bytes for these.
const maxNoteBytes = 1000

// Events tells people what happened to an object.
type Events interface {
	Event(object runtime.Object, kind, reason, note string)
}

// Events of what ImagePolicies make of what is served, by the status of the condition.
var (
	verifiedKinds = map[metav1.ConditionStatus]string{
		metav1.ConditionTrue: corev1.EventTypeNormal, metav1.ConditionFalse: corev1.EventTypeWarning, metav1.ConditionUnknown: corev1.EventTypeWarning,
	}
	verifiedReasons = map[metav1.ConditionStatus]string{
		metav1.ConditionTrue: "ImageVerified", metav1.ConditionFalse: "ImageRefused", metav1.ConditionUnknown: ocv1.ReasonVerificationFailed,
	}
)

// transition returns what the condition Ready says in after, unless it says so in
// before already.
func transition(before, after ocv1.ClusterCatalogStatus) (metav1.Condition, bool) {
	return changedCondition(before, after, ocv1.TypeReady)
}

func changedCondition(before, after ocv1.ClusterCatalogStatus, kind string) (metav1.Condition, bool) {
	was := meta.FindStatusCondition(before.Conditions, kind)
	is := meta.FindStatusCondition(after.Conditions, kind)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
		return metav1.Condition{}, false
	}
	return *is, true
}

// isLogged says that what Ready says has a line of its own: that new content was stored, or
// that the catalog is removed. That an image is pulled has one when it has come.
func isLogged(before ocv1.ClusterCatalogStatus, ready metav1.Condition) bool {
	switch ready.Reason {
	case ocv1.ReasonSucceeded:
		was := meta.FindStatusCondition(before.Conditions, ocv1.TypeReady)
		return was == nil || was.Reason != ocv1.ReasonRetrying && was.Reason != ocv1.ReasonBlocked
	case ocv1.ReasonUnavailable, ocv1.ReasonPulling:
		return true
	}
	return false
}

// emit sends an event, and logs a line, about each change of Ready, after it was
// written.
func (r *Reconciler) emit(ctx context.Context, catalog *ocv1.ClusterCatalog, before ocv1.ClusterCatalogStatus) {
	if verified, changed := changedCondition(before, catalog.Status, ocv1.TypeVerified); changed {
		r.cfg.Events.Event(catalog, verifiedKinds[verified.Status], verifiedReasons[verified.Status], excerpt.Line(verified.Message, maxNoteBytes))
	}
	ready, changed := transition(before, catalog.Status)
	if !changed {
		return
	}
	kind := corev1.EventTypeNormal
	if ready.Reason == ocv1.ReasonRetrying || ready.Reason == ocv1.ReasonBlocked {
		kind = corev1.EventTypeWarning
	}
	logger := log.FromContext(ctx)
	if isLogged(before, ready) {
		logger = logger.V(1)
	}
	logger.Info("status changed", "ready", ready.Status, "reason", ready.Reason, "message", ready.Message)
	r.cfg.Events.Event(catalog, kind, ready.Reason, ready.Message)
}
