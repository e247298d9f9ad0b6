package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/imageref"
)

// maxSigned is for who has signed an image.
const maxSigned = 240

// Signatures are what ImagePolicies say of the image of the installed bundle.
type Signatures struct {
	// Verdict is zero if no policy is about the image, or as long as nothing was ever known. While
	// it is found out anew, it is what it was.
	Verdict imagepolicy.Verdict

	// Err is why it cannot be known; nil if it is, or will be soon.
	Err error
}

// judgement is a verdict with the image that it is on.
type judgement struct {
	image   BundleImage
	verdict imagepolicy.Verdict
}

// judge finds out what ImagePolicies say of what is installed. Whatever they say, it stays: they
// decide about what is to be installed.
func (r *Reconciler) judge(ctx context.Context, wanted Wanted, outcome *Outcome) {
	installed := outcome.Installed
	if installed == nil || installed.Digest == "" && imageref.Digest(installed.Image) == "" {
		return // a record that does not say, as the reference implementation leaves them
	}
	image := BundleImage{Ref: installed.Image, Digest: installed.Digest}
	verdict, known, err := r.Bundles.Verdict(ctx, wanted.Owner, image)
	switch {
	case err != nil:
		r.judgements.Delete(wanted.Owner.Name)
		outcome.Signatures.Err = err
		outcome.RecheckAfter = sooner(outcome.RecheckAfter, untoldInterval)
	case known:
		r.judgements.Store(wanted.Owner.Name, judgement{image, verdict})
		outcome.Signatures.Verdict = verdict
		if len(verdict.Refusals) > 0 { // nobody tells when it is signed
			outcome.RecheckAfter = sooner(outcome.RecheckAfter, signedInterval)
		}
	default:
		outcome.Signatures.Verdict = r.judgedBefore(wanted.Owner.Name, image)
	}
}

// judgedBefore is the last verdict on an image; zero if there is none.
func (r *Reconciler) judgedBefore(extension string, image BundleImage) imagepolicy.Verdict {
	known, _ := r.judgements.Load(extension)
	if last, ok := known.(judgement); ok && last.image == image {
		return last.verdict
	}
	return imagepolicy.Verdict{}
}

// How signaturesText begins.
const (
	textSigned      = "signed by "
	textNotAccepted = "its image is not accepted: "
	textNotKnown    = "whether its image may be used is not known: "
)

var signaturesOpenings = []string{textSigned, textNotAccepted, textNotKnown}

// unlikeSignatures keeps what others have said, such as a pod, from being taken for signaturesText.
func unlikeSignatures(text string) string {
	for _, opening := range signaturesOpenings {
		text = strings.ReplaceAll(text, "; "+opening, ", "+opening)
	}
	return text
}

// signaturesText says who has signed what is installed, or that it would not be installed now. It
// is empty if no policy is about it.
func signaturesText(outcome Outcome) string {
	found := outcome.Signatures
	switch {
	case found.Err != nil:
		return textNotKnown + found.Err.Error()
	case len(found.Verdict.Refusals) > 0:
		text := textNotAccepted + strings.Join(found.Verdict.Refusals, "; ")
		if found.Verdict.Refused {
			text += ": what is installed stays, and is not installed anew"
		}
		return text
	case len(found.Verdict.Signers) > 0:
		return textSigned + excerpt.Of(found.Verdict.Signers, maxSigned)
	}
	return ""
}

// reportedSignatures is what conditions say of signatures, a line each: of the image of what is
// installed, and of the image of the catalog that the choice is from.
func reportedSignatures(ext *ocv1.ClusterExtension, catalogs []ocv1.ClusterCatalog, catalog string) []string {
	var lines []string
	if ready := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReady); ready != nil {
		if text := signaturesIn(ready.Message); text != "" {
			lines = append(lines, "what is installed: "+text)
		}
	}
	for i := range catalogs {
		verified := meta.FindStatusCondition(catalogs[i].Status.Conditions, ocv1.TypeVerified)
		if catalogs[i].Name == catalog && verified != nil {
			lines = append(lines, fmt.Sprintf("catalog %q: %s: %s", catalog, verified.Reason, verified.Message))
		}
	}
	return lines
}

// signaturesIn is what signaturesText has said in a message of [whyOf]; empty if nothing.
func signaturesIn(message string) string {
	for _, opening := range signaturesOpenings {
		_, text, ok := strings.Cut(message, "; "+opening)
		if !ok {
			continue
		}
		text, _, _ = strings.Cut(text, "; "+textAffected)
		return opening + text
	}
	return ""
}

// inSignatures is about images that ImagePolicies refuse.
func inSignatures(outcome Outcome) (obstacle, bool) {
	refused, ok := errors.AsType[*RefusedImageError](outcome.Err)
	if !ok {
		return obstacle{}, false
	}
	return obstacle{
		what: refused.Error(),
		next: imagepolicy.Remedy(refused.Image),
	}, true
}

// signaturesTransition tells of signatures and refusals that nobody was told of; nil if there is
// nothing new. A process that has just begun knows from the status what was told before.
func (r *Reconciler) signaturesTransition(ext *ocv1.ClusterExtension, outcome Outcome) *transition {
	told := &transition{kind: corev1.EventTypeNormal, reason: eventImageVerified, note: signaturesText(outcome)}
	if refused, ok := errors.AsType[*RefusedImageError](outcome.Err); ok {
		told.kind, told.reason, told.note = corev1.EventTypeWarning, eventImageRefused, refused.Error()
	} else if len(outcome.Signatures.Verdict.Refusals) > 0 {
		told.kind, told.reason = corev1.EventTypeWarning, eventImageRefused
	}
	if told.note == "" || outcome.Signatures.Err != nil {
		r.signatures.Delete(ext.Name)
		return nil
	}
	before, had := r.signatures.Swap(ext.Name, told.note)
	if had && before == told.note {
		return nil
	}
	ready := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReady)
	if !had && ready != nil && strings.Contains(ready.Message, excerpt.Line(told.note, maxPart)) {
		return nil
	}
	return told
}
