package controller

import (
	"context"
	"time"

	"github.com/clusterextensions/operator-controller/internal/turn"
)

// slowPass is from which time on a pass is slow. The next one over the same extension waits
// for its turn among large ones: what holds it up may be a webhook of its own content that does
// not answer, and all workers would wait for such webhooks.
const slowPass = 15 * time.Second

// timePass begins to measure a pass; what it returns is for the end. A pass that only waited
// for its turn says nothing about how long the next one takes.
func (r *Reconciler) timePass(ctx context.Context, extension string) (end func()) {
	began := r.Now()
	return func() {
		_, wasSlow := r.slow.Load(extension)
		switch took := r.Now().Sub(began); {
		case took >= slowPass:
			r.slow.Store(extension, struct{}{})
		case wasSlow && turn.Taken(ctx):
			r.slow.Delete(extension)
		}
	}
}

// takeTurnIfSlow fails with [turn.ErrWait] if the last pass over the extension was slow, and
// it is not its turn.
func (r *Reconciler) takeTurnIfSlow(ctx context.Context, extension string) error {
	if _, isSlow := r.slow.Load(extension); !isSlow {
		return nil
	}
	return turn.Take(ctx)
}
