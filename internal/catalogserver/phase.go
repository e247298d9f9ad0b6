package catalogserver

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// stallAfter is for how long the same answer to every try is taken for trouble that
// passes. After it somebody has to look, and those who wait hear of it; the tries go
// on.
const stallAfter = 2 * time.Minute

// phase is where a catalog stands, for those who wait for it: at rest, at work, or
// stuck. It decides on Ready, Reconciling and Stalled.
type phase struct {
	ready metav1.ConditionStatus

	// working and stalled are not both set. With neither it is at rest.
	working, stalled bool

	reason, message string

	// degraded is the reason of Degraded; empty if that does not apply.
	degraded string

	// remaining is when the same answer once more would make it stalled; zero for
	// never.
	remaining time.Duration
}

// beginning is where a catalog stands whose content is about to be pulled.
func beginning(ref string) phase {
	return phase{
		ready: metav1.ConditionUnknown, working: true, reason: ocv1.ReasonPulling,
		message: fmt.Sprintf("pulling %q", ref),
	}
}

// failure is that the wanted content could not be had.
type failure struct {
	err error

	// blocked says that it lasts until the spec changes.
	blocked bool

	// held is the reference of the content that is served all the same; empty for
	// none. It is of the wanted source, if older than it should be, or of another one.
	held          string
	ofTheSameSpec bool

	// published is the reference of the content that the status says is served, if nothing
	// is held here: other replicas may serve it.
	published string

	// lasting is for how long every try has failed in the same way.
	lasting time.Duration
}

// phase after a failure. Content of the wanted source that could not be renewed is
// no reason for anybody to stop: it is what the spec asks for, as it was lately, and a
// registry that is away for a while must not turn every catalog red. Content of
// another source is not what the spec asks for, whoever serves it. What this replica alone
// lacks is taken to be served for some time.
func (f failure) phase() phase {
	text, next := f.err.Error(), f.next()
	switch {
	case f.published != "":
		text = fmt.Sprintf("the replica that leads has not got the content of %q yet, which others may serve: %v", f.published, f.err)
	case f.held != "":
		text = fmt.Sprintf("the content of %q is still served, and nothing newer can be had: %v", f.held, f.err)
	}
	s := phase{
		ready: metav1.ConditionFalse, reason: ocv1.ReasonRetrying,
		message: excerpt.Cut(message(text), maxNoteBytes-len(next)) + next, degraded: f.degraded(),
	}
	switch {
	case f.blocked:
		s.stalled, s.reason = true, ocv1.ReasonBlocked
	case f.held != "" && f.ofTheSameSpec:
		s.ready = metav1.ConditionTrue
	case f.published != "" && f.ofTheSameSpec && f.lasting < stallAfter:
		s.ready, s.remaining = metav1.ConditionTrue, stallAfter-f.lasting
	case f.lasting >= stallAfter:
		s.stalled = true
	default:
		s.working, s.remaining = true, stallAfter-f.lasting
	}
	return s
}

// degraded returns the reason of the condition Degraded; empty for no condition. A registry that is unavailable for a
// moment does not set it. If the catalog is not Ready, only broken content sets it, because a metric counts that.
func (f failure) degraded() string {
	switch {
	case saysBroken(f.err):
		return ocv1.ReasonContentInvalid
	case f.held != "" && f.ofTheSameSpec && f.lasting >= stallAfter:
		return ocv1.ReasonSourceUnavailable
	}
	return ""
}

// next is what to do about a failure, if that is known.
func (f failure) next() string {
	const check = "; only who makes the image can mend it, and `kubectl extension catalog check` tells all that is wrong; "
	if refused, ok := errors.AsType[*image.PolicyError](f.err); ok && refused.Err == nil {
		return "; " + imagepolicy.Remedy(refused.Ref)
	}
	switch isBroken := saysBroken(f.err); {
	case f.blocked && isBroken:
		return check + "nothing is tried until the spec names another image"
	case f.blocked:
		return "; nothing is tried until the spec is edited"
	case isBroken:
		return check + "it is tried again"
	}
	return ""
}

// saysBroken reports whether the image is at fault, or the catalog in it.
func saysBroken(err error) bool {
	_, inFile := errors.AsType[*FileError](err)
	_, tooLarge := errors.AsType[*fbc.LimitError](err)
	return inFile || tooLarge || errors.Is(err, ErrEmptyCatalog) || errors.Is(err, image.ErrContent)
}

// isReported reports whether the status says of the present spec that all is not as
// wanted. If it does, another try changes nothing that the status says.
func isReported(catalog *ocv1.ClusterCatalog) bool {
	ready := meta.FindStatusCondition(catalog.Status.Conditions, ocv1.TypeReady)
	return catalog.Status.ObservedGeneration == catalog.Generation &&
		ready != nil && ready.ObservedGeneration == catalog.Generation && ready.Status != metav1.ConditionTrue
}

// answers remember since when the tries to get the content of a catalog have failed in
// the same way. They are lost with the process, and the time begins anew then.
type answers struct {
	mu    sync.Mutex
	known map[string]answer // by catalog
}

type answer struct {
	generation int64
	text       string
	since      time.Time
}

// lasting takes in an answer, and returns for how long there was no other one.
func (a *answers) lasting(catalog *ocv1.ClusterCatalog, err error, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	given := answer{generation: catalog.Generation, text: message(err.Error()), since: now}
	known, ok := a.known[catalog.Name]
	switch {
	case ok && known.generation == given.generation && known.text == given.text:
		given.since = known.since
	case !ok && wasStalled(catalog, given.text):
		given.since = now.Add(-stallAfter)
	}
	if a.known == nil {
		a.known = map[string]answer{}
	}
	a.known[catalog.Name] = given
	return now.Sub(given.since)
}

// wasStalled reports whether an earlier process has heard the same for long enough.
func wasStalled(catalog *ocv1.ClusterCatalog, text string) bool {
	progressing := meta.FindStatusCondition(catalog.Status.Conditions, ocv1.TypeProgressing)
	return progressing != nil && progressing.Message == text && slices.ContainsFunc(catalog.Status.Conditions, func(condition metav1.Condition) bool {
		isOld := condition.Type == ocv1.TypeStalled || condition.Type == ocv1.TypeDegraded && condition.Reason == ocv1.ReasonSourceUnavailable
		return isOld && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == catalog.Generation
	})
}

// forget is for a catalog that has what it should, or that is gone.
func (a *answers) forget(catalog string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, catalog)
}
