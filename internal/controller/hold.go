package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/imageref"
)

// maxHeldError bounds the text of an error that stands for tries that are not made, in
// bytes.
const maxHeldError = 8 << 10

// goal is what a try was to come to, and by which spec.
type goal struct {
	extension  types.UID
	generation int64
	action     Action
	bundle     bundle.Identity
	image      string
}

func goalOf(ext *ocv1.ClusterExtension, target Target) goal {
	return goal{extension: ext.UID, generation: ext.Generation, action: target.Action, bundle: target.Bundle, image: target.Image}
}

// isForward says that a pass that ended at a stage has ended on its way forward.
func isForward(stage Stage) bool {
	return stage == StageFetch || stage == StageRender || stage == StageApply
}

// hold says what would come of trying to get forward once more, so that it is not tried. A
// pass that is made all the same, to repair what is installed or because time has to show in
// the status, has the same outcome without a request.
type hold struct {
	goal  goal
	stage Stage
	err   error
	began bool

	// until is when it is tried again; zero for as long as nobody asks.
	until time.Time

	// judged says that the bundle alone was judged, by content that cannot change: asking
	// does not help.
	judged bool

	// told is the cluster of which the templates of a chart were told that was refused, at
	// the time of tried; zero for what was not refused by templates. They may do otherwise when
	// they are told of another one. refusals is how often they have refused one before.
	told     cluster
	tried    time.Time
	refusals int

	// isOver says that a try for the same goal has begun since.
	isOver bool
}

// chartPause is between a chart that was refused and the next rendering for another cluster. It
// is twice as long each time: APIs come and go, and to render costs up to half a minute of a
// processor.
const chartPause = 10 * time.Second

// again is when templates are told of another cluster, once there is one.
func (h hold) again() time.Time {
	return h.tried.Add(min(chartPause<<min(h.refusals, 8), maxCohortBackoff))
}

// holdOf is what a pass that ended on its way forward has found out for the next ones. Next
// is when it is tried again; zero if that is no matter of time.
func holdOf(ext *ocv1.ClusterExtension, outcome Outcome, v verdict, next, now time.Time) hold {
	found := hold{goal: goalOf(ext, outcome.Target), stage: outcome.Stage, err: outcome.Err, began: outcome.Began, until: next}
	isFinal := v.disposition == Blocked && v.again == 0
	found.judged = isFinal && outcome.Stage != StageApply && imageref.Digest(outcome.Target.Image) != ""
	if isFinal && outcome.Stage == StageRender {
		found.told, found.tried = outcome.Told, now
	}
	return found
}

// holdOfPending is what a pass that ended at an approval has found out: that goes on waiting
// until the spec changes, or the catalog has another image.
func holdOfPending(ext *ocv1.ClusterExtension, outcome Outcome) hold {
	return hold{
		goal: goalOf(ext, outcome.Target), stage: StageRender, err: outcome.Pending,
		judged: imageref.Digest(outcome.Target.Image) != "",
	}
}

// stands says whether a hold is good for a pass toward a goal.
func (h hold) stands(toward goal, now time.Time) bool {
	return h.err != nil && !h.isOver && h.goal == toward && (h.until.IsZero() || now.Before(h.until))
}

// endsBy says whether a hold ends by news. What is installed does not decide whether the
// bundle can be had or rendered, but it can stand in the way of what is applied, or serve its
// webhooks.
func (h hold) endsBy(what news) bool {
	switch what {
	case newsOfContent:
		return h.stage == StageApply
	case newsOfOthers:
		return !h.judged
	case newsOfTime:
	}
	return false
}

// news is why there is a pass over an extension; of several, the later one counts.
type news int

const (
	// newsOfTime: nothing has changed but that.
	newsOfTime news = iota

	// newsOfContent: what is installed has drifted, or does otherwise.
	newsOfContent

	// newsOfOthers: anything else that concerns the extension.
	newsOfOthers
)

// holds has at most one hold for each extension.
type holds struct {
	mu    sync.Mutex
	asked map[string]news // of extensions with a pass that somebody asks for and that has not begun
	known map[string]hold
}

func newHolds() *holds { return &holds{asked: map[string]news{}, known: map[string]hold{}} }

// ask is for whoever knows of a change that concerns an extension.
func (h *holds) ask(extension string) { h.hear(extension, newsOfOthers) }

// notice is for whoever knows of a change of what is installed.
func (h *holds) notice(extension string) { h.hear(extension, newsOfContent) }

func (h *holds) hear(extension string, what news) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[extension] = max(h.asked[extension], what)
}

// begin is for the begin of a pass. It ends a hold if there is news that ends it.
func (h *holds) begin(extension string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known[extension].endsBy(h.asked[extension]) {
		delete(h.known, extension)
	}
	delete(h.asked, extension)
}

// take gives the hold of an extension that is good for a pass toward a goal, and ends any
// other: a try begins, which can take several passes. Of a chart that was refused it is known
// until then how often it was. Current is what templates would be told of.
func (h *holds) take(extension string, toward goal, now time.Time, current cluster) (hold, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.known[extension]
	isRefused := known.told != (cluster{})
	if isRefused && known.until.IsZero() && known.told.differs(current) {
		known.until = known.again()
	}
	switch known.isOver = !known.stands(toward, now); {
	case !known.isOver, isRefused && known.goal == toward:
		h.known[extension] = known
	default:
		delete(h.known, extension)
	}
	return known, !known.isOver
}

// told is the cluster of which the templates of a refused chart were told; zero if there is
// none, or if they are told of another one soon.
func (h *holds) told(extension string) cluster {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.known[extension]; !known.isOver && known.until.IsZero() {
		return known.told
	}
	return cluster{}
}

// until is when what the hold of an extension stands for is tried again; zero for as long as
// nobody asks.
func (h *holds) until(extension string) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.known[extension]; !known.isOver {
		return known.until
	}
	return time.Time{}
}

// put replaces the hold of an extension. An error that is too long to be kept is none.
func (h *holds) put(extension string, met hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(met.err.Error()) > maxHeldError {
		delete(h.known, extension)
		return
	}
	if before := h.known[extension]; before.told != (cluster{}) && before.goal == met.goal {
		met.refusals = before.refusals + 1
	}
	h.known[extension] = met
}

// forget is for an extension that has got forward, or is gone.
func (h *holds) forget(extension string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, extension)
}
