package applier

import (
	"context"
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
)

// maxRollCall is how long watches may take to report what is there. After that
// every object is read: what was changed while no process ran is to be put back
// within seconds, even if the API server is slow to answer watches.
const maxRollCall = 5 * time.Second

// rollCall is the wait for every object that a record tells of to be reported by
// a watch, present or gone.
type rollCall struct {
	missing map[object.Key]struct{}

	// failed says that some objects cannot be watched.
	failed bool

	// over is closed when there is nothing left to wait for.
	over chan struct{}
}

func newRollCall(prints map[object.Key]object.Fingerprint) *rollCall {
	made := &rollCall{missing: make(map[object.Key]struct{}, len(prints)), over: make(chan struct{})}
	for key := range prints {
		made.missing[key] = struct{}{}
	}
	if len(prints) == 0 {
		close(made.over)
	}
	return made
}

// answer is for an object that was reported.
func (r *rollCall) answer(key object.Key) {
	if _, awaited := r.missing[key]; !awaited {
		return
	}
	delete(r.missing, key)
	if len(r.missing) == 0 {
		close(r.over)
	}
}

// fail is for a watch that is not allowed.
func (r *rollCall) fail() {
	if len(r.missing) > 0 {
		r.missing, r.failed = nil, true
		close(r.over)
	}
}

func (r *rollCall) isComplete() bool { return len(r.missing) == 0 && !r.failed }

// recognize takes from the record how the objects of the installed revision were
// left, and lets the watches tell which of them look different now. It makes no
// other request. If that does not come to be known of every object, all of them
// stay to be looked at. It reports whether the watches were begun.
func (a *Applier) recognize(
	ctx context.Context, owner object.Owner, installed *release.Installed,
) (watched bool) {
	items, err := object.Items(a.config.Mapper, owner, installed.Objects)
	if err != nil {
		return false // said by whoever reads the objects
	}
	keys := make([]object.Key, 0, len(items))
	steps := make([]step, 0, len(items))
	for _, item := range items {
		keys, steps = append(keys, item.Key), append(steps, step{Item: item})
	}
	prints := installed.LastApplied(keys)
	if prints == nil {
		return false
	}
	known := a.state(owner)
	over := known.expect(prints)
	// A watch that runs already does not say again what is there.
	if a.follow(owner, steps) {
		patience := time.NewTimer(maxRollCall)
		defer patience.Stop()
		select {
		case <-over:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	known.concludeRollCall(a.config.Now())
	return true
}
