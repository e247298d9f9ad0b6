package judge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/argocd"
)

// Phase is where a status says that its object stands.
type Phase string

// All phases. Of those that apply, the first one counts.
const (
	// Deleted is what is being deleted, whatever is still there.
	Deleted Phase = "being deleted"

	// Unseen is what was not looked at since it was created or edited.
	Unseen Phase = "not looked at"

	// Suspended is what its user has suspended, and Withdrawn a catalog that its user has
	// made unavailable.
	Suspended Phase = "suspended"
	Withdrawn Phase = "withdrawn"

	// Ready is what is as wanted.
	Ready Phase = "ready"

	// Stuck is what gets no further until a person acts.
	Stuck Phase = "stuck"

	// Working is what somebody works on.
	Working Phase = "at work"

	// Unavailable is what nobody works on, and what does not serve: it is stuck if that
	// lasts for two minutes.
	Unavailable Phase = "unavailable"

	// Silent is none of these: nobody learns what to wait for.
	Silent Phase = "silent"
)

// allowed is what others may make of a phase. A phase that allows nothing must not be.
type allowed struct {
	kstatus []kstatus.Status
	argo    []string
}

// table has one row for each phase. What is wanted by its user is no failure to Argo CD; for
// kstatus it is current only as far as it serves.
var table = map[Phase]allowed{
	Deleted:     {kstatus: []kstatus.Status{kstatus.TerminatingStatus}, argo: []string{argocd.Progressing, argocd.Degraded, argocd.Suspended}},
	Unseen:      {kstatus: []kstatus.Status{kstatus.InProgressStatus}, argo: []string{argocd.Progressing}},
	Suspended:   {kstatus: []kstatus.Status{kstatus.CurrentStatus, kstatus.InProgressStatus, kstatus.FailedStatus}, argo: []string{argocd.Suspended}},
	Withdrawn:   {kstatus: []kstatus.Status{kstatus.CurrentStatus}, argo: []string{argocd.Suspended}},
	Ready:       {kstatus: []kstatus.Status{kstatus.CurrentStatus}, argo: []string{argocd.Healthy}},
	Stuck:       {kstatus: []kstatus.Status{kstatus.FailedStatus}, argo: []string{argocd.Degraded}},
	Working:     {kstatus: []kstatus.Status{kstatus.InProgressStatus}, argo: []string{argocd.Progressing}},
	Unavailable: {kstatus: []kstatus.Status{kstatus.InProgressStatus}, argo: []string{argocd.Progressing, argocd.Degraded}},
	Silent:      {},
}

// personReasons are those of Ready and Progressing that no time heals.
var personReasons = []string{
	ocv1.ReasonBlocked, ocv1.ReasonInvalidConfiguration, ocv1.ReasonProgressDeadlineExceeded,
	ocv1.ReasonRolloutFailed, ocv1.ReasonDeletionBlocked,
}

// Phase goes by Ready and its reason first, which kstatus and Argo CD look at last.
func (r Reading) Phase() Phase {
	ready, progressing := r.Condition(ocv1.TypeReady), r.Condition(ocv1.TypeProgressing)
	switch {
	case r.IsDeleted():
		return Deleted
	case !r.Observed() || len(r.status()) == 0:
		return Unseen
	case r.Condition(ocv1.TypeSuspended).Is("True", ocv1.ReasonUserRequested):
		return Suspended
	case ready.Status == "True" && r.Condition(ocv1.TypeServing).Is("False", ocv1.ReasonUserSpecifiedUnavailable):
		return Withdrawn
	case ready.Status == "True":
		return Ready
	case ready.Status == "":
		return Silent
	case slices.Contains(personReasons, ready.Reason), progressing.Status == "False", r.Condition(ocv1.TypeStalled).Status == "True":
		return Stuck
	case r.Condition(ocv1.TypeReconciling).Status == "True":
		return Working
	case ready.Reason == ocv1.ReasonUnavailable || ready.Reason == ocv1.ReasonAvailabilityUnknown:
		return Unavailable
	}
	return Silent
}

func (r Reading) status() map[string]any {
	status, _ := r.Object.Object["status"].(map[string]any)
	return status
}

// Status says where a status leads its readers astray: each of them alone, or because they
// do not agree. There is nothing to say of one on which all agree as the table has it.
func Status(r Reading) []string {
	phase, said := r.Phase(), r.Kstatus()
	row := table[phase]
	var lies []string
	lie := func(format string, args ...any) { lies = append(lies, fmt.Sprintf(format, args...)) }
	if !slices.Contains(row.kstatus, said) || !slices.Contains(row.argo, r.Argo.Status) {
		lie("it is %s, kstatus says %s, and Argo CD %s: the table allows kstatus %s, and Argo CD %s",
			phase, said, r.Argo.Status, oneOf(row.kstatus), oneOf(row.argo))
	}
	wait := r.WaitReturns(ocv1.TypeReady)
	if wait && r.IsDeleted() {
		lie("kubectl wait for Ready returns: it is being deleted")
	}
	if current := said == kstatus.CurrentStatus; current != wait && !r.IsDeleted() {
		lie("kstatus says %s, and kubectl wait for Ready returns: %t", said, wait)
	}
	if ready := r.Condition(ocv1.TypeReady); phase == Unavailable && ready.Status == "False" && r.Argo.Status != argocd.Degraded {
		lie("nobody works on it, and Argo CD says %s", r.Argo.Status)
	}
	var is []string
	for _, kind := range []string{ocv1.TypeReady, ocv1.TypeReconciling, ocv1.TypeStalled} {
		if r.Condition(kind).Status == "True" {
			is = append(is, kind)
		}
	}
	if len(is) > 1 {
		lie("True at once: %s", strings.Join(is, ", "))
	}
	return lies
}

func oneOf[T ~string](words []T) string {
	if len(words) == 0 {
		return "nothing"
	}
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return strings.Join(texts, " or ")
}

// MaxHope is for how long a status may stay in the same hope. The controller gives up hope
// after two minutes; another one that takes over begins anew.
const MaxHope = 5 * time.Minute

// Hope is what a status gives as the cause of its waiting, where that may go away by itself
// and a person has to act if it does not. It is empty where there is no such hope.
func (r Reading) Hope() string {
	ready, cause := r.Condition(ocv1.TypeReady), r.Condition(ocv1.TypeReconciling)
	switch phase := r.Phase(); {
	case phase == Working && cause.Reason == ocv1.ReasonRetrying:
	case phase == Unavailable:
		cause = ready
	default:
		return ""
	}
	return "generation " + strconv.FormatInt(r.Object.GetGeneration(), 10) + ", " + cause.Reason + ": " + cause.Message
}

// String tells of a status in one line.
func (r Reading) String() string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s %s, generation %d", r.Object.GetKind(), r.Object.GetName(), r.Object.GetGeneration())
	for _, kind := range []string{ocv1.TypeReady, ocv1.TypeReconciling, ocv1.TypeStalled, ocv1.TypeProgressing, ocv1.TypeSuspended, ocv1.TypeServing} {
		if condition := r.Condition(kind); condition.Status != "" {
			fmt.Fprintf(&line, "; %s=%s %s %.120q", kind, condition.Status, condition.Reason, condition.Message)
		}
	}
	return line.String()
}
