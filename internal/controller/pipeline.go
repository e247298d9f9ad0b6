package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

// Stage is how far a pass came before it failed.
type Stage string

// The stages in their order. The empty stage is a pass that did not fail.
const (
	StageValidate Stage = "validate"
	StageObserve  Stage = "observe"
	StageResolve  Stage = "resolve"
	StageFetch    Stage = "fetch"
	StageRender   Stage = "render"
	StageApply    Stage = "apply"
	StageRepair   Stage = "repair"
)

// Outcome is all that a pass found out. The status is made of it, of the phase and of the
// status before.
type Outcome struct {
	Owner    object.Owner
	Observed Observed
	Target   Target

	// Onward is what the next pass will do if the world stays as it is now. That is the
	// same as Target, unless this pass has reached it.
	Onward Target

	// Waiting says that the pass has ended for its image, which is on its way, or for its
	// turn among large ones. Nothing else counts then but RecheckAfter and Repair.
	Waiting bool

	// Fetching says that it waits for its image.
	Fetching bool

	// Installed is what is on the cluster after the pass; nil for nothing, or
	// when it could not be found out.
	Installed *installation.Revision

	// Stage and Err say where the way forward ended. Err is nil when the world
	// is as wanted.
	Stage Stage
	Err   error

	// Hook is what the way forward waits for, or what comes after it: a hook that runs; nil for
	// none. There is no error then.
	Hook *installation.HookUnderwayError

	// Began says that content was written before Err came up.
	Began bool

	// HasValues says that the spec has values for the templates of a chart, which can be what
	// is wrong with its objects.
	HasValues bool

	// Told is the cluster that the templates of a chart were told of; zero if they were not.
	Told cluster

	// LooksInVain says that templates of a chart were rendered which call lookup, and that the spec
	// does not let them find anything.
	LooksInVain bool

	// Shared lists Services that select pods of others. At the end of a reconcile, it lists the
	// Services of the installed bundle that cannot be changed.
	Shared []bundle.SharedService

	// Held says that nothing was tried, because the last try tells what would come of it:
	// Stage, Err and Began are of that one.
	Held bool

	// Pending is the upgrade that waits for an approval; nil for none. It is no error:
	// until it is approved, what is installed is what is wanted.
	Pending *PendingError

	// PlanSummary says what that would do; empty if it is not known yet. Foreseeing says that
	// its image is on its way, or its turn to come, to find that out.
	PlanSummary string
	Foreseeing  bool

	// Suspended is what is not done because the spec says so; nil unless it does. Stage and
	// Err say nothing then of a choice that could not be made.
	Suspended *Suspension

	// Veto is why the operator that is installed is not upgraded. There is no error then
	// either.
	Veto *VetoError

	// Notes are what the checks of an upgrade have found and let pass.
	Notes []string

	// Leftovers are fields that adopted objects keep since the bundle was applied.
	Leftovers []string

	// Supply is what would bring what newer bundles require.
	Supply resolve.Supply

	// Dependents say which other extensions require what the package does not
	// offer, or will not any more.
	Dependents []string

	// Moved is set if the tag of the installed bundle stands for other content
	// now, as far as the registry was asked.
	Moved *Moved

	// Signatures are those of the installed bundle.
	Signatures Signatures

	// Remains are those of an unfinished revision.
	Remains Remains

	// RepairErr says that the installed content could not be repaired.
	RepairErr error

	// Workloads are those of what is installed, as far as they were seen. Settling are
	// those among them that have not been available for long enough.
	Workloads       []health.Workload
	WorkloadsUnseen bool
	Settling        health.Settling

	// Applied is what came of the revision that was installed in this pass; nil if none
	// was. Repair is what came of repairing the installed one.
	Applied *installation.Result
	Repair  installation.Result

	// RecheckAfter, Flapping, Unwatched, ReleaseBytes and CertificatesEnd are those of what
	// was done last to the content.
	RecheckAfter    time.Duration
	Flapping        []string
	Unwatched       []string
	ReleaseBytes    int
	CertificatesEnd time.Time
}

// addResult takes over what an operation on the content came to.
func (o *Outcome) addResult(applied installation.Result) {
	o.RecheckAfter, o.Unwatched = applied.RecheckAfter, applied.Unwatched
	o.Flapping, o.ReleaseBytes = textsOf(applied.Flapping), applied.ReleaseBytes
	o.CertificatesEnd = applied.CertificatesEnd
}

// textsOf keeps the order.
func textsOf[T fmt.Stringer](items []T) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = item.String()
	}
	return texts
}

// refused notes why nothing of a revision was written.
func (o *Outcome) refused(wanted Wanted, revision installation.Desired, err error) {
	if growth, ok := errors.AsType[*preflight.ApprovalError](err); ok {
		o.waits(wanted.Approval, revision.Digest, growth)
		return
	}
	o.Stage, o.Err = StageApply, err
}

// take takes over what the last try came to.
func (o *Outcome) take(known hold) {
	o.Held = true
	if pending, ok := errors.AsType[*PendingError](known.err); ok {
		o.Pending = pending
		return
	}
	o.Stage, o.Err, o.Began = known.stage, known.err, known.began
}

// hasMore says that this pass has done what it could, and that there is more
// to do at once.
func (o *Outcome) hasMore() bool {
	return o.Err == nil && o.Hook == nil && o.Suspended == nil && o.waitsFor() == nil && (o.Onward.Err != nil || o.Onward.Action != Keep)
}

// waitsFor is what somebody has to agree to before the way forward goes on; nil for nothing.
func (o *Outcome) waitsFor() error {
	switch {
	case o.Pending != nil:
		return o.Pending
	case o.Veto != nil:
		return o.Veto
	}
	return nil
}

// ownerGone says that the pass has ended because there is nobody left to do it for.
func (o *Outcome) ownerGone() bool {
	return errors.Is(o.Err, object.ErrOwnerGone) || errors.Is(o.RepairErr, object.ErrOwnerGone) ||
		errors.Is(o.Observed.InstallationErr, object.ErrOwnerGone)
}

// pass observes, decides and acts for one extension, as far as that goes.
func (r *Reconciler) pass(ctx context.Context, wanted Wanted, invalid error, announced *announcement) Outcome {
	observed := r.observe(ctx, wanted)
	if isQueued(observed.InstallationErr) {
		outcome := Outcome{Owner: wanted.Owner, Observed: observed, Waiting: true}
		announced.awaiting(ctx, outcome, textQueued)
		return outcome
	}
	wanted = wanted.of(observed.Installation.Installed)
	outcome := Outcome{
		Owner:     wanted.Owner,
		Observed:  observed,
		Target:    r.resolve(wanted, invalid, observed),
		Installed: observed.Installation.Installed,
		HasValues: wanted.HasValues,
	}
	outcome.Stage, outcome.Err = stageOf(outcome.Target, invalid, observed), outcome.Target.Err
	if wanted.Suspended && observed.isReadable() {
		outcome.suspend(announced.extension(), r.Now())
	}
	if invalid == nil && observed.isKnown() {
		if what := r.awaits(ctx, wanted, observed); what != "" {
			r.await(ctx, wanted, &outcome, announced, what)
			return outcome
		}
	}
	switch outcome.Target.Action {
	case None:
	case Keep:
		r.abandonHooks(ctx, wanted, &outcome)
		r.keep(ctx, wanted, &outcome)
	case Install, Upgrade:
		r.observeWorkloads(wanted, &outcome)
		if veto := r.veto(ctx, wanted, &outcome); veto != nil {
			r.heed(ctx, wanted, &outcome, veto)
			break
		}
		r.advance(ctx, wanted, &outcome, announced)
	}
	if outcome.Waiting {
		if !outcome.Fetching {
			announced.awaiting(ctx, outcome, textQueued)
		}
		return outcome
	}
	r.diagnose(ctx, wanted, &outcome)
	r.observeWorkloads(wanted, &outcome)
	r.noteSelection(&outcome)
	r.judge(ctx, wanted, &outcome)
	outcome.Onward = onward(wanted, outcome)
	if outcome.Pending == nil && !outcome.Onward.isWithheld() {
		outcome.Pending = outcome.Onward.Pending
	}
	r.foresee(ctx, wanted, &outcome, announced.extension())
	r.findRelated(ctx, wanted, &outcome)
	return outcome
}

func (r *Reconciler) observeWorkloads(wanted Wanted, outcome *Outcome) {
	if outcome.Installed == nil {
		return
	}
	workloads, seen := r.Releases.Workloads(wanted.Owner)
	outcome.Workloads, outcome.WorkloadsUnseen = workloads, !seen
	outcome.Settling = health.SettlingOf(workloads, r.MinReady, r.Now())
}

// diagnose looks for why workloads do not serve, if it is time for that.
func (r *Reconciler) diagnose(ctx context.Context, wanted Wanted, outcome *Outcome) {
	if outcome.Installed == nil {
		return
	}
	next := r.Releases.Diagnose(ctx, wanted.Owner)
	outcome.RecheckAfter = sooner(outcome.RecheckAfter, next)
}

func (r *Reconciler) resolve(wanted Wanted, invalid error, observed Observed) Target {
	defer r.measure(StageResolve)()
	return decide(wanted, invalid, observed)
}

// onward is what the next pass will decide if nothing changes: an upgrade may lead to the
// wanted version in several steps.
func onward(wanted Wanted, outcome Outcome) Target {
	if outcome.Err != nil || outcome.Target.Action == Keep {
		return outcome.Target
	}
	then := outcome.Observed
	then.Installation, then.Issuer, then.Reselects = installation.State{Installed: outcome.Installed}, "", false
	return decide(wanted, nil, then)
}

// findRelated finds the packages that would meet what is required, and the extensions that
// require this one.
func (r *Reconciler) findRelated(ctx context.Context, wanted Wanted, outcome *Outcome) {
	supply, err := r.supplyOf(ctx, missingOf(*outcome))
	if err != nil && outcome.Err == nil {
		outcome.Stage, outcome.Err = StageObserve, err
	}
	outcome.Supply = supply
	if outcome.Onward.Action != None && outcome.Onward.isIdentified() {
		outcome.Dependents = dependents(wanted.of(outcome.Installed).Request.Package, &outcome.Onward.Bundle, outcome.Observed)
	}
}

// stageOf says at which stage a target without a way forward was stopped.
func stageOf(target Target, invalid error, observed Observed) Stage {
	switch {
	case target.Err == nil:
		return ""
	case invalid == nil && observed.ServiceAccountErr != nil:
		return StageValidate
	case invalid == nil && observed.InstallationErr != nil:
		return StageObserve
	default:
		return StageResolve
	}
}

// advance installs or upgrades. If that fails before anything was written, what is
// installed is kept instead. If the status cannot be written first, the pass ends: most
// likely somebody has changed the extension since this pass has read it.
func (r *Reconciler) advance(ctx context.Context, wanted Wanted, outcome *Outcome, announced *announcement) {
	if known, held := r.holds.take(wanted.Owner.Name, goalOf(announced.extension(), outcome.Target), r.Now(), r.clusterFor(wanted.Owner.Name)); held {
		outcome.take(known)
		r.keep(ctx, wanted, outcome)
		if known.told != (cluster{}) && !known.until.IsZero() {
			outcome.RecheckAfter = sooner(outcome.RecheckAfter, known.until.Sub(r.Now()))
		}
		return
	}
	if r.stopsForHook(ctx, wanted, outcome) {
		return
	}
	image := imageOf(outcome.Target, outcome.Installed)
	since := r.pullOf(wanted.Owner.Name, image).since
	files, err := r.fetch(ctx, wanted.Owner, image)
	switch {
	case errors.Is(err, ErrFetching):
		outcome.Waiting, outcome.Fetching = true, true
		r.reportSlowPull(ctx, *outcome, announced)
		outcome.RecheckAfter = r.slowIn(wanted.Owner.Name)
	case err != nil:
		outcome.Stage, outcome.Err = StageFetch, err
		r.keep(ctx, wanted, outcome)
	default:
		defer func() { r.done(wanted.Owner.Name, image, files, outcome.Waiting) }()
		defer announced.begin(ctx, *outcome, since)()
		r.advanceTo(ctx, wanted, outcome, announced, files)
	}
}

// advanceTo goes on with advance when the files of the bundle are there.
func (r *Reconciler) advanceTo(ctx context.Context, wanted Wanted, outcome *Outcome, announced *announcement, files Files) {
	if wanted.Approval.isUnapproved(outcome.Target, outcome.Installed, files.Digest) {
		r.withhold(ctx, wanted, outcome, files.Digest)
		return
	}
	unpacked, err := r.unpack(ctx, files)
	if err == nil && outcome.Target.IsNamed && !r.goesTo(ctx, wanted, outcome, unpacked) {
		return
	}
	revision := installation.Desired{}
	if err == nil {
		revision, err = r.build(ctx, wanted, outcome, unpacked)
	}
	if err != nil {
		outcome.Stage, outcome.Err = StageRender, err
		r.turnBack(ctx, wanted, outcome, announced)
		return
	}
	revision.BeforeWrite = func(ctx context.Context) (bool, error) { return announced.applying(ctx, *outcome) }
	applied, err := r.apply(ctx, wanted.Owner, revision)
	if announced.failure() != nil {
		return
	}
	if isQueued(err) && !applied.Began {
		outcome.Waiting = true
		announced.queued(ctx, *outcome)
		return
	}
	if installation.IsHook(err) {
		r.stopAtHook(ctx, wanted, outcome, err)
		return
	}
	if err != nil && !applied.Began {
		outcome.refused(wanted, revision, err)
		r.keep(ctx, wanted, outcome)
		return
	}
	r.unfinishedSince.Delete(wanted.Owner.Name)
	if err != nil {
		outcome.Stage, outcome.Err, outcome.Began, outcome.Applied = StageApply, err, true, &applied
		return
	}
	outcome.Installed, outcome.Notes, outcome.Applied = &revision.Revision, slices.Concat(applied.Notes, applied.Leftovers), &applied
	r.noteShared(ctx, wanted.Owner, *outcome)
	outcome.addResult(applied)
	r.finishHooks(ctx, wanted, outcome)
}

// turnBack ends the way forward of a pass that could not make the objects of a bundle: it waits, or
// what is installed is kept.
func (r *Reconciler) turnBack(ctx context.Context, wanted Wanted, outcome *Outcome, announced *announcement) {
	switch err := outcome.Err; {
	case isQueued(err):
		outcome.Stage, outcome.Err, outcome.Waiting = "", nil, true
		announced.queued(ctx, *outcome)
	case isNotYet(err) && r.acting() < catalogsTimeout:
		r.await(ctx, wanted, outcome, announced, textAwaitsAPIs)
	default:
		r.keep(ctx, wanted, outcome)
	}
}

// goesTo says whether the image that the spec names leads anywhere, now that it is there.
func (r *Reconciler) goesTo(ctx context.Context, wanted Wanted, outcome *Outcome, unpacked unpackedBundle) bool {
	isNew := !outcome.Target.isIdentified()
	if isNew {
		named, err := identify(wanted, unpacked)
		if err != nil {
			outcome.Stage, outcome.Err = StageRender, err
			r.keep(ctx, wanted, outcome)
			return false
		}
		r.named.Store(wanted.Owner.Name, named)
		outcome.Observed.Named = named
		outcome.Target = targetOfImage(wanted, outcome.Observed)
	}
	if outcome.Target.Err == nil && outcome.Target.Action != Keep {
		if !isNew {
			return true // the operator was asked before
		}
		veto := r.veto(ctx, wanted, outcome)
		if veto != nil {
			r.heed(ctx, wanted, outcome, veto)
		}
		return veto == nil
	}
	if outcome.Target.Err != nil {
		outcome.Stage, outcome.Err = StageResolve, outcome.Target.Err
	}
	r.keep(ctx, wanted, outcome)
	return false
}

// withhold ends the way forward of a target whose image turned out not to be the approved one.
func (r *Reconciler) withhold(ctx context.Context, wanted Wanted, outcome *Outcome, digest string) {
	if outcome.Installed == nil {
		outcome.Stage = StageFetch
		outcome.Err = &UnapprovedError{Refusal: wanted.Approval.mismatch(outcome.Target.Bundle.Version, digest), Bundle: outcome.Target.Bundle}
		return
	}
	outcome.waits(wanted.Approval, digest, nil)
	r.keep(ctx, wanted, outcome)
}

func (r *Reconciler) apply(ctx context.Context, owner object.Owner, revision installation.Desired) (installation.Result, error) {
	defer r.measure(StageApply)()
	return r.Releases.Apply(ctx, owner, revision)
}

// fetch gives the files of the bundle. Its time is measured over all passes that waited for
// them.
func (r *Reconciler) fetch(ctx context.Context, owner object.Owner, image BundleImage) (Files, error) {
	begun := r.pullOf(owner.Name, image)
	if begun.files != nil {
		r.pulls.Delete(owner.Name)
		r.keptFiles.Add(-1)
		return *begun.files, nil
	}
	files, err := r.Bundles.Fetch(ctx, owner, image)
	if errors.Is(err, ErrFetching) {
		return Files{}, err
	}
	r.pulls.Delete(owner.Name) // or else the wait for a turn would count for the next one
	r.Metrics.took(StageFetch, r.Now().Sub(begun.since))
	return files, err
}

// unpackedBundle are the files of a bundle, with what they say.
type unpackedBundle struct {
	Files
	content *bundle.Bundle

	// began is when they were read: that is a part of the time that it takes to render.
	began time.Time
}

// unpack reads the files of a bundle. It fails with [turn.ErrWait] if they are large and others
// are worked on.
func (r *Reconciler) unpack(ctx context.Context, files Files) (unpackedBundle, error) {
	if err := takeTurnFor(ctx, files); err != nil {
		return unpackedBundle{}, err
	}
	began := r.Now()
	content, err := bundle.Parse(files)
	if err != nil {
		r.Metrics.took(StageRender, r.Now().Sub(began))
	}
	return unpackedBundle{Files: files, content: content, began: began}, err
}

// build makes the objects of the bundle that is to be installed. It fails with
// [turn.ErrWait] if there are many of them and others are worked on.
func (r *Reconciler) build(ctx context.Context, wanted Wanted, outcome *Outcome, unpacked unpackedBundle) (installation.Desired, error) {
	defer func() { r.Metrics.took(StageRender, r.Now().Sub(unpacked.began)) }()
	target, content := outcome.Target, unpacked.content
	outcome.Moved = unpacked.Moved
	if err := r.runsOn(ctx, wanted, outcome, content); err != nil {
		return installation.Desired{}, err
	}
	config, err := bundle.ParseConfig(content, wanted.Owner.Namespace, wanted.Config)
	if err != nil {
		return installation.Desired{}, err
	}
	certificates, err := r.certificatesFor(content)
	if err != nil {
		return installation.Desired{}, err
	}
	options := bundle.Options{
		InstallNamespace: wanted.Owner.Namespace,
		Config:           config,
		Certificates:     certificates,
	}
	revision := installation.Revision{
		Bundle: target.Bundle, Image: target.Image, Digest: unpacked.Digest, Inputs: wanted.Inputs,
		OperatorCondition: content.OperatorCondition(config),
	}
	rendered, err := r.recordedChart(ctx, wanted, *outcome, content, revision)
	if err == nil && rendered == nil {
		rendered, err = r.render(ctx, wanted, outcome, content, options)
	}
	if err != nil {
		return installation.Desired{}, err
	}
	revision.DependsOnCluster, revision.IsEmpty = rendered.Lookups == bundle.LookupsMade, len(rendered.Objects) == 0
	outcome.LooksInVain = rendered.Lookups == bundle.LookupsRefused
	if len(rendered.Objects) > largeObjects {
		if err := turn.Take(ctx); err != nil {
			return installation.Desired{}, err
		}
	}
	desired := installation.Desired{
		Revision:     revision,
		Objects:      rendered.Objects,
		Hooks:        rendered.Hooks,
		Elsewhere:    rendered.Elsewhere,
		Notes:        rendered.Warnings(),
		HookDeadline: wanted.HookDeadline,
		Annotations:  content.CSV.Annotations,
		Preflight:    policyFor(wanted, target, unpacked.Digest),
	}
	err = r.selectPods(ctx, wanted, outcome, content, &desired)
	return desired, err
}

func (r *Reconciler) render(ctx context.Context, wanted Wanted, outcome *Outcome, content *bundle.Bundle, options bundle.Options) (*bundle.Rendered, error) {
	if err := r.addChart(ctx, &options, content, wanted, outcome); err != nil {
		return nil, err
	}
	rendered, err := bundle.Render(content, options)
	return &rendered, err
}

// certificatesFor asks the cluster only for bundles that need certificates.
func (r *Reconciler) certificatesFor(content *bundle.Bundle) (bundle.CertificateProvider, error) {
	if !content.NeedsCertificates() {
		return bundle.NoCertificates, nil
	}
	return r.Certificates()
}

// keep repairs what is installed, if there is no way forward or none in this pass. If a
// failed try has written a part of another revision, the content stays as it is for some
// time first, see [remainsOf]. While the extension is suspended, certificates are renewed,
// and nothing else.
func (r *Reconciler) keep(ctx context.Context, wanted Wanted, outcome *Outcome) {
	if wanted.Suspended {
		r.restore(outcome, func() (installation.Result, error) { return r.Releases.Renew(ctx, wanted.Owner) })
		return
	}
	remains, wait := r.remains(wanted.Owner.Name, outcome.Observed.Installation)
	if outcome.Remains = remains; remains == RemainsStay {
		outcome.RecheckAfter = wait
		return
	}
	r.restore(outcome, func() (installation.Result, error) { return r.Releases.Repair(ctx, wanted.Owner) })
	r.finishHooks(ctx, wanted, outcome)
}

// restore writes what is installed, as far as it is not as it should be.
func (r *Reconciler) restore(outcome *Outcome, write func() (installation.Result, error)) {
	if outcome.Installed == nil {
		return
	}
	defer r.measure(StageRepair)()
	applied, err := write()
	outcome.addResult(applied)
	outcome.Repair = applied
	switch {
	case err == nil:
		return
	case isQueued(err) && !applied.Began: // it is woken for that, whatever else there is to tell
		outcome.Waiting = outcome.Err == nil
		return
	}
	outcome.RepairErr = err
	if outcome.Err == nil {
		outcome.Stage, outcome.Err = StageRepair, err
	}
}
