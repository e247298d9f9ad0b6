package catalogserver

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

const (
	messageStored      = "Successfully unpacked and stored content from resolved source"
	messageServing     = "Serving desired content from resolved source"
	messageUnavailable = "Catalog availability mode is set to Unavailable"
	messageRemoved     = "the catalog is being deleted, and its content is no longer served"
)

// statusWriter composes the status of one catalog in one pass. Conditions that
// belong to others are left as they are.
type statusWriter struct {
	status     ocv1.ClusterCatalogStatus
	generation int64
	now        metav1.Time
}

func newStatus(catalog *ocv1.ClusterCatalog, now time.Time) *statusWriter {
	s := &statusWriter{
		status:     *catalog.Status.DeepCopy(),
		generation: catalog.Generation,
		now:        metav1.NewTime(now),
	}
	s.status.ObservedGeneration = catalog.Generation
	return s
}

// pulling says that content is on its way. What is served meanwhile stays as it is.
func (s *statusWriter) pulling(ref string) { s.setPhase(beginning(ref)) }

// served says that the wanted content is served at base.
func (s *statusWriter) served(rec Record, base string) {
	s.condition(ocv1.TypeProgressing, metav1.ConditionTrue, ocv1.ReasonSucceeded, messageStored)
	s.condition(ocv1.TypeServing, metav1.ConditionTrue, ocv1.ReasonAvailable, messageServing)
	s.content(rec, base)
	s.setPhase(phase{
		ready: metav1.ConditionTrue, reason: ocv1.ReasonSucceeded,
		message: fmt.Sprintf("the content of %q is served", rec.Canonical),
	})
}

// failed says that the wanted content could not be had, and where that leaves the
// catalog.
func (s *statusWriter) failed(err error, blocked bool, where phase) {
	status, reason := metav1.ConditionTrue, ocv1.ReasonRetrying
	if blocked {
		status, reason = metav1.ConditionFalse, ocv1.ReasonBlocked
	}
	s.condition(ocv1.TypeProgressing, status, reason, message(err.Error()))
	s.setPhase(where)
}

// judged says what ImagePolicies make of what is served. Content that they refuse was accepted
// when it came: it stays until there is other content.
func (s *statusWriter) judged(made imagepolicy.Verdict) {
	switch {
	case len(made.Policies) == 0:
		s.unjudged()
	case len(made.Refusals) == 0:
		s.condition(ocv1.TypeVerified, metav1.ConditionTrue, ocv1.ReasonSigned, message(signedText(made)))
	case made.Refused:
		s.condition(ocv1.TypeVerified, metav1.ConditionFalse, ocv1.ReasonRefused, message(strings.Join(made.Refusals, "; ")+
			": what is served was accepted before, and stays until there is other content"))
	default:
		s.condition(ocv1.TypeVerified, metav1.ConditionFalse, ocv1.ReasonUnsigned, message(strings.Join(made.Refusals, "; ")+": it only warns"))
	}
}

// signedText names the policies with who has signed for each.
func signedText(made imagepolicy.Verdict) string {
	texts := make([]string, len(made.Signers))
	for i, signer := range made.Signers {
		texts[i] = fmt.Sprintf("ImagePolicy %q: signed by %s", made.Policies[i], signer)
	}
	return strings.Join(texts, "; ")
}

// judgementFailed says that nobody knows what ImagePolicies make of what is served.
func (s *statusWriter) judgementFailed(err error) {
	s.condition(ocv1.TypeVerified, metav1.ConditionUnknown, ocv1.ReasonVerificationFailed, message(err.Error()+"; it is tried again"))
}

// unjudged is for what no ImagePolicy is about.
func (s *statusWriter) unjudged() {
	meta.RemoveStatusCondition(&s.status.Conditions, ocv1.TypeVerified)
}

// stillServed says that other content than the wanted is served at base. A
// condition that says so already is left as it is: it tells of the generation
// that the content is of.
func (s *statusWriter) stillServed(rec Record, base string) {
	if !meta.IsStatusConditionTrue(s.status.Conditions, ocv1.TypeServing) {
		s.condition(ocv1.TypeServing, metav1.ConditionTrue, ocv1.ReasonAvailable, messageServing)
	}
	s.content(rec, base)
}

// notServed says that nothing is served, unless nothing ever was.
func (s *statusWriter) notServed() {
	s.unjudged()
	if meta.FindStatusCondition(s.status.Conditions, ocv1.TypeServing) != nil {
		s.condition(ocv1.TypeServing, metav1.ConditionFalse, ocv1.ReasonUnavailable, "")
	}
	s.noContent()
}

// removed says that nothing is served because the catalog is being deleted.
func (s *statusWriter) removed() {
	s.notServed()
	s.setPhase(phase{ready: metav1.ConditionFalse, reason: ocv1.ReasonUnavailable, message: messageRemoved})
}

// withdrawn says that nothing is served because the user said so.
func (s *statusWriter) withdrawn() {
	s.condition(ocv1.TypeProgressing, metav1.ConditionTrue, ocv1.ReasonSucceeded, messageUnavailable)
	s.condition(ocv1.TypeServing, metav1.ConditionFalse, ocv1.ReasonUserSpecifiedUnavailable, messageUnavailable)
	s.unjudged()
	s.noContent()
	s.setPhase(phase{
		ready: metav1.ConditionTrue, reason: ocv1.ReasonUserSpecifiedUnavailable, message: messageUnavailable,
	})
}

// setPhase sets Ready, and Reconciling, Stalled and Degraded as long as they apply. The whole
// text of an error is in Progressing.
func (s *statusWriter) setPhase(where phase) {
	text := excerpt.Cut(message(where.message), maxNoteBytes)
	s.condition(ocv1.TypeReady, where.ready, where.reason, text)
	s.passing(ocv1.TypeReconciling, where.working, where.reason, text)
	s.passing(ocv1.TypeStalled, where.stalled, where.reason, text)
	s.passing(ocv1.TypeDegraded, where.degraded != "", where.degraded, text)
}

func (s *statusWriter) passing(kind string, applies bool, reason, message string) {
	if !applies {
		meta.RemoveStatusCondition(&s.status.Conditions, kind)
		return
	}
	s.condition(kind, metav1.ConditionTrue, reason, message)
}

func (s *statusWriter) content(rec Record, base string) {
	s.status.ResolvedSource = &ocv1.ResolvedCatalogSource{
		Type:  ocv1.SourceTypeImage,
		Image: &ocv1.ResolvedImageSource{Ref: rec.Canonical},
	}
	s.status.URLs = &ocv1.ClusterCatalogURLs{Base: base}
	stored := metav1.NewTime(rec.StoredAt)
	s.status.LastUnpacked = &stored
	s.status.Packages = int32(min(rec.Packages, math.MaxInt32)) //nolint:gosec // it fits
}

func (s *statusWriter) noContent() {
	s.status.ResolvedSource, s.status.URLs, s.status.LastUnpacked, s.status.Packages = nil, nil, nil, 0
}

func (s *statusWriter) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: s.generation, LastTransitionTime: s.now,
	})
}

// message returns text as a condition can hold it.
func message(text string) string { return excerpt.Message(excerpt.Fold(text)) }
