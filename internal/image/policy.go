package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage/pkg/configfile"
	"go.podman.io/storage/pkg/unshare"

	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// policy is a signature policy as it was when a pull began.
type policy struct {
	rules *signature.Policy
	// missing says that there is no policy file and that every image is
	// accepted for that reason.
	missing bool
}

// CheckPolicy tells whether a signature policy file can be read.
func CheckPolicy(file string) error {
	_, err := loadPolicy(file)
	return err
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
// reference. It covers all that the decision follows from: other references and
// other policies have to decide anew, and so have other keys in the files that a
// policy names, and other places to look for signatures in registriesDir, where
// empty means those of the system. The rule is what ImagePolicies demand.
func (p policy) approval(ref types.ImageReference, registriesDir string, rule imagepolicy.Rule) (string, error) {
	rules, err := json.Marshal(p.rules)
	if err != nil {
		return "", fmt.Errorf("encoding signature policy: %w", err)
	}
	files, err := namedFiles(rules)
	if err != nil {
		return "", err
	}
	all := digest.Canonical.Digester()
	fmt.Fprintf(all.Hash(), "%s\n%s\n%s\n", ref.PolicyConfigurationIdentity(), rules, rule.Digest())
	for _, file := range files {
		// A file that cannot be read is one without keys: whom it concerns the check
		// tells, and it is not the concern of others.
		content, err := os.ReadFile(file)
		fmt.Fprintf(all.Hash(), "%q %t %d\n%s\n", file, err == nil, len(content), content)
	}
	if err := hashPlaces(all.Hash(), registriesDir); err != nil {
		return "", err
	}
	return all.Digest().Encoded(), nil
}

// hashPlaces writes where signatures are looked for, as the transport reads it.
func hashPlaces(w io.Writer, registriesDir string) error {
	for item, err := range configfile.Read(&configfile.File{
		Name: "registries", Extension: "yaml",
		DoNotLoadMainFiles: true, DoNotUseExtensionForConfigName: true,
		UserId:                          unshare.GetRootlessUID(),
		CustomConfigFileDropInDirectory: registriesDir,
	}) {
		if err != nil {
			return fmt.Errorf("reading where signatures are: %w", err)
		}
		content, err := io.ReadAll(item.Reader)
		if err != nil {
			return fmt.Errorf("reading where signatures are: %w", err)
		}
		fmt.Fprintf(w, "%q %d\n%s\n", item.Name, len(content), content)
	}
	return nil
}

// namedFiles returns the files that the rules of a policy name, sorted. Their
// fields end in Path or Paths, see containers-policy.json(5).
func namedFiles(rules []byte) ([]string, error) {
	var tree any
	if err := json.Unmarshal(rules, &tree); err != nil {
		return nil, fmt.Errorf("reading signature policy: %w", err)
	}
	var files []string
	collectFiles(tree, false, &files)
	slices.Sort(files)
	return slices.Compact(files), nil
}

// collectFiles adds the strings at and below a node of JSON that are names of files.
func collectFiles(node any, isPath bool, files *[]string) {
	switch node := node.(type) {
	case string:
		if isPath {
			*files = append(*files, node)
		}
	case []any:
		for _, item := range node {
			collectFiles(item, isPath, files)
		}
	case map[string]any:
		for key, value := range node {
			collectFiles(value, strings.HasSuffix(key, "Path") || strings.HasSuffix(key, "Paths"), files)
		}
	}
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
// from judging them. Errors of files, which may look like those of a network, are
// about what the policy names.
func isTransport(ctx context.Context, err error) bool {
	var file *fs.PathError
	var network net.Error
	var status docker.UnexpectedHTTPStatusError
	return ctx.Err() != nil || !errors.As(err, &file) && (errors.As(err, &network) || errors.As(err, &status))
}
