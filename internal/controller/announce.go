package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// slow is how long a spec may go without a word, and a pull before it is reported. Most have
// come as far as the first write by then, of which the status tells anyway, and until then
// it shows by its generation that it is about another spec, or about none.
const slow = 5 * time.Second

// announcement writes to the status, before a pass is over, that a revision is under way.
// Without it somebody who has edited the spec would take the old status for the answer.
// There is one write for each installation or upgrade: a status that says already that
// something is left to do stays. A large extension has two more, before and after it has
// waited for its turn.
type announcement struct {
	reconciler *Reconciler

	mu  sync.Mutex             // begin writes beside the pass
	ext *ocv1.ClusterExtension // as it was written last
	err error                  // of the write; nothing may be written after it
}

// begin tells, beside the pass, of a spec that no status was about if it takes long until
// something is written for it. What it returns ends the wait for that. Others are told of when
// something comes of them: most passes that look for another revision end without one.
func (a *announcement) begin(ctx context.Context, outcome Outcome, since time.Time) (end func()) {
	if ext := a.extension(); ext.Status.ObservedGeneration == ext.Generation {
		return func() {}
	}
	ended := false
	stop := a.reconciler.After(slow-a.reconciler.Now().Sub(since), func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		doing := fmt.Sprintf("checking what image %s changes, then applying it", outcome.Target.Image)
		if ended {
			return
		}
		if told, _ := a.writeOnce(ctx, outcome, doing); told { // the pass ends with the error
			a.emit(ocv1.ReasonRollingOut, underwayText(outcome, doing))
		}
	})
	return func() {
		stop()
		a.mu.Lock()
		defer a.mu.Unlock()
		ended = true
	}
}

// pulling tells of an image that takes its time, in the status unless that has more to say,
// and in an event.
func (a *announcement) pulling(ctx context.Context, outcome Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	doing := fmt.Sprintf("pulling image %s takes longer than %s", outcome.Target.Image, slow)
	if _, err := a.writeOnce(ctx, outcome, doing); err == nil {
		a.emit(eventPulling, underwayText(outcome, doing))
	}
}

// queued tells of an extension that waits for its turn, once.
func (a *announcement) queued(ctx context.Context, outcome Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !claimsDone(a.ext) && (a.isQueued(outcome) || !isUnderway(a.ext)) {
		return
	}
	if _, err := a.write(ctx, outcome, queuedText(outcome)); err == nil { // or else the next pass finds out what has become of it
		a.emit(ocv1.ReasonRollingOut, underwayText(outcome, queuedText(outcome)))
	}
}

// emit tells of what takes long. All else has its event when it ends: most installations and
// upgrades are over in a moment.
func (a *announcement) emit(reason, text string) {
	a.reconciler.emit(a.ext, &transition{kind: corev1.EventTypeNormal, reason: reason, note: text})
}

func queuedText(outcome Outcome) string {
	return fmt.Sprintf("waits for its turn to apply image %s: it is large, and so are others that are worked on", outcome.Target.Image)
}

// isQueued says that the status tells of an extension that waits for its turn.
func (a *announcement) isQueued(outcome Outcome) bool {
	progressing := meta.FindStatusCondition(a.ext.Status.Conditions, ocv1.TypeProgressing)
	return progressing != nil && progressing.Message == underwayText(outcome, queuedText(outcome))
}

// isUnderway says that the status tells what is going on, and of nothing that has failed.
func isUnderway(ext *ocv1.ClusterExtension) bool {
	progressing := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeProgressing)
	return progressing != nil && progressing.Reason == ocv1.ReasonRollingOut
}

// applying is for the last moment before something is written. It confirms that the
// extension is there and is to stay if that is known from the write: a deletion changes the
// resource version, without which the write is refused. Where nothing is written, nothing
// is known. What a tag stands for is written in any case: the next process goes on with that.
func (a *announcement) applying(ctx context.Context, outcome Outcome) (confirmed bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = a.edited(ctx)
	}
	doing := fmt.Sprintf("applying image %s", outcome.Target.Image)
	var told bool
	if a.isQueued(outcome) || a.ext.Status.ResolvedSource == nil && resolvedOf(a.ext, outcome) != nil {
		told, err = a.write(ctx, outcome, doing)
	} else {
		told, err = a.writeOnce(ctx, outcome, doing)
	}
	return told && a.ext.UID == outcome.Owner.UID && a.ext.DeletionTimestamp.IsZero(), err
}

// edited fails if the spec was changed since the pass has read it: somebody may have taken an
// approval back, or want another version. It makes no request.
func (a *announcement) edited(ctx context.Context) error {
	now := &ocv1.ClusterExtension{}
	err := a.reconciler.Client.Get(ctx, client.ObjectKeyFromObject(a.ext), now)
	isThere := err == nil && now.UID == a.ext.UID // which others confirm
	if !isThere || now.Generation == a.ext.Generation {
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Group: ocv1.GroupVersion.Group, Resource: "clusterextensions"}, a.ext.Name,
		errors.New("its spec was changed while it was checked what to write"))
}

// writeOnce is called with the lock held, and so are write and writeText.
func (a *announcement) writeOnce(ctx context.Context, outcome Outcome, doing string) (told bool, err error) {
	if a.err != nil || !claimsDone(a.ext) {
		return false, a.err
	}
	return a.write(ctx, outcome, doing)
}

func (a *announcement) write(ctx context.Context, outcome Outcome, doing string) (told bool, err error) {
	return a.writeText(ctx, outcome, underwayText(outcome, doing))
}

func (a *announcement) writeText(ctx context.Context, outcome Outcome, text string) (told bool, err error) {
	if a.err != nil {
		return false, a.err
	}
	r, now := a.reconciler, a.reconciler.Now()
	v := verdict{disposition: Working, reason: ocv1.ReasonRollingOut, message: text, summary: text}
	status := statusOf(a.ext, outcome, v, phaseOf(a.ext, outcome, v, r.effortsOf(a.ext.Name), now), now)
	r.announced.Store(a.ext.Name, status.DeepCopy())
	written, err := r.writeStatus(ctx, a.ext, status)
	if err != nil {
		a.err = err
		return false, err
	}
	a.ext = written
	return true, nil
}

// textQueued is for what waits for its turn before anything is known of it.
const textQueued = "waits for its turn to look at what is installed: it is large or slow, and so are others that are worked on"

// awaiting tells of a spec that no status was about what it waits for, before any more can
// be said of it.
func (a *announcement) awaiting(ctx context.Context, outcome Outcome, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ext.Status.ObservedGeneration == a.ext.Generation {
		return
	}
	if _, err := a.writeText(ctx, outcome, text); err == nil { // or else the next pass finds out what has become of it
		a.emit(ocv1.ReasonRollingOut, text)
	}
}

// claimsDone says whether somebody could take the status for that of a spec that is
// carried out.
func claimsDone(ext *ocv1.ClusterExtension) bool {
	progressing := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeProgressing)
	return progressing == nil || progressing.ObservedGeneration != ext.Generation || progressing.Reason == ocv1.ReasonSucceeded
}

func (a *announcement) extension() *ocv1.ClusterExtension {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ext
}

// failure is that of the write.
func (a *announcement) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// pull is an image that an extension waits for.
type pull struct {
	image BundleImage
	since time.Time

	// reported says that the status or an event says that it takes its time.
	reported bool

	// files are what came of it, for a pass that waits for its turn; nil otherwise.
	files *Files
}

// slowIn is how long it is until that is to be reported; zero for never.
func (p pull) slowIn(now time.Time) time.Duration {
	if p.reported {
		return 0
	}
	// Zero would mean never.
	return max(slow-now.Sub(p.since), time.Millisecond)
}

// discard is for a pull that nobody goes on with.
func (r *Reconciler) discard(p pull) {
	if p.files != nil {
		r.keptFiles.Add(-1)
		p.files.Close()
	}
}

// pullOf is the one that an extension waits for, or begins to.
func (r *Reconciler) pullOf(extension string, image BundleImage) pull {
	known, _ := r.pulls.Load(extension)
	waited, ok := known.(pull)
	if ok && waited.image == image {
		return waited
	}
	r.discard(waited)
	begun := pull{image: image, since: r.Now()}
	r.pulls.Store(extension, begun)
	return begun
}

// abandonPull is for an extension that waits for none any more.
func (r *Reconciler) abandonPull(extension string) {
	known, _ := r.pulls.LoadAndDelete(extension)
	if waited, ok := known.(pull); ok {
		r.discard(waited)
	}
	r.Bundles.Abandon(extension)
}

// slowIn is when to report the pull that an extension waits for; zero for never.
func (r *Reconciler) slowIn(extension string) time.Duration {
	known, _ := r.pulls.Load(extension)
	waited, ok := known.(pull)
	if !ok {
		return 0
	}
	return waited.slowIn(r.Now())
}

// reportSlowPull reports a pull that takes its time, once.
func (r *Reconciler) reportSlowPull(ctx context.Context, outcome Outcome, announced *announcement) {
	extension := outcome.Owner.Name
	known, _ := r.pulls.Load(extension)
	waited, ok := known.(pull)
	if !ok || waited.reported || r.Now().Sub(waited.since) < slow {
		return
	}
	announced.pulling(ctx, outcome)
	if announced.failure() == nil {
		waited.reported = true
		r.pulls.Store(extension, waited)
	}
}
