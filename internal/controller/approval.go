package controller

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/imageref"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Approval is what a spec says of whether somebody has to agree to upgrades, and to what
// somebody has. The zero value lets all of them go.
type Approval struct {
	// Manual lets each upgrade wait that is not agreed to.
	Manual bool

	// Version is the one that is agreed to; empty for none.
	Version string

	// Digest is that of the image that is agreed to under the version; empty for any.
	Digest string
}

// covers says that somebody has agreed to a version, with an image of this digest. While
// the digest is not known it is empty, and decides nothing.
func (a Approval) covers(version, digest string) bool {
	return a.Version != "" && a.Version == version && (a.Digest == "" || digest == "" || a.Digest == digest)
}

// coversRights says that somebody has agreed to what a target grants. The version of a named image
// is what that says of itself, and so is any other image: its digest has to be agreed to.
func (a Approval) coversRights(target Target, digest string) bool {
	return (a.Digest != "" || !target.IsNamed) && a.covers(target.Bundle.Version, digest)
}

// withholds says that a target waits for an approval. A first installation does so only if
// another version is agreed to, and another revision of what is installed never does.
func (a Approval) withholds(target Target, installed *installation.Revision) bool {
	switch {
	case !a.Manual:
		return false
	case installed == nil && a.Version == "", installed != nil && !isOther(target, *installed):
		return false
	}
	return a.isUsed(target, installed) || !a.covers(target.Bundle.Version, digestOfImage(target.Image))
}

// isUsed says that a version was agreed to without an image, and is installed: another image
// under its name was not.
func (a Approval) isUsed(target Target, installed *installation.Revision) bool {
	return a.Digest == "" && installed != nil && installed.Bundle == target.Bundle
}

// isOther says that a target is another bundle than the installed one, or has another image.
// It is not because the same image is somewhere else now, nor if it is not known which image
// is installed.
func isOther(target Target, installed installation.Revision) bool {
	if installed.Bundle != target.Bundle {
		return true
	}
	wanted := digestOfImage(target.Image)
	isSame := wanted != "" && wanted == cmp.Or(installed.Digest, digestOfImage(installed.Image))
	return installed.Image != "" && installed.Image != target.Image && !isSame
}

// digestOfImage is empty for a reference by tag.
func digestOfImage(ref string) string { return imageref.Digest(ref).String() }

// mismatch says that the version is agreed to, and its image is not; empty if that is not so.
func (a Approval) mismatch(version, digest string) string {
	if a.Version != version || a.covers(version, digest) {
		return ""
	}
	return fmt.Sprintf("version %q is approved with the image %s, and its image is %s", version, a.Digest, digest)
}

// PendingError is an upgrade that waits for an approval. It is an error to the way forward alone.
type PendingError struct {
	Bundle bundle.Identity
	Image  string

	// Digest is that of the image; empty if it is not known.
	Digest string

	// IsNamed says that the spec names the image: an approval is of its digest.
	IsNamed bool

	// Manual says that each upgrade waits. If it is not set, Growth is.
	Manual bool

	// Growth has the rights that the upgrade gives to the operator; nil if there are none,
	// or if nobody has asked for them.
	Growth *preflight.ApprovalError

	// Config is why a change of the configuration of what is installed waits, too: it has
	// rights grow. Nil if there is none, or if it does not.
	Config *preflight.ApprovalError

	// Refusal says why something else that is agreed to is not what is done; empty if
	// nothing is.
	Refusal string
}

// Error is one short line: what waits, what it would grant, and how to agree.
func (p *PendingError) Error() string {
	var text string
	if !p.Manual {
		text = p.Growth.Error()
		if p.IsNamed {
			text += fmt.Sprintf(" and approvedDigest to %q", p.Digest)
		}
	} else {
		text = fmt.Sprintf("the upgrade to version %q waits for approval", p.Bundle.Version)
		if p.Growth != nil {
			text += ", as the operator would gain: " + p.Growth.Gained()
		}
		text += fmt.Sprintf("; to agree, set spec.source.catalog.approvedVersion to %q", p.Bundle.Version)
		if p.Refusal != "" && p.Digest != "" {
			text += fmt.Sprintf(" and approvedDigest to %q", p.Digest)
		}
	}
	if p.Refusal != "" {
		text += "; " + p.Refusal
	}
	if p.Config != nil {
		text += "; the change of spec.config waits, too: " + p.Config.Error()
	}
	return text
}

// UnapprovedError says that nothing is installed yet, because what is agreed to cannot be.
type UnapprovedError struct {
	// Refusal says why.
	Refusal string

	// Bundle is the one that would be installed otherwise.
	Bundle bundle.Identity
}

func (e *UnapprovedError) Error() string {
	return fmt.Sprintf("%s; %q version %q is not approved", e.Refusal, e.Bundle.Name, e.Bundle.Version)
}

// agreedTarget is where a pass goes of where it could: to what was chosen or, where that is
// not agreed to, to the version that is. Where neither can be, what is installed is kept, and
// the target says what is pending. With a policy for rights that grow, it still is an upgrade
// then, of which [preflight.Permissions] says what it would grant.
func agreedTarget(wanted Wanted, observed Observed, newest *resolve.Resolution) Target {
	installed, anew := observed.Installation.Installed, observed.isToBeDoneAnew()
	target := toward(newest, installed, anew, wanted.Inputs)
	if !wanted.Approval.withholds(target, installed) {
		return target
	}
	agreed, refusal := chooseApproved(wanted, observed, target)
	if agreed != nil {
		return toward(agreed, installed, anew, wanted.Inputs)
	}
	if installed == nil {
		return Target{Action: None, Resolution: newest, Err: &UnapprovedError{Refusal: refusal, Bundle: target.Bundle}}
	}
	target.Pending = &PendingError{
		Bundle: target.Bundle, Image: target.Image, Digest: digestOfImage(target.Image), Manual: true, Refusal: refusal,
	}
	isChanged := anew || inputsDiffer(installed, wanted.Inputs)
	if isChanged || !wanted.Preflight.Growth.Approve {
		target.Action, target.Bundle, target.Image = Keep, installed.Bundle, installed.Image
	}
	if isChanged {
		target.Action = Upgrade
	}
	return target
}

// chooseApproved chooses exactly the approved bundle, if somebody has agreed to one and it can
// be reached. An approval of a version that is installed, or lower, is one from before.
// Otherwise refusal says why it is not chosen; empty if there is nothing to say.
func chooseApproved(wanted Wanted, observed Observed, newest Target) (_ *resolve.Resolution, refusal string) {
	approval, installed := wanted.Approval, observed.Installation.Installed
	refusal = approval.mismatch(newest.Bundle.Version, digestOfImage(newest.Image))
	switch {
	case refusal == "" && approval.Version == newest.Bundle.Version && approval.isUsed(newest, installed):
		return nil, fmt.Sprintf("version %q is installed with another image: to agree to this one, set spec.source.catalog.approvedDigest, too", approval.Version)
	case approval.Version == "" || installed != nil && !isHigher(approval.Version, installed.Bundle.Version):
		return nil, refusal
	}
	request := requestOf(wanted, observed)
	request.Exactly = resolve.Exactly{Version: approval.Version, Digest: approval.Digest}
	found, err := resolve.Resolve(request, observed.Catalogs)
	if err == nil && found.Identity.Version == approval.Version {
		return &found, ""
	}
	if refusal == "" {
		refusal = unreachableText(request, observed.Catalogs)
	}
	return nil, refusal
}

// unreachableText says why what is agreed to cannot be chosen: it is not there, or with
// another image alone, or not among what the spec wants.
func unreachableText(request resolve.Request, catalogs []resolve.Catalog) string {
	approval := Approval{Version: request.Exactly.Version, Digest: request.Exactly.Digest}
	request.Exactly.Digest = ""
	if found, err := resolve.Resolve(request, catalogs); err == nil {
		if refusal := approval.mismatch(found.Identity.Version, digestOfImage(found.Image)); refusal != "" {
			return refusal
		}
	}
	version, err := bundle.ParseVersion(approval.Version)
	if err == nil && !request.Range.Contains(version) {
		return fmt.Sprintf("version %q is approved, and spec.source.catalog.version %q leaves it out", approval.Version, request.Range)
	}
	text := fmt.Sprintf("version %q is approved, and no catalog leads to it", approval.Version)
	if request.Installed != nil {
		text += " from what is installed"
	}
	return text
}

// isHigher is false if it cannot be told.
func isHigher(version, than string) bool {
	one, err := bundle.ParseVersion(version)
	other, otherErr := bundle.ParseVersion(than)
	return err == nil && otherErr == nil && one.Compare(other) > 0
}

// isWithheld says that a target is an upgrade that is only looked at: it waits for an
// approval whatever comes of that.
func (t Target) isWithheld() bool {
	return t.Pending != nil && t.Action == Upgrade && t.Bundle == t.Pending.Bundle && t.Image == t.Pending.Image
}

// whenApproved is the target if somebody agreed to what is pending.
func (t Target) whenApproved() Target {
	if t.Pending != nil {
		t.Action, t.Bundle, t.Image, t.Pending = Upgrade, t.Pending.Bundle, t.Pending.Image, nil
	}
	return t
}

// isUnapproved says, when the image of a target by tag was pulled, that its digest is not the
// one that was agreed to.
func (a Approval) isUnapproved(target Target, installed *installation.Revision, digest string) bool {
	isNew := installed == nil || isOther(target, *installed)
	return a.Manual && isNew && target.Pending == nil && a.mismatch(target.Bundle.Version, digest) != ""
}

// policyFor is the policy for the checks of a target with an image of this digest.
func policyFor(wanted Wanted, target Target, digest string) preflight.Policy {
	policy := wanted.Preflight
	switch version := target.Bundle.Version; {
	case target.isWithheld():
		policy.Growth.Withheld = true
	case wanted.Approval.covers(version, digest), wanted.GrowthApproval.coversRights(target, digest):
		policy.Growth.Approved = version
	}
	return policy
}

// waits notes that the target of a pass waits for an approval, and with which image. What it
// would grant is nil if that was not looked at.
func (o *Outcome) waits(approval Approval, digest string, growth *preflight.ApprovalError) {
	pending := PendingError{Bundle: o.Target.Bundle, Image: o.Target.Image, IsNamed: o.Target.IsNamed, Manual: growth == nil}
	if known := o.Target.Pending; known != nil {
		pending = *known
	}
	if o.Target.Pending != nil && !o.Target.isWithheld() {
		pending.Config = growth // what was looked at is what is installed, with another configuration
		o.Pending = &pending
		return
	}
	pending.Digest = digest
	if growth != nil && len(growth.Gains) > 0 {
		pending.Growth = growth
	}
	if pending.Refusal == "" {
		pending.Refusal = approval.mismatch(pending.Bundle.Version, digest)
	}
	o.Pending = &pending
}

// isPendingTarget says that what waits for an approval is what the pass has tried to reach.
func (o *Outcome) isPendingTarget() bool {
	return o.Pending != nil && o.Target.Action == Upgrade && (o.Target.Bundle == o.Pending.Bundle || o.Pending.Config != nil)
}

// pendingOf is what the status says is pending. It has waited since a pass first came to the
// same; it stays as it is while nothing can be chosen, and while the image of it is pulled. The
// digest of an image by tag is told as it was when it was pulled last.
func pendingOf(ext *ocv1.ClusterExtension, outcome Outcome, now metav1.Time) *ocv1.PendingUpgrade {
	known, target := ext.Status.Pending, outcome.Target
	if outcome.Suspended != nil {
		target = outcome.Suspended.Target
	}
	waits, isSameSpec := outcome.Pending, ext.Status.ObservedGeneration == ext.Generation
	if waits == nil && outcome.Waiting && target.isWithheld() {
		waits = target.Pending
	}
	isUnchosen := target.isUnchosen() && isSameSpec
	switch {
	case waits != nil:
	case isUnchosen && outcome.Installed != nil, outcome.Waiting && isSameSpec && isPending(known, target.Bundle):
		return known.DeepCopy()
	default:
		return nil
	}
	pending := &ocv1.PendingUpgrade{
		Bundle: ocv1.BundleMetadata{Name: waits.Bundle.Name, Version: waits.Bundle.Version},
		Digest: waits.Digest,
		Since:  now,

		PlanSummary: outcome.PlanSummary,
	}
	if !isPending(known, waits.Bundle) {
		return pending
	}
	if pending.Digest == "" {
		pending.Digest = known.Digest
	}
	if pending.Digest == known.Digest {
		pending.Since = known.Since
		pending.PlanSummary = cmp.Or(outcome.PlanSummary, known.PlanSummary)
	}
	return pending
}

// isPending says that a bundle is known to be pending.
func isPending(known *ocv1.PendingUpgrade, bundle bundle.Identity) bool {
	return known != nil && known.Bundle.Name == bundle.Name && known.Bundle.Version == bundle.Version
}
