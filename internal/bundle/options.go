package bundle

import (
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// Options say where and how a bundle is installed.
type Options struct {
	// InstallNamespace gets every namespaced object of the bundle. Required.
	InstallNamespace string

	// Config as [ParseConfig] returns it; the zero Config is the default.
	Config Config

	// Certificates says who issues the certificates of webhooks. Bundles with
	// webhooks are unsupported without one.
	Certificates CertificateProvider

	// ConditionName sets the variable OPERATOR_CONDITION_NAME to the name of the bundle, in
	// each container of its deployments that has no such variable. The reference
	// implementation does not set it: what is compared with its objects goes without.
	ConditionName bool
}

// Config is what a user can set for a bundle.
type Config struct {
	// WatchNamespace is the one namespace that the operator watches. Empty
	// means the default of the bundle: all namespaces where it supports that,
	// or its own if it supports nothing else.
	WatchNamespace string

	// Deployment customizes all deployments of the bundle. Nil changes nothing.
	Deployment *DeploymentConfig

	// AggregatedClusterRoles adds the APIs of the bundle to the ClusterRoles
	// admin, edit and view, as classic OLM did.
	AggregatedClusterRoles bool

	// OperatorConditions makes the OperatorCondition of the bundle, with the rights of the
	// operator to write it, where there can be one: see [Bundle.CanHaveOperatorCondition].
	OperatorConditions bool
}

// watchedNamespaces is [""] for all namespaces, or the one that is watched.
func (b *Bundle) watchedNamespaces(opts Options) ([]string, error) {
	watch := opts.Config.WatchNamespace
	if watch == "" {
		return b.defaultNamespaces(opts.InstallNamespace)
	}
	if problem := b.watchNamespaceProblem(watch, opts.InstallNamespace); problem != "" {
		return nil, newConfigError(problem)
	}
	return []string{watch}, nil
}

func (b *Bundle) defaultNamespaces(installNamespace string) ([]string, error) {
	switch {
	case b.supports(operatorsv1alpha1.InstallModeTypeAllNamespaces):
		return []string{corev1.NamespaceAll}, nil
	case b.supports(operatorsv1alpha1.InstallModeTypeOwnNamespace) && !b.supports(operatorsv1alpha1.InstallModeTypeSingleNamespace):
		// There is nothing to choose.
		return []string{installNamespace}, nil
	default:
		return nil, newConfigError(b.missingWatchNamespace())
	}
}

func (b *Bundle) missingWatchNamespace() string {
	return fmt.Sprintf("required field %q is missing: the bundle supports %v install modes", keyWatchNamespace, b.supportedModes())
}

const unknownWatchNamespace = `unknown field "watchNamespace": the bundle supports no install mode but AllNamespaces`

// watchNamespaceProblem is empty when the bundle can watch the namespace. An
// unknown install namespace rules nothing out.
func (b *Bundle) watchNamespaceProblem(watch, installNamespace string) string {
	own := b.supports(operatorsv1alpha1.InstallModeTypeOwnNamespace)
	single := b.supports(operatorsv1alpha1.InstallModeTypeSingleNamespace)
	switch {
	case !own && !single:
		return unknownWatchNamespace
	case installNamespace == "":
		return ""
	case !single && watch != installNamespace:
		return fmt.Sprintf("invalid format for field %q: '%s' is not valid ownNamespaceInstallMode: invalid value %q: must be %q (the namespace where the operator is installed) because this operator only supports OwnNamespace install mode",
			keyWatchNamespace, watch, watch, installNamespace)
	case !own && watch == installNamespace:
		return fmt.Sprintf("invalid format for field %q: '%s' is not valid singleNamespaceInstallMode: invalid value %q: must be different from %q (the install namespace) because this operator uses SingleNamespace install mode to watch a different namespace",
			keyWatchNamespace, watch, watch, installNamespace)
	default:
		return ""
	}
}
