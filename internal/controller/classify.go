package controller

import (
	"errors"
	"fmt"
	"time"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/imageref"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Disposition is what happens next.
type Disposition string

const (
	// Settled: the world is as wanted, or one step of several is done.
	Settled Disposition = "Settled"

	// Working: a revision is under way. No pass ends so.
	Working Disposition = "Working"

	// Retry with backoff: the cause may go away unseen.
	Retry Disposition = "Retry"

	// Wait for something that changes without anybody who acts for this extension: of most of
	// it the change is told, and trying again before is no use. See [verdict].
	Wait Disposition = "Wait"

	// Blocked until a person acts: changes the spec, the catalog, what a tag stands for, or an
	// object that is in the way.
	Blocked Disposition = "Blocked"
)

// verdict is what an outcome means.
type verdict struct {
	disposition Disposition

	// reason and message are those of the Progressing condition.
	reason  string
	message string

	// summary is what all others have instead of the message.
	summary string

	// again is how long to wait at least with another look at what is blocked or waits, and of
	// which nobody tells when it changes; zero where every change is told.
	again time.Duration
}

// isRetried says that the same is tried again after a while although nothing has changed.
func (v verdict) isRetried() bool { return v.disposition == Retry || v.again > 0 }

// How long after a look at what nobody tells of the next one is worth it. untoldInterval is
// for what a tag stands for, and for objects that the ServiceAccount may not watch;
// upgradeInterval for what only an upgrade of the cluster brings; hookInterval for whether
// somebody has deleted a hook that has failed; signedInterval for whether somebody has signed what is
// installed.
const (
	untoldInterval  = maxBackoff
	upgradeInterval = maxCohortBackoff
	hookInterval    = time.Minute
	signedInterval  = maxCohortBackoff
)

// classify decides between retry, wait and blocked. A repair that failed is tried again in
// any case: of what waits that is said here, of what is blocked by [resultOf], since the
// reason that a user sees stays.
func classify(outcome Outcome) verdict {
	switch {
	case outcome.waitsForHook():
		text := outcome.hookText()
		return verdict{disposition: Settled, reason: ocv1.ReasonRollingOut, message: text, summary: text}
	case outcome.hasMore():
		text := settledText(outcome)
		return verdict{disposition: Settled, reason: ocv1.ReasonRollingOut, message: text, summary: text}
	case outcome.Err == nil && outcome.Suspended != nil:
		return verdict{disposition: Settled, reason: ocv1.ReasonSucceeded, message: messageSuspended, summary: messageSuspended}
	case outcome.Err == nil && outcome.Target.NoOffer != nil:
		return verdict{disposition: Settled, reason: ocv1.ReasonRetrying, message: outcome.Target.NoOffer.Error(), summary: settledText(outcome)}
	case outcome.Err == nil:
		const settled = "Desired state reached"
		return verdict{disposition: Settled, reason: ocv1.ReasonSucceeded, message: settled, summary: settled}
	}
	disposition, reason := dispositionOf(outcome)
	if disposition == Wait && outcome.RepairErr != nil {
		disposition = Retry
	}
	return verdict{
		disposition: disposition, reason: reason, message: messageOf(outcome), summary: summaryOf(outcome), again: againIn(outcome, disposition),
	}
}

// againIn is the again of a verdict.
func againIn(outcome Outcome, disposition Disposition) time.Duration {
	if _, isUnmet := errors.AsType[*UnmetError](outcome.Err); isUnmet && disposition == Wait {
		return upgradeInterval
	}
	if disposition != Blocked || !isForward(outcome.Stage) {
		return 0
	}
	if failed, isHook := errors.AsType[*installation.HookFailedError](outcome.Err); isHook {
		return min(failed.RetryIn, hookInterval)
	}
	unusable, isUnusable := errors.AsType[*UnusableImageError](outcome.Err)
	_, isImmutable := errors.AsType[*preflight.ImmutableError](outcome.Err)
	_, isCollision := errors.AsType[*object.CollisionError](outcome.Err)
	_, isUnserved := errors.AsType[*object.UnknownKindsError](outcome.Err)
	switch {
	case isUnusable && !unusable.ByTag:
		return 0
	case imageref.Digest(outcome.Target.Image) == "", isCollision, isImmutable && len(outcome.Unwatched) > 0:
		return untoldInterval
	case isUnserved:
		return upgradeInterval
	}
	return 0
}

// isContent says that an error is about the content of the image of a bundle.
func isContent(err error) bool {
	var (
		unusable    *UnusableImageError
		invalid     *bundle.InvalidError
		unsupported *bundle.UnsupportedError
	)
	return errors.As(err, &unusable) || errors.As(err, &invalid) || errors.As(err, &unsupported)
}

// tooLargeError is an error about the size of an object, or of a release record.
type tooLargeError interface {
	error
	TooLarge() bool
}

func dispositionOf(outcome Outcome) (Disposition, string) {
	var (
		invalidSpec   *InvalidSpecError
		unapproved    *UnapprovedError
		noAccount     *MissingServiceAccountError
		noNamespace   *object.MissingNamespacesError
		unresolved    *resolve.Error
		unmet         *UnmetError
		invalidConfig *bundle.ConfigError
		immutable     *preflight.ImmutableError
		unserved      *object.UnknownKindsError
		hookFailed    *installation.HookFailedError
		collision     *object.CollisionError
		tooLarge      tooLargeError
	)
	err := outcome.Err
	switch {
	case errors.As(err, &invalidSpec), errors.As(err, &unapproved), errors.As(err, &hookFailed), errors.As(err, &tooLarge), isContent(err):
		return Blocked, ocv1.ReasonBlocked
	case (errors.As(err, &immutable) || errors.As(err, &collision)) && !outcome.Began:
		// What is installed is watched, and somebody has to change it, or the spec.
		return Blocked, ocv1.ReasonBlocked
	case errors.As(err, &unserved) && outcome.Stage == StageApply && len(unserved.BuiltIn) > 0:
		// Nothing that is installed brings these.
		return Blocked, ocv1.ReasonBlocked
	case errors.As(err, &invalidConfig):
		return Blocked, ocv1.ReasonInvalidConfiguration
	case errors.As(err, &noAccount), errors.As(err, &noNamespace), errors.As(err, &unresolved), errors.As(err, &unmet):
		// ServiceAccounts, with which namespaces come and go, catalogs and their content, extensions and the APIs of
		// the cluster are watched. Its versions are not, see againIn.
		return Wait, ocv1.ReasonRetrying
	default:
		return Retry, ocv1.ReasonRetrying
	}
}

// messageOf keeps the texts of the reference implementation, which scripts
// compare whole.
func messageOf(outcome Outcome) string {
	switch outcome.Stage {
	case StageObserve:
		return "retrying to get installed bundle"
	case StageFetch, StageRender, StageApply, StageRepair:
		if outcome.Target.Bundle.Name == "" {
			return fmt.Sprintf("error for the bundle in image %q: %v", outcome.Target.Image, prefixed(outcome.Err))
		}
		return fmt.Sprintf("error for resolved bundle %q with version %q: %v",
			outcome.Target.Bundle.Name, outcome.Target.Bundle.Version, prefixed(outcome.Err))
	case StageValidate, StageResolve:
	}
	return outcome.Err.Error()
}

func prefixed(err error) error {
	if _, ok := errors.AsType[*bundle.ConfigError](err); ok {
		return fmt.Errorf("invalid ClusterExtension configuration: %w", err)
	}
	return err
}
