package image

import (
	"context"
	"errors"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// Explanation is what the policies say of an image, and from what.
type Explanation struct {
	imagepolicy.Explanation

	// Image is the image by its digest: that of an index if the reference stands for one.
	Image string

	// Instance is the digest of the image in the index; empty without one. A signature of either
	// counts.
	Instance digest.Digest

	// Refusal says why the signature policy refuses the image; empty if it does not.
	Refusal string
}

// Outcome is what becomes of the image by all policies together.
func (e Explanation) Outcome() imagepolicy.Outcome {
	if e.Refusal != "" {
		return imagepolicy.Refused
	}
	return e.Verdict.Outcome()
}

// Explain judges an image as [Puller.Verify] does, and says why. It keeps nothing: Dir of the
// configuration is not used. That a policy refuses the image is no error.
func Explain(ctx context.Context, config Config, req Request) (Explanation, error) {
	ref, err := parseReference(req.Ref)
	if err != nil {
		return Explanation{}, err
	}
	if _, pinned := ref.digest(); !pinned && req.Digest != "" {
		if ref, err = ref.at(req.Digest); err != nil {
			return Explanation{}, err
		}
	}
	job, err := (&Puller{config: config}).newPull(ref, req)
	if err != nil {
		return Explanation{}, err
	}
	defer job.close()
	return job.explain(ctx)
}

func (j *pull) explain(ctx context.Context) (Explanation, error) {
	if err := j.open(ctx); err != nil {
		return Explanation{}, err
	}
	_, instance, err := j.src.choose(ctx)
	if err != nil {
		return Explanation{}, err
	}
	explained := Explanation{Image: j.ref.canonical(j.src.top.digest)}
	if instance != nil {
		explained.Instance = *instance
	}
	ctx, cancel := context.WithTimeoutCause(ctx, j.limits.NetworkTimeout, errSilent)
	defer cancel()
	if err := j.policy.check(ctx, j.ref.asked, j.src.unparsed(instance)); err != nil {
		refused, ok := errors.AsType[*PolicyError](err)
		if !ok {
			return explained, err
		}
		explained.Refusal = refused.Error()
	}
	if j.rule.IsZero() {
		return explained, nil
	}
	image := j.subject(instance)
	_, all, err := (evidence{source: j.src, rule: j.rule, image: image}).judge(ctx)
	if err != nil {
		return explained, err
	}
	explained.Explanation = j.rule.Explain(ctx, image, all)
	if ctx.Err() != nil {
		return explained, registryError(ctx, "verifying signatures", ctx.Err())
	}
	return explained, nil
}
