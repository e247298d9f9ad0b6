package imagepolicy

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Bounds of texts: what a signature says of its signer, and why one does not count.
const (
	maxSignerBytes = 256
	maxReasonBytes = 256
)

// Verdict is what policies say of an image. The zero Verdict is that of an image that no
// policy is about.
type Verdict struct {
	// Policies are those that decide about the image, sorted.
	Policies []string `json:"policies,omitempty"`

	// Signers say who has signed it, one for each policy that accepts it.
	Signers []string `json:"signers,omitempty"`

	// Refusals say why, one for each policy that does not accept it.
	Refusals []string `json:"refusals,omitempty"`

	// Refused says that one of those enforces what it says.
	Refused bool `json:"refused,omitempty"`
}

// Subject are the digests by which one image may be signed: its own, and that of the index by
// which it was named.
type Subject []digest.Digest

// Remedy is what to do about an image that is refused.
func Remedy(image string) string {
	return fmt.Sprintf("have it signed, or have the policy accept it: `kubectl extension verify %s` says what would; it is tried again", image)
}

// Judge says whether an image is accepted, from all that registries have of it. That may be made
// to take long: when ctx has ended, what was not looked at yet does not count.
func (r Rule) Judge(ctx context.Context, image Subject, all []Evidence) Verdict {
	verdict := Verdict{Policies: r.Policies()}
	var claims []claim
	var malformed error
	for _, evidence := range all {
		if ctx.Err() != nil {
			break
		}
		read, err := evidence.read()
		if err != nil {
			malformed = err
			continue
		}
		claims = append(claims, read)
	}
	for _, policy := range r.policies {
		signer, err := policy.judge(ctx, image, claims)
		switch {
		case err == nil:
			verdict.Signers = append(verdict.Signers, signer)
			continue
		case len(claims) == 0 && malformed != nil:
			err = fmt.Errorf("it has no signature that can be read: %s", excerpt.Line(malformed.Error(), maxReasonBytes))
		}
		verdict.Refused = verdict.Refused || policy.enforces
		verdict.Refusals = append(verdict.Refusals, fmt.Sprintf("ImagePolicy %q: %v", policy.name, err))
	}
	return verdict
}

// judge says who has signed an image, or why that is not enough.
func (p *policy) judge(ctx context.Context, image Subject, claims []claim) (signer string, err error) {
	signer, err = p.find(ctx, image, claims, "")
	if err != nil {
		return "", err
	}
	for _, demanded := range p.attestations {
		if _, err := p.find(ctx, image, claims, demanded); err != nil {
			return "", fmt.Errorf("the attestation %s is demanded: %w", excerpt.Quote(demanded), err)
		}
	}
	return signer, nil
}

// Why there is nothing to verify.
var (
	errUnsigned   = errors.New("it has no signature")
	errUnattested = errors.New("there is none")
)

// missing is the error for an image of which there is no claim of a type.
func missing(predicateType string) error {
	if predicateType == "" {
		return errUnsigned
	}
	return errUnattested
}

// find looks for a claim of a type that one of the authorities has signed. The error says of
// each authority why none is.
func (p *policy) find(ctx context.Context, image Subject, claims []claim, predicateType string) (signer string, err error) {
	if !slices.ContainsFunc(claims, func(c claim) bool { return c.predicateType == predicateType }) {
		return "", missing(predicateType)
	}
	reasons := make([]string, len(p.authorities))
	for i, authority := range p.authorities {
		signer, err := authority.find(ctx, image, claims, predicateType)
		if err == nil {
			return authority.signedBy(signer), nil
		}
		reasons[i] = fmt.Sprintf("authority %q: %v", authority.name, err)
	}
	slices.Sort(reasons)
	return "", errors.New(strings.Join(reasons, "; "))
}

// find looks for a claim of a type that somebody has signed for whom the authority stands. The
// signer is empty for a key, which has no name. The error is about the last of the claims, unless
// one of them is verified and its signer is not wanted: that says more than why another one fails.
func (a authority) find(ctx context.Context, image Subject, claims []claim, predicateType string) (signer string, err error) {
	if a.unusable != nil {
		return "", a.unusable
	}
	failed := missing(predicateType)
	for _, claimed := range claims {
		if claimed.predicateType != predicateType {
			continue
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		signer, err := a.verify(image, claimed)
		if err == nil {
			return signer, nil
		}
		if _, named := errors.AsType[strangerError](failed); !named {
			failed = err
		}
	}
	return "", failed
}

// strangerError says who has signed, when that is nobody for whom the authority stands.
type strangerError string

// Error names the signer.
func (e strangerError) Error() string {
	return fmt.Sprintf("it is signed by %s, who is none of its identities", string(e))
}

// verify says who has made a claim about an image, if that is somebody whom the authority
// stands for.
func (a authority) verify(image Subject, claimed claim) (string, error) {
	if claimed.about != nil && !slices.ContainsFunc(claimed.about, func(d digest.Digest) bool { return slices.Contains(image, d) }) {
		return "", errors.New("what is signed is another image")
	}
	var failed error
	for _, verifier := range a.verifiers {
		for _, artifact := range artifactsOf(image, claimed) {
			result, err := verifier.Verify(claimed.entity, verify.NewPolicy(artifact, verify.WithoutIdentitiesUnsafe()))
			if err != nil {
				failed = err
				continue
			}
			return a.accept(result)
		}
	}
	if a.signers == nil {
		return "", errors.New("it is not signed with its key")
	}
	return "", errors.New(excerpt.Line(failed.Error(), maxReasonBytes))
}

// artifactsOf are what may have been signed: the text that names the image, or the image by
// one of its digests.
func artifactsOf(image Subject, claimed claim) []verify.ArtifactPolicyOption {
	if claimed.payload != nil {
		return []verify.ArtifactPolicyOption{verify.WithArtifact(bytes.NewReader(claimed.payload))}
	}
	var all []verify.ArtifactPolicyOption
	for _, by := range image {
		if sum, err := hex.DecodeString(by.Encoded()); err == nil {
			all = append(all, verify.WithArtifactDigest(by.Algorithm().String(), sum))
		}
	}
	return all
}

// accept says who a verified signer is, if that is one of those that are wanted.
func (a authority) accept(result *verify.VerificationResult) (string, error) {
	found := result.Signature.Certificate
	if a.signers == nil {
		if found != nil {
			return "", errors.New("it is not signed with its key")
		}
		return "", nil
	}
	if found == nil {
		return "", errors.New("it is signed with a key and not with a certificate")
	}
	if slices.ContainsFunc(a.signers, func(s signer) bool { return s.subject(found.SubjectAlternativeName) && s.issuer(found.Issuer) }) {
		return describe(found), nil
	}
	return "", strangerError(describe(found))
}

func describe(found *certificate.Summary) string {
	text := strconv.Quote(excerpt.Line(found.SubjectAlternativeName, maxSignerBytes))
	if found.Issuer != "" {
		text += " of " + strconv.Quote(excerpt.Line(found.Issuer, maxSignerBytes))
	}
	return text
}
