package catalogserver

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "github.com/clusterextensions/operator-controller/api/v1"
)

const (
	messageStored      = "Successfully unpacked and stored content from resolved source"
	messageServing     = "Serving desired content from resolved source"
	messageUnavailable = "Catalog availability mode is set to Unavailable"

	// maxMessageBytes is what the API server accepts in a condition.
	maxMessageBytes = 32768
	truncated       = "\n\n... [message truncated]"
)

// statusWriter composes the status of one catalog in one pass. Conditions that
// belong to others are left as they are.
type statusWriter struct {
	status     apiv1.ClusterCatalogStatus
	generation int64
	now        metav1.Time
}

func newStatus(catalog *apiv1.ClusterCatalog, now time.Time) *statusWriter {
	return &statusWriter{
		status:     *catalog.Status.DeepCopy(),
		generation: catalog.Generation,
		now:        metav1.NewTime(now),
	}
}

// served says that the wanted content is served at base.
func (s *statusWriter) served(rec Record, base string) {
	s.condition(apiv1.TypeProgressing, metav1.ConditionTrue, apiv1.ReasonSucceeded, messageStored)
	s.condition(apiv1.TypeServing, metav1.ConditionTrue, apiv1.ReasonAvailable, messageServing)
	s.content(rec, base)
}

// failed says that the wanted content could not be had.
func (s *statusWriter) failed(err error, blocked bool) {
	status, reason := metav1.ConditionTrue, apiv1.ReasonRetrying
	if blocked {
		status, reason = metav1.ConditionFalse, apiv1.ReasonBlocked
	}
	s.condition(apiv1.TypeProgressing, status, reason, message(err))
}

// stillServed says that other content than the wanted is served at base. A
// condition that says so already is left as it is: it tells of the generation
// that the content is of.
func (s *statusWriter) stillServed(rec Record, base string) {
	if !meta.IsStatusConditionTrue(s.status.Conditions, apiv1.TypeServing) {
		s.condition(apiv1.TypeServing, metav1.ConditionTrue, apiv1.ReasonAvailable, messageServing)
	}
	s.content(rec, base)
}

// notServed says that nothing is served, unless nothing ever was.
func (s *statusWriter) notServed() {
	if meta.FindStatusCondition(s.status.Conditions, apiv1.TypeServing) != nil {
		s.condition(apiv1.TypeServing, metav1.ConditionFalse, apiv1.ReasonUnavailable, "")
	}
	s.noContent()
}

// withdrawn says that nothing is served because the user said so.
func (s *statusWriter) withdrawn() {
	s.condition(apiv1.TypeProgressing, metav1.ConditionTrue, apiv1.ReasonSucceeded, messageUnavailable)
	s.condition(apiv1.TypeServing, metav1.ConditionFalse, apiv1.ReasonUserSpecifiedUnavailable, messageUnavailable)
	s.noContent()
}

func (s *statusWriter) content(rec Record, base string) {
	s.status.ResolvedSource = &apiv1.ResolvedCatalogSource{
		Type:  apiv1.SourceTypeImage,
		Image: &apiv1.ResolvedImageSource{Ref: rec.Canonical},
	}
	s.status.URLs = &apiv1.ClusterCatalogURLs{Base: base}
	stored := metav1.NewTime(rec.StoredAt)
	s.status.LastUnpacked = &stored
}

func (s *statusWriter) noContent() {
	s.status.ResolvedSource, s.status.URLs, s.status.LastUnpacked = nil, nil, nil
}

func (s *statusWriter) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: s.generation, LastTransitionTime: s.now,
	})
}

// volatileAddress matches what differs between two equal failures of a network.
var volatileAddress = regexp.MustCompile(`(read|write) (tcp|udp) \S+:\d+->\S+:\d+: `)

// message returns the text of err, fit for a condition.
func message(err error) string {
	text := volatileAddress.ReplaceAllString(err.Error(), "")
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\n", " "), "")
	if len(text) <= maxMessageBytes {
		return text
	}
	cut := maxMessageBytes - len(truncated)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + truncated
}
