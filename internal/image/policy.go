package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage/pkg/configfile"
)

// policy is a signature policy as it was when a pull began.
type policy struct {
	rules *signature.Policy
	// missing says that there is no policy file and that every image is
	// accepted for that reason.
	missing bool
}

// loadPolicy reads the policy file, or that of the system if file is empty.
// Only the absence of a system policy means that everything is accepted; a
// policy that cannot be read or parsed must not fail open.
func loadPolicy(file string) (policy, error) {
	rules, err := signature.DefaultPolicy(&types.SystemContext{SignaturePolicyPath: file})
	if file == "" && errors.Is(err, configfile.ErrConfigFileNotFound) {
		anything := signature.PolicyRequirements{signature.NewPRInsecureAcceptAnything()}
		return policy{rules: &signature.Policy{Default: anything}, missing: true}, nil
	}
	if err != nil {
		return policy{}, fmt.Errorf("reading signature policy: %w", err)
	}
	return policy{rules: rules}, nil
}

// approval identifies the decision to accept an image under the given
// reference: other references and other policies have to decide anew.
func (p policy) approval(ref types.ImageReference) (string, error) {
	rules, err := json.Marshal(p.rules)
	if err != nil {
		return "", fmt.Errorf("encoding signature policy: %w", err)
	}
	identity := ref.PolicyConfigurationIdentity() + "\n" + string(rules)
	return digest.FromString(identity).Encoded(), nil
}

// check asks the policy about an image. The error is a *PolicyError if the
// policy says no.
func (p policy) check(ctx context.Context, asked string, img types.UnparsedImage) error {
	decider, err := signature.NewPolicyContext(p.rules)
	if err != nil {
		return fmt.Errorf("evaluating signature policy: %w", err)
	}
	// Destroying a context only fails while it is in use.
	defer decider.Destroy() //nolint:errcheck // see above
	allowed, err := decider.IsRunningImageAllowed(ctx, img)
	switch {
	case allowed && err == nil:
		return nil
	case isTransport(ctx, err):
		return registryError(ctx, "getting signatures", err)
	default:
		return &PolicyError{Ref: asked, Err: err}
	}
}

// isTransport reports whether err comes from fetching signatures rather than
// from judging them.
func isTransport(ctx context.Context, err error) bool {
	var network net.Error
	var status docker.UnexpectedHTTPStatusError
	return ctx.Err() != nil || errors.As(err, &network) || errors.As(err, &status)
}
