package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

const labelVerdict = "verdict"

// verdictUnknown is the verdict on an image while its signatures cannot be read.
const verdictUnknown = "unknown"

// verdictGauges tell of what ImagePolicies make of images, in one series at most for each object.
type verdictGauges struct{ *prometheus.GaugeVec }

func newVerdictGauges(name, help, object string) *verdictGauges {
	return &verdictGauges{gauge(name, help, object, labelVerdict)}
}

// set takes in the verdict on the image of an object; empty if no policy is about it.
func (g *verdictGauges) set(object, verdict string) {
	for _, other := range []string{string(imagepolicy.Accepted), string(imagepolicy.Warned), string(imagepolicy.Refused), verdictUnknown} {
		if other != verdict {
			g.DeleteLabelValues(object, other)
		}
	}
	if verdict != "" {
		g.WithLabelValues(object, verdict).Set(1)
	}
}

// verdictLabel is the one for the image of what is installed.
func verdictLabel(found Signatures) string {
	switch {
	case found.Err != nil:
		return verdictUnknown
	case len(found.Verdict.Policies) == 0:
		return ""
	default:
		return string(found.Verdict.Outcome())
	}
}

// verdictLabelOf is the one that the conditions of a catalog tell.
func verdictLabelOf(conditions []metav1.Condition) string {
	verified := meta.FindStatusCondition(conditions, ocv1.TypeVerified)
	if verified == nil {
		return ""
	}
	switch verified.Reason {
	case ocv1.ReasonSigned:
		return string(imagepolicy.Accepted)
	case ocv1.ReasonUnsigned:
		return string(imagepolicy.Warned)
	case ocv1.ReasonRefused:
		return string(imagepolicy.Refused)
	default:
		return verdictUnknown
	}
}
