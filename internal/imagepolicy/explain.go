package imagepolicy

import (
	"context"
	"fmt"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Outcome is what becomes of an image.
type Outcome string

// The outcomes of a [Verdict].
const (
	// Accepted is for an image that all policies accept that are about it, or that none is about.
	Accepted Outcome = "accepted"

	// Warned is for one that is used although a policy does not accept it.
	Warned Outcome = "warned"

	// Refused is for one that is not used.
	Refused Outcome = "refused"
)

// Outcome is what becomes of the image.
func (v Verdict) Outcome() Outcome {
	switch {
	case v.Refused:
		return Refused
	case len(v.Refusals) > 0:
		return Warned
	default:
		return Accepted
	}
}

// Explanation is a [Verdict] with what it follows from.
type Explanation struct {
	Verdict Verdict `json:"verdict"`

	// Prefix is the one by which the policies decide about the image, without a slash at its end.
	// It is empty for policies about all images, and without policies.
	Prefix string `json:"prefix,omitempty"`

	// Policies are those that decide, sorted by name.
	Policies []PolicyExplanation `json:"policies,omitempty"`

	// Found is what registries have of the image, as far as it is looked at.
	Found []FoundEvidence `json:"found,omitempty"`
}

// PolicyExplanation is what one policy says of an image.
type PolicyExplanation struct {
	Name     string              `json:"name"`
	Mode     policyv1alpha1.Mode `json:"mode"`
	Accepted bool                `json:"accepted"`

	// Signatures are what each authority says of the signatures, of which one has to count.
	Signatures []Finding `json:"signatures"`

	// Attestations are those that are demanded.
	Attestations []AttestationFindings `json:"attestations,omitempty"`
}

// AttestationFindings are what each authority says of an attestation that is demanded. One of them
// has to have signed it.
type AttestationFindings struct {
	PredicateType string    `json:"predicateType"`
	Findings      []Finding `json:"findings"`
}

// Finding is what one authority says of the signatures of an image.
type Finding struct {
	Authority string `json:"authority"`

	// Signer is who has signed it; empty if nobody has for whom the authority stands.
	Signer string `json:"signer,omitempty"`

	// Reason says why nobody has; empty if somebody has.
	Reason string `json:"reason,omitempty"`
}

// FoundEvidence is a signature or an attestation that a registry has.
type FoundEvidence struct {
	Place string `json:"place"`

	// PredicateType is that of an attestation; empty for a signature.
	PredicateType string `json:"predicateType,omitempty"`

	// Problem says why it cannot be read; empty if it can.
	Problem string `json:"problem,omitempty"`
}

// Explain is [Rule.Judge] with what each authority says.
func (r Rule) Explain(ctx context.Context, image Subject, all []Evidence) Explanation {
	explained := Explanation{Verdict: r.Judge(ctx, image, all), Prefix: r.prefix}
	var claims []claim
	for _, evidence := range all {
		found := FoundEvidence{Place: evidence.Place}
		read, err := evidence.read()
		if err != nil {
			found.Problem = excerpt.Line(err.Error(), maxReasonBytes)
		} else {
			found.PredicateType = read.predicateType
			claims = append(claims, read)
		}
		explained.Found = append(explained.Found, found)
	}
	for _, policy := range r.policies {
		explained.Policies = append(explained.Policies, policy.explain(ctx, image, claims))
	}
	return explained
}

func (p *policy) explain(ctx context.Context, image Subject, claims []claim) PolicyExplanation {
	explained := PolicyExplanation{Name: p.name, Mode: policyv1alpha1.ModeWarn, Signatures: p.findings(ctx, image, claims, "")}
	if p.enforces {
		explained.Mode = policyv1alpha1.ModeEnforce
	}
	_, err := p.judge(ctx, image, claims)
	explained.Accepted = err == nil
	for _, demanded := range p.attestations {
		explained.Attestations = append(explained.Attestations, AttestationFindings{
			PredicateType: demanded, Findings: p.findings(ctx, image, claims, demanded),
		})
	}
	return explained
}

// findings are what each authority says of the claims of a type.
func (p *policy) findings(ctx context.Context, image Subject, claims []claim, predicateType string) []Finding {
	all := make([]Finding, len(p.authorities))
	for i, authority := range p.authorities {
		all[i].Authority = authority.name
		signer, err := authority.find(ctx, image, claims, predicateType)
		switch {
		case err != nil:
			all[i].Reason = err.Error()
		case signer == "":
			all[i].Signer = "its key"
		default:
			all[i].Signer = signer
		}
	}
	return all
}

// signedBy names an authority with who has signed for it.
func (a authority) signedBy(signer string) string {
	if signer == "" {
		return fmt.Sprintf("authority %q", a.name)
	}
	return fmt.Sprintf("authority %q: %s", a.name, signer)
}
