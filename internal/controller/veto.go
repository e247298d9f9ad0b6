package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Vetoes says what operators have to say about being upgraded.
type Vetoes interface {
	// Claims are those in the OperatorCondition of that name; none if there is no such object.
	// It makes no request while the object is watched and stays as it is.
	Claims(ctx context.Context, owner object.Owner, name string) (installation.Claims, error)

	// Begun is the revision that was begun and is not finished; nil if there is none.
	Begun(ctx context.Context, owner object.Owner) (*installation.Revision, error)
}

// VetoError says that an upgrade is held: the operator that is installed, or an administrator
// in its place, does not want it now, or it cannot be told.
type VetoError struct {
	// To is the bundle of the upgrade, and Object what the veto is in.
	To     bundle.Identity
	Object object.Key

	// Claim is what was said, ByOverride by an administrator. It is empty if there is an Err.
	Claim      installation.Claim
	ByOverride bool

	// Err says that it is not known whether there is a veto.
	Err error

	// Unwatched says that nothing tells when the veto ends.
	Unwatched bool
}

// maxVetoText bounds what a veto tells of the words of an operator, in bytes.
const maxVetoText = 300

func (e *VetoError) Error() string {
	held := fmt.Sprintf("the upgrade to %q version %q is held", e.To.Name, e.To.Version)
	if e.Err != nil {
		return fmt.Sprintf("%s, as it cannot be read whether the operator is ready for it: %s; it is tried again", held,
			excerpt.Line(excerpt.Message(e.Err.Error()), maxVetoText))
	}
	who, next := "the operator says", "it goes on when the operator has changed that, or you override it there"
	if e.ByOverride {
		who, next = "an override says", "it goes on when the override is changed or removed"
	}
	said := fmt.Sprintf("%s Upgradeable=%s", who, excerpt.Line(string(e.Claim.Status), maxVetoText))
	if e.Claim.Reason != "" {
		said += fmt.Sprintf(" (%s)", excerpt.Line(e.Claim.Reason, maxVetoText))
	}
	if e.Claim.Message != "" {
		said += ": " + excerpt.Line(e.Claim.Message, maxVetoText)
	}
	return fmt.Sprintf("%s: %s; that is in %s; %s", held, said, e.Object, next)
}

// Unwrap gives the cause of not knowing.
func (e *VetoError) Unwrap() error { return e.Err }

// vetoOf decides whether claims hold an upgrade; nil if they do not. An override wins over
// what the operator says, and allows the upgrade by True alone. The operator forbids it by
// False alone: one that has not said anything has no objection. If the claims cannot be read
// there may be one.
func vetoOf(claims installation.Claims, err error) *VetoError {
	switch override, operator := claims.Override, claims.Operator; {
	case err != nil:
		return &VetoError{Err: err}
	case override != nil && override.Status != metav1.ConditionTrue:
		return &VetoError{Claim: *override, ByOverride: true}
	case override == nil && operator != nil && operator.Status == metav1.ConditionFalse:
		return &VetoError{Claim: *operator}
	}
	return nil
}

// vetoRecheck is when claims are read again that could not be read, or are not watched.
const vetoRecheck = time.Minute

// asksOperator says that the installed operator has a say in a target. It has none in how it
// is configured itself, and is not asked before somebody has approved an upgrade, nor before it
// is known what the image that a spec names is.
func asksOperator(installed *installation.Revision, target Target) bool {
	return target.Action == Upgrade && target.isIdentified() && !target.isWithheld() &&
		installed != nil && installed.OperatorCondition != "" && installed.Bundle != target.Bundle
}

// veto asks the operator that is installed before it is upgraded; nil if it has nothing
// against that. An upgrade that was begun goes on: the operator may have ended amid what it
// had to do, and nobody would take its claim back. After the content was taken back that
// operator runs again, and is asked like any other.
func (r *Reconciler) veto(ctx context.Context, wanted Wanted, outcome *Outcome) *VetoError {
	installed, target := outcome.Installed, outcome.Target
	if !asksOperator(installed, target) {
		return nil
	}
	var begun *installation.Revision
	var err error
	if outcome.Observed.Installation.Unfinished && !r.isTakenBack(wanted.Owner.Name) {
		if begun, err = r.Releases.Begun(ctx, wanted.Owner); err == nil && begun != nil && begun.Bundle == target.Bundle {
			return nil
		}
	}
	var claims installation.Claims
	if err == nil {
		claims, err = r.Releases.Claims(ctx, wanted.Owner, installed.OperatorCondition)
	}
	found := vetoOf(claims, err)
	if found != nil {
		found.To, found.Unwatched = target.Bundle, claims.Unwatched
		found.Object = object.Key{GroupKind: object.OperatorConditionKind, Namespace: wanted.Owner.Namespace, Name: installed.OperatorCondition}
	}
	return found
}

// heed keeps what is installed as long as an operator does not want to be upgraded. What is
// watched tells when that changes.
func (r *Reconciler) heed(ctx context.Context, wanted Wanted, outcome *Outcome, found *VetoError) {
	outcome.Veto = found
	r.keep(ctx, wanted, outcome)
	if found.Err != nil || found.Unwatched {
		outcome.RecheckAfter = sooner(outcome.RecheckAfter, vetoRecheck)
	}
}
