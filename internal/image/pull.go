package image

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/types"

	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// pull is one way from a reference to a leased cache entry.
type pull struct {
	puller   *Puller
	ref      imageRef
	req      Request
	limits   Limits
	policy   policy
	rule     imagepolicy.Rule
	approval string
	verdict  imagepolicy.Verdict // once it has been checked
	src      *source             // nil until the registry is needed
}

func (p *Puller) newPull(ref imageRef, req Request) (*pull, error) {
	policy, err := p.policy()
	if err != nil {
		return nil, err
	}
	transport, err := ref.transport()
	if err != nil {
		return nil, err
	}
	rule, err := p.rule(ref)
	if err != nil {
		return nil, err
	}
	approval, err := policy.approval(transport, p.config.RegistriesDir, rule)
	if err != nil {
		return nil, err
	}
	if req.Audience != "" {
		approval = digest.FromString(approval + "\n" + req.Audience).Encoded()
	}
	return &pull{
		puller: p, ref: ref, req: req, limits: p.config.Limits.or(DefaultLimits(req.Select)),
		policy: policy, rule: rule, approval: approval,
	}, nil
}

func (j *pull) close() {
	if j.src != nil {
		j.src.close()
	}
}

// run finds the digest and looks into the cache. What is not there, or not accepted
// there under the reference, it gets alone among all pulls of that image: the first
// one downloads, the others find it in the cache. Pulls from other repositories are
// others, though their digest is the same: when bytes come is up to who sends them.
func (j *pull) run(ctx context.Context) (*lease, error) {
	d, pinned := j.ref.digest()
	if !pinned {
		if err := j.open(ctx); err != nil {
			return nil, err
		}
		d = j.src.top.digest
	}
	key := entryKey{digest: d, sel: j.req.Select}
	if held, err := j.cached(ctx, key); held != nil || err != nil {
		return held, err
	}
	unlock, err := j.puller.pulls.lock(ctx, j.ref.canonical(d)+" "+j.req.Select.String())
	if err != nil {
		return nil, err
	}
	defer unlock()
	held, err := j.puller.cache.acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	if held == nil {
		return j.download(ctx, key)
	}
	if held.verdict, err = j.approve(ctx, key); err != nil {
		held.release()
		return nil, err
	}
	held.rule = j.rule.Digest()
	return held, nil
}

// cached returns an entry that is there and accepted under the reference, or
// nil. It needs no network, and waits for nobody who does.
func (j *pull) cached(ctx context.Context, key entryKey) (*lease, error) {
	held, err := j.puller.cache.acquire(ctx, key)
	if held == nil || err != nil {
		return nil, err
	}
	// While it is held it stays the entry that was accepted.
	verdict, ok := j.puller.cache.approved(key, j.approval)
	if !ok {
		held.release()
		return nil, nil //nolint:nilnil // nothing cached is not an error
	}
	held.verdict, held.rule = verdict, j.rule.Digest()
	return held, nil
}

// open reaches the registry, once.
func (j *pull) open(ctx context.Context) error {
	if j.src != nil {
		return nil
	}
	var err error
	j.src, err = j.puller.open(ctx, j.ref, j.req)
	return err
}

// approve makes sure that the policy accepts cached content under this
// reference too: the content is the same, but what is known of its origin is
// not.
func (j *pull) approve(ctx context.Context, key entryKey) (imagepolicy.Verdict, error) {
	if verdict, ok := j.puller.cache.approved(key, j.approval); ok {
		return verdict, nil
	}
	if err := j.judge(ctx); err != nil {
		return imagepolicy.Verdict{}, err
	}
	return j.verdict, j.puller.cache.approve(key, approval{name: j.approval, verdict: j.verdict})
}

// judge asks the registry for the signatures of an image, and the policies for what they make of
// them.
func (j *pull) judge(ctx context.Context) error {
	if err := j.open(ctx); err != nil {
		return err
	}
	_, instance, err := j.src.choose(ctx)
	if err != nil {
		return err
	}
	return j.check(ctx, instance)
}

// check asks both policies. The error is a *PolicyError if one of them says no.
func (j *pull) check(ctx context.Context, instance *digest.Digest) error {
	ctx, cancel := context.WithTimeoutCause(ctx, j.limits.NetworkTimeout, errSilent)
	defer cancel()
	if err := j.policy.check(ctx, j.ref.asked, j.src.unparsed(instance)); err != nil || j.rule.IsZero() {
		return err
	}
	var err error
	if j.verdict, _, err = (evidence{source: j.src, rule: j.rule, image: j.subject(instance)}).judge(ctx); err != nil {
		return err
	}
	j.puller.verdicts.Add(j.verdictKey(j.src.top.digest), j.verdict)
	if j.verdict.Refused {
		return &PolicyError{Ref: j.ref.asked, Verdict: j.verdict}
	}
	return nil
}

// subject are the digests by which the image may be signed.
func (j *pull) subject(instance *digest.Digest) imagepolicy.Subject {
	if instance == nil {
		return imagepolicy.Subject{j.src.top.digest}
	}
	return imagepolicy.Subject{j.src.top.digest, *instance}
}

// download stores the image in the cache, once the policy accepts it.
func (j *pull) download(ctx context.Context, key entryKey) (*lease, error) {
	if err := j.open(ctx); err != nil {
		return nil, err
	}
	chosen, instance, err := j.src.choose(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.check(ctx, instance); err != nil {
		return nil, err
	}
	parts, err := chosen.parts(j.limits)
	if err != nil {
		return nil, err
	}
	held, err := j.puller.cache.create(ctx, key, approval{name: j.approval, verdict: j.verdict}, func(tree *os.Root, take func(int64) error) (string, error) {
		return j.unpack(ctx, parts, tree, take)
	})
	if errors.Is(err, ErrContent) {
		return nil, fmt.Errorf("error applying image: %w", err)
	}
	if held != nil {
		held.downloaded, held.provenance = parts.bytes(), parts.provenance
		held.verdict, held.rule = j.verdict, j.rule.Digest()
	}
	return held, err
}

// unpack writes the selected part of the image to tree and returns the
// directory in it that the selection is about. Before each part it asks take for the
// bytes on disk.
func (j *pull) unpack(ctx context.Context, parts imageParts, tree *os.Root, take func(int64) error) (string, error) {
	selected, root, err := j.selected(ctx, parts)
	if err != nil {
		return "", err
	}
	u := newUnpacker(tree, selected, j.limits, take)
	u.isChart = parts.isChart() && j.req.Select == BundleContent
	for _, layer := range parts.layers {
		if err := j.unpackLayer(ctx, u, layer); err != nil {
			return "", err
		}
	}
	if info, err := tree.Lstat(root); j.req.Select == CatalogContent && (err != nil || !info.IsDir()) {
		return "", &LabelError{Label: CatalogLabel, Value: root}
	}
	return root, nil
}

// selected returns what to keep. Only a catalog has to be asked where it is.
func (j *pull) selected(ctx context.Context, parts imageParts) (filter, string, error) {
	if j.req.Select == BundleContent {
		return bundleFilter(), ".", nil
	}
	config, err := j.src.config(ctx, parts.config)
	if err != nil {
		return filter{}, "", err
	}
	dir, err := catalogDir(config)
	if err != nil {
		return filter{}, "", err
	}
	selected, root := catalogFilter(dir)
	return selected, root, nil
}

// unpackLayer streams one layer into the tree. The verdict on its content
// counts only if the registry sent the right bytes, so these are read to the
// end and verified even where the content is refused.
func (j *pull) unpackLayer(ctx context.Context, u *unpacker, layer types.BlobInfo) error {
	blob, err := j.src.blob(ctx, "layer", layer)
	if err != nil {
		return err
	}
	defer blob.Close()
	err = u.apply(ctx, blob)
	if blob.err != nil {
		return blob.err
	}
	if err != nil && !errors.Is(err, ErrContent) {
		return err
	}
	if unverified := blob.finish(); unverified != nil {
		return unverified
	}
	return err
}
