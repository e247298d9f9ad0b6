package controller

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
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

	// HasValues says that Config has values for the templates of a chart.
	HasValues bool

	// Image is that of the bundle where the spec names one; empty where catalogs have it.
	// Request and Selector say nothing then, but which package is installed.
	Image string

	// Resolved is what the status says that an image was found to be; zero if it says nothing.
	Resolved namedBundle

	// Generation is that of the spec.
	Generation int64

	// Suspended says that nothing of the content is to be written.
	Suspended bool

	// HookDeadline is how long each hook of a Helm chart may take.
	HookDeadline time.Duration

	// Approval is which upgrades are to go, and GrowthApproval which may give the operator more
	// rights. The latter is never Manual.
	Approval, GrowthApproval Approval

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

// OwnerOf is an extension as the applier knows it. Its package is empty for a named bundle of
// which nobody has looked yet what it is.
func OwnerOf(ext *ocv1.ClusterExtension) object.Owner {
	owner := object.Owner{
		Name:           ext.Name,
		UID:            ext.UID,
		Namespace:      ext.Spec.Namespace,
		ServiceAccount: ext.Spec.ServiceAccount.Name,
		Package:        ext.Package(),
		Imported:       ext.Annotations[ocv1.MigratedFromHelmReleaseAnnotation] != "",
		Doubtful:       isDoubtful(meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeAvailable)),
	}
	// A Subscription of another namespace had its content there, which is not moved.
	if from, isMigrated := ext.MigratedFrom(); isMigrated && from.Namespace == owner.Namespace {
		owner.Predecessor = object.Predecessor{Namespace: from.Namespace, Package: owner.Package}
	}
	if ext.Spec.Install != nil {
		owner.Replaceable = preflight.Replaceable(ext.Spec.Install.ReplaceImmutable)
	}
	if named := ext.Spec.Source.Bundle; named != nil {
		owner.Image = named.Ref
	}
	return owner
}

func isDoubtful(available *metav1.Condition) bool {
	return available != nil && available.Status != metav1.ConditionTrue
}

// translate fails with [*InvalidSpecError]; the owner is filled in all the same,
// so that what is installed can be kept.
func translate(ext *ocv1.ClusterExtension) (Wanted, error) {
	wanted := Wanted{Owner: OwnerOf(ext), Generation: ext.Generation, Suspended: ext.Spec.Suspend, Resolved: resolvedIn(ext)}
	wanted.HookDeadline = cmp.Or(deadlineOf(ext), defaultHookDeadline)
	err := wanted.addSource(ext.Spec.Source)
	if err != nil {
		return wanted, &InvalidSpecError{Err: err}
	}
	if wanted.Config, err = configOf(ext.Spec.Config); err != nil {
		return wanted, &InvalidSpecError{Err: err}
	}
	wanted.Inputs, wanted.HasValues = digestOf(wanted.Config), hasValues(wanted.Config)
	wanted.GrowthApproval = growthApprovalOf(ext.Spec.Install)
	if wanted.Preflight, err = policyOf(ext.Spec.Install); err != nil {
		return wanted, &InvalidSpecError{Err: err}
	}
	return wanted, nil
}

// defaultHookDeadline is for specs without a deadline: twice what Helm has.
const defaultHookDeadline = 10 * time.Minute

// addSource says what to install, and from where.
func (w *Wanted) addSource(source ocv1.SourceConfig) error {
	catalog := source.Catalog
	switch {
	case source.Bundle != nil:
		w.Image, w.Request.Package = source.Bundle.Ref, w.Owner.Package
		return nil
	case catalog == nil:
		return fmt.Errorf("source type %q is not supported", source.SourceType)
	}
	versions, err := resolve.ParseRange(catalog.Version)
	if err != nil {
		return err
	}
	w.Request = resolve.Request{
		Package:  catalog.PackageName,
		Range:    versions,
		Channels: catalog.Channels,
		Policy:   resolve.Policy(catalog.UpgradeConstraintPolicy),
	}
	w.Approval = Approval{
		Manual:  catalog.UpgradeApproval == ocv1.UpgradeApprovalManual,
		Version: catalog.ApprovedVersion,
		Digest:  catalog.ApprovedDigest,
	}
	w.Selector, err = selectorOf(catalog.Selector)
	return err
}

// of is the same with the package that is installed, where the spec says none.
func (w Wanted) of(installed *installation.Revision) Wanted {
	if w.Image != "" && installed != nil {
		w.Request.Package = installed.Bundle.Package
	}
	return w
}

// growthApprovalOf is what rights are agreed to, beside what all of an upgrade is.
func growthApprovalOf(install *ocv1.ClusterExtensionInstallConfig) Approval {
	if install == nil || install.Preflight == nil || install.Preflight.Permissions == nil {
		return Approval{}
	}
	permissions := install.Preflight.Permissions
	return Approval{Version: permissions.ApprovedVersion, Digest: permissions.ApprovedDigest}
}

// policyOf is the default policy where the spec says nothing. What is approved depends on the
// target, see [policyFor].
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
		policy.Growth.Approve = permissions.Growth == ocv1.PermissionGrowthApprove
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

// hasValues is false where the configuration is not to be understood.
func hasValues(config []byte) bool {
	var inline struct {
		Values map[string]any `json:"values"`
	}
	return json.Unmarshal(config, &inline) == nil && len(inline.Values) > 0
}

func digestOf(config []byte) string {
	sum := sha256.Sum256(config)
	return "sha256:" + hex.EncodeToString(sum[:])
}
