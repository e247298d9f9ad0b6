package drift

import (
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// initialSync waits until watches have reported every object that the release record has
// a last applied fingerprint of, as present or as deleted.
type initialSync struct {
	missing map[object.Key]struct{}

	// failed says that some objects cannot be watched, or that it is not known how they are.
	failed bool

	// done is closed when there is nothing left to wait for.
	done chan struct{}
}

func newInitialSync(prints map[object.Key]object.Fingerprint) *initialSync {
	made := &initialSync{missing: make(map[object.Key]struct{}, len(prints)), done: make(chan struct{})}
	for key := range prints {
		made.missing[key] = struct{}{}
	}
	if len(prints) == 0 {
		close(made.done)
	}
	return made
}

// report is called for an object that a watch has reported.
func (r *initialSync) report(key object.Key) {
	if _, awaited := r.missing[key]; !awaited {
		return
	}
	delete(r.missing, key)
	if len(r.missing) == 0 {
		close(r.done)
	}
}

// fail ends the wait: the ServiceAccount may not watch some of the objects, or it is not known
// how they are. It can be so of some that were reported before.
func (r *initialSync) fail() {
	r.failed = true
	if len(r.missing) > 0 {
		r.missing = nil
		close(r.done)
	}
}

func (r *initialSync) isComplete() bool { return len(r.missing) == 0 && !r.failed }
