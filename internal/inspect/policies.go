package inspect

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// PolicyReader reads ImagePolicies, and what they are about, with the rights of whoever asks.
type PolicyReader struct {
	api       client.Client
	namespace string
}

// NewPolicyReader asks the cluster for nothing yet.
func NewPolicyReader(cfg Config) (*PolicyReader, error) {
	through, err := rest.HTTPClientFor(cfg.REST)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	api, err := client.New(cfg.REST, client.Options{HTTPClient: through, Scheme: scheme, Mapper: ownKinds()})
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	return &PolicyReader{api: api, namespace: cfg.SystemNamespace}, nil
}

// Catalog reads one.
func (r *PolicyReader) Catalog(ctx context.Context, name string) (*ocv1.ClusterCatalog, error) {
	catalog := &ocv1.ClusterCatalog{}
	if err := r.api.Get(ctx, types.NamespacedName{Name: name}, catalog); err != nil {
		return nil, fmt.Errorf("reading ClusterCatalog %q: %w", name, err)
	}
	return catalog, nil
}

// UnreadSecretError says that a Secret cannot be read that a policy names.
type UnreadSecretError struct {
	Namespace, Name string
	// Policy is the first that names it.
	Policy string
	Err    error
}

func (e *UnreadSecretError) Error() string {
	return fmt.Sprintf("reading the Secret %s/%s, which ImagePolicy %q names: %v", e.Namespace, e.Name, e.Policy, e.Err)
}

// Unwrap returns the cause.
func (e *UnreadSecretError) Unwrap() error { return e.Err }

// PoliciesFor has the policies that decide about the images of some repositories, and no other.
// Only the Secrets that these name are read. The error may be an *UnreadSecretError.
func (r *PolicyReader) PoliciesFor(ctx context.Context, repositories []string) (*imagepolicy.Set, error) {
	var list policyv1alpha1.ImagePolicyList
	if err := r.api.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing ImagePolicies: %w", err)
	}
	all := imagepolicy.Compile(list.Items, imagepolicy.InNamespace(r.namespace, nil))
	var deciding []string
	for _, repository := range repositories {
		deciding = append(deciding, all.For(repository).Policies()...)
	}
	policies := slices.DeleteFunc(list.Items, func(p policyv1alpha1.ImagePolicy) bool { return !slices.Contains(deciding, p.Name) })
	found := map[string]map[string][]byte{}
	for i := range policies {
		for _, name := range imagepolicy.SecretsOf(&policies[i]) {
			if _, read := found[name]; read {
				continue
			}
			data, err := r.secret(ctx, name)
			if err != nil {
				return nil, &UnreadSecretError{Namespace: r.namespace, Name: name, Policy: policies[i].Name, Err: err}
			}
			found[name] = data
		}
	}
	return imagepolicy.Compile(policies, imagepolicy.InNamespace(r.namespace, found)), nil
}

// secret gives the data of one; nil if there is none.
func (r *PolicyReader) secret(ctx context.Context, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := r.api.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case secret.Data == nil:
		return map[string][]byte{}, nil
	}
	return secret.Data, nil
}

// Installed is what the release records of an extension say to be installed; nil if nothing is,
// in which case they are not read.
func (c *Cluster) Installed(ctx context.Context, name string) (*installation.Revision, error) {
	asked, err := c.extension(ctx, Request{Name: name})
	if err != nil || asked.live.Status.Install == nil {
		return nil, err
	}
	recordings, err := release.Recordings(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, controller.OwnerOf(asked.live))
	if err == nil {
		err = c.checkRecorded(asked.live, len(recordings))
	}
	if err != nil {
		return nil, fmt.Errorf("which image is installed, for which the release records are read: %w", err)
	}
	if last := lastWritten(recordings); last >= 0 {
		return &recordings[last].Revision, nil
	}
	return nil, nil
}
