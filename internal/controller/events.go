package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Reasons of events. All others have the reason of the condition Ready.
const (
	// eventRequired tells of an extension that is removed although another one
	// requires it.
	eventRequired = "Required"

	// eventCustomResources tells how many custom resources go with an extension that
	// is removed.
	eventCustomResources = "CustomResources"

	// eventDefinitionsKept names the definitions that stay when their extension goes.
	eventDefinitionsKept = "DefinitionsKept"

	// eventContentStays names objects that a deletion keeps, because the extension never became their
	// owner.
	eventContentStays = "ContentStays"

	// eventKept names objects that are not deleted because of the annotation helm.sh/resource-policy.
	eventKept = "Kept"

	// eventPreflight tells what the checks of an upgrade have found and let pass.
	eventPreflight = "Preflight"

	// eventNotLetGo tells that some content may go although it was to stay.
	eventNotLetGo = "NotLetGo"

	// eventHooksSkipped tells that hooks of a chart were not run when it was deleted.
	eventHooksSkipped = "HooksSkipped"

	// eventPulling tells of an image that takes its time.
	eventPulling = "Pulling"

	// eventRemoved tells what becomes of the content of an extension that is removed.
	eventRemoved = "Removed"

	// eventImageMoved tells of an installed bundle whose tag now stands for
	// other content.
	eventImageMoved = "ImageMoved"

	// eventImageVerified tells who has signed the image of what is installed, and
	// eventImageRefused that ImagePolicies do not accept it, or that of what was to be installed.
	eventImageVerified = "ImageVerified"
	eventImageRefused  = "ImageRefused"
)

// transition is something that happened to an extension, for an event.
type transition struct{ kind, reason, note string }

// transitionOf compares the status before and after a pass; nil if there is
// nothing new to tell. What Ready says has all the rest in it. Of a rollout, the beginning
// and the end are told, and not each step, which the status tells. Where it is an
// installation or an upgrade that begins, the status tells that too, and an event only if it
// lasts, see [announcement].
func transitionOf(before, after *ocv1.ClusterExtensionStatus) *transition {
	was := meta.FindStatusCondition(before.Conditions, ocv1.TypeReady)
	is := meta.FindStatusCondition(after.Conditions, ocv1.TypeReady)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
		return nil
	}
	isStep := was != nil && was.Reason == ocv1.ReasonRollingOut && is.Reason == ocv1.ReasonRollingOut
	if isStep && was.ObservedGeneration == is.ObservedGeneration {
		return nil
	}
	t := &transition{kind: corev1.EventTypeWarning, reason: is.Reason, note: is.Message}
	if is.Status == metav1.ConditionTrue || is.Reason == ocv1.ReasonRollingOut || is.Reason == ocv1.ReasonTerminating || is.Reason == ocv1.ReasonOrphaning {
		t.kind = corev1.EventTypeNormal // what every install begins, and every extension ends with
	}
	return t
}

// removalOf is what to tell when an extension goes that others need; nil if
// none does.
func removalOf(dependents []string) *transition {
	if len(dependents) == 0 {
		return nil
	}
	return &transition{
		kind: corev1.EventTypeWarning, reason: eventRequired,
		note: "removed although it is required: " + excerpt.Of(dependents, maxText/2),
	}
}

// goneOf is what to tell of an extension that is let go of.
func goneOf(content departure) *transition {
	t := &transition{kind: corev1.EventTypeNormal, reason: eventRemoved}
	switch {
	case content.stay:
		t.note = "let go of; all that it has installed is to stay"
	case content.policy == UninstallKeep && content.isInstalled:
		t.note = "let go of; the cluster deletes all that it has installed but for its definitions"
	case content.objects < 0 && !content.isInstalled:
		t.note = "let go of; the cluster deletes what it has installed, if that is anything"
	case content.objects < 0:
		t.note = "let go of; the cluster deletes all that it has installed"
	case content.objects == 0:
		t.note = "let go of; nothing was installed"
	case content.objects == 1:
		t.note = "let go of; the cluster deletes the object that it has installed"
	default:
		t.note = fmt.Sprintf("let go of; the cluster deletes the %d objects that it has installed", content.objects)
	}
	return t
}

func notLetGoText(err error) string {
	return "content that was written just before the deletion may be removed by the garbage collector, because it could not be seen: " + err.Error()
}

// notesOf is what to tell of an upgrade beside that it was done; nil if nothing.
func notesOf(notes []string) *transition {
	if len(notes) == 0 {
		return nil
	}
	return &transition{kind: corev1.EventTypeWarning, reason: eventPreflight, note: excerpt.Of(notes, maxText)}
}

// emit creates an event, after what it is about was written. Nothing waits for it.
func (r *Reconciler) emit(ext *ocv1.ClusterExtension, t *transition) {
	if t != nil {
		r.Events.Event(ext, t.kind, t.reason, excerpt.Line(t.note, maxText)) // the API allows 1024 bytes
	}
}
