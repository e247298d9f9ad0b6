package image

import (
	"context"
	"errors"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// verdictKey tells verdicts apart: by the image, and by what is demanded of it.
func (j *pull) verdictKey(d digest.Digest) string { return j.ref.canonical(d) + " " + j.rule.Digest() }

// IsJudged says that ImagePolicies are about an image, or that it is not known whether they are.
func (p *Puller) IsJudged(text string) bool {
	ref, err := parseReference(text)
	if err != nil {
		return true
	}
	rule, err := p.rule(ref)
	return err != nil || !rule.IsZero()
}

// IsCurrent says that ImagePolicies demand the same of an image as when it was pulled: there may be
// others since, while it has waited to be used.
func (p *Puller) IsCurrent(img *Image) bool {
	ref, err := parseReference(img.Canonical)
	if err != nil {
		return false
	}
	rule, err := p.rule(ref)
	return err == nil && rule.Digest() == img.rule
}

// Verified says what the ImagePolicies make of an image, by a reference with a digest or by
// [Request.Digest], as far as that is known without asking its registry. It is the zero Verdict
// and known for an image that no policy is about. Errors are as with [Puller.Pull].
func (p *Puller) Verified(req Request) (verdict imagepolicy.Verdict, known bool, err error) {
	sought, err := p.verification(req)
	if err != nil || sought == nil {
		return imagepolicy.Verdict{}, err == nil, err
	}
	verdict, known = sought.known()
	return verdict, known, nil
}

// Verify is [Puller.Verified] that asks the registry for the signatures of the image, and pulls
// nothing. What is known to be accepted is not asked for again; what is refused may have been signed
// since. That the policies refuse the image is no error; that the signature policy does is a
// *PolicyError.
func (p *Puller) Verify(ctx context.Context, req Request) (imagepolicy.Verdict, error) {
	sought, err := p.verification(req)
	if err != nil || sought == nil {
		return imagepolicy.Verdict{}, err
	}
	if verdict, known := sought.known(); known && len(verdict.Refusals) == 0 {
		return verdict, nil
	}
	return sought.ask(ctx)
}

// verification is a pull that only judges.
type verification struct {
	*pull
	key entryKey

	// under are the decisions by which the image may have been judged before: under its digest,
	// and under the tag that it was pulled by.
	under []string
}

// verification is nil if there is nothing to judge by.
func (p *Puller) verification(req Request) (*verification, error) {
	ref, err := parseReference(req.Ref)
	if err != nil {
		return nil, err
	}
	rule, err := p.rule(ref)
	if err != nil || rule.IsZero() {
		return nil, err
	}
	made := &verification{}
	d, pinned := ref.digest()
	if !pinned {
		byTag, err := p.newPull(ref, req)
		if err != nil {
			return nil, err
		}
		made.under = append(made.under, byTag.approval)
		if ref, err = ref.at(req.Digest); err != nil {
			return nil, err
		}
		d = req.Digest
	}
	if made.pull, err = p.newPull(ref, req); err != nil {
		return nil, err
	}
	made.under = append(made.under, made.approval)
	made.key = entryKey{digest: d, sel: req.Select}
	return made, nil
}

func (v *verification) known() (imagepolicy.Verdict, bool) {
	if found, ok := v.puller.verdicts.Get(v.verdictKey(v.key.digest)); ok {
		verdict, isVerdict := found.(imagepolicy.Verdict)
		return verdict, isVerdict
	}
	for _, approval := range v.under {
		if verdict, ok := v.puller.cache.approved(v.key, approval); ok {
			return verdict, true
		}
	}
	return imagepolicy.Verdict{}, false
}

// ask asks the registry.
func (v *verification) ask(ctx context.Context) (imagepolicy.Verdict, error) {
	defer v.close()
	err := v.judge(ctx)
	if refused, ok := errors.AsType[*PolicyError](err); ok && refused.Err == nil {
		err = nil
	}
	return v.verdict, err
}
