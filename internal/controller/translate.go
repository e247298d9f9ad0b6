package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Wanted is a spec in the terms of those who carry it out.
type Wanted struct {
	Owner    object.Owner
	Request  resolve.Request // without what is installed
	Selector labels.Selector
	Config   []byte // JSON; nil for none

	// Suspended says that nothing of the content is to be written.
	Suspended bool

	// Approval is which upgrades are to go.
	Approval Approval

	// Preflight is what the checks before the first write are to let pass.
	Preflight preflight.Policy

	// Inputs is a digest over Config: when it changes, what is installed is rendered
	// anew.
	Inputs string
}

// InvalidSpecError says that a spec cannot be carried out until it is edited,
// although the API server let it in.
type InvalidSpecError struct{ Err error }

func (e *InvalidSpecError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *InvalidSpecError) Unwrap() error { return e.Err }

// translate fails with [*InvalidSpecError]; the owner is filled in all the same,
// so that what is installed can be kept.
func translate(ext *ocv1.ClusterExtension) (Wanted, error) {
	wanted := Wanted{Owner: object.Owner{
		Name:           ext.Name,
		UID:            ext.UID,
		Namespace:      ext.Spec.Namespace,
		ServiceAccount: ext.Spec.ServiceAccount.Name,
	}, Suspended: ext.Spec.Suspend}
	if ext.Spec.Install != nil {
		wanted.Owner.Replaceable = preflight.Replaceable(ext.Spec.Install.ReplaceImmutable)
	}
	catalog := ext.Spec.Source.Catalog
	if catalog == nil {
		return wanted, &InvalidSpecError{Err: fmt.Errorf("source type %q is not supported", ext.Spec.Source.SourceType)}
	}
	wanted.Owner.Package = catalog.PackageName
	versions, err := resolve.ParseRange(catalog.Version)
	if err != nil {
		return wanted, &InvalidSpecError{Err: err}
	}
	wanted.Request = resolve.Request{
		Package:  catalog.PackageName,
		Range:    versions,
		Channels: catalog.Channels,
		Policy:   resolve.Policy(catalog.UpgradeConstraintPolicy),
	}
	wanted.Approval = Approval{
		Manual:  catalog.UpgradeApproval == ocv1.UpgradeApprovalManual,
		Version: catalog.ApprovedVersion,
		Digest:  catalog.ApprovedDigest,
	}
	if wanted.Selector, err = selectorOf(catalog.Selector); err != nil {
		return wanted, &InvalidSpecError{Err: err}
	}
	if wanted.Config, err = configOf(ext.Spec.Config); err != nil {
		return wanted, &InvalidSpecError{Err: err}
	}
	wanted.Inputs = digestOf(wanted.Config)
	if wanted.Preflight, err = policyOf(ext.Spec.Install); err != nil {
		return wanted, &InvalidSpecError{Err: err}
	}
	return wanted, nil
}

// policyOf is the default policy where the spec says nothing.
func policyOf(install *ocv1.ClusterExtensionInstallConfig) (preflight.Policy, error) {
	policy := preflight.Policy{}
	if install == nil || install.Preflight == nil {
		return policy, nil
	}
	if safety := install.Preflight.CRDUpgradeSafety; safety != nil {
		policy.Definitions.Enforcement = crdupgrade.Enforcement(safety.Enforcement)
		for _, exception := range safety.Exceptions {
			policy.Definitions.Exceptions = append(policy.Definitions.Exceptions, crdupgrade.Exception(exception))
		}
	}
	if permissions := install.Preflight.Permissions; permissions != nil {
		policy.Growth = preflight.Growth{
			Approve:  permissions.Growth == ocv1.PermissionGrowthApprove,
			Approved: permissions.ApprovedVersion,
		}
	}
	return policy, policy.Validate()
}

// selectorOf selects every catalog when none is given, unlike the meaning that
// an absent selector has elsewhere.
func selectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("desired catalog selector is invalid: %w", err)
	}
	return parsed, nil
}

// configOf brings the configuration into one form, whatever the order of its
// keys and its white space.
func configOf(config *ocv1.ClusterExtensionConfig) ([]byte, error) {
	if config == nil || config.Inline == nil {
		return nil, nil
	}
	var values any
	if err := json.Unmarshal(config.Inline.Raw, &values); err != nil {
		return nil, fmt.Errorf("reading the inline configuration: %w", err)
	}
	canonical, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("reading the inline configuration: %w", err)
	}
	return canonical, nil
}

func digestOf(config []byte) string {
	sum := sha256.Sum256(config)
	return "sha256:" + hex.EncodeToString(sum[:])
}
