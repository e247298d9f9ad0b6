package bundle

import (
	"fmt"
	"slices"

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

	// Charts renders the templates of Helm charts, which are unsupported without one.
	Charts ChartEngine

	// Release is what the templates of a chart get to know besides.
	Release ChartRelease

	// Lookup answers templates of a chart that may look at the cluster; nil where there is none.
	Lookup ChartLookup
}

// Config is what a user can set for a bundle.
type Config struct {
	// WatchNamespaces are those that the operator watches, sorted, each once, at most
	// [MaxWatchNamespaces]. Empty means the default of the bundle: all namespaces where it
	// supports that, or its own if there is nothing to choose.
	WatchNamespaces []string

	// Deployment customizes all deployments of the bundle. Nil changes nothing.
	Deployment *DeploymentConfig

	// AggregatedClusterRoles adds the APIs of the bundle to the ClusterRoles
	// admin, edit and view, as classic OLM did.
	AggregatedClusterRoles bool

	// OperatorConditions adds the OperatorCondition of the bundle, the permissions of the
	// operator to write it, and its name as a variable of the containers. It has no effect
	// unless [Bundle.CanHaveOperatorCondition].
	OperatorConditions bool

	// Values are those of a chart that differ from its defaults: a JSON object, empty for
	// none.
	Values []byte

	// AllowLookup lets the templates of a chart look at the cluster.
	AllowLookup bool
}

// isZero is true for the default of every bundle.
func (c Config) isZero() bool {
	return len(c.WatchNamespaces) == 0 && c.Deployment == nil && !c.AggregatedClusterRoles && !c.OperatorConditions && len(c.Values) == 0 && !c.AllowLookup
}

// watchedNamespaces is [""] for all namespaces, or those that are watched, sorted.
func (b *Bundle) watchedNamespaces(opts Options) ([]string, error) {
	watch := slices.Compact(slices.Sorted(slices.Values(opts.Config.WatchNamespaces)))
	if len(watch) == 0 {
		return b.defaultNamespaces(opts.InstallNamespace)
	}
	if problem := b.watchNamespacesProblem(watch, opts.InstallNamespace); problem != "" {
		return nil, newConfigError(problem)
	}
	return watch, nil
}

func (b *Bundle) defaultNamespaces(installNamespace string) ([]string, error) {
	switch {
	case b.supports(operatorsv1alpha1.InstallModeTypeAllNamespaces):
		return []string{corev1.NamespaceAll}, nil
	case b.needsWatchNamespace():
		return nil, newConfigError(b.missingWatchNamespace())
	default:
		// There is nothing to choose.
		return []string{installNamespace}, nil
	}
}

// missingWatchNamespace names the key that every bundle of such install modes takes, and the
// other one where that does too.
func (b *Bundle) missingWatchNamespace() string {
	key, other := KeyWatchNamespace, ""
	switch {
	case !b.hasWatchNamespace():
		key = KeyWatchNamespaces
	case b.supports(operatorsv1alpha1.InstallModeTypeMultiNamespace):
		other = fmt.Sprintf("; %q can name several", KeyWatchNamespaces)
	}
	return fmt.Sprintf("required field %q is missing: the bundle supports %v install modes%s", key, b.supportedModes(), other)
}

// unknownWatching is for a bundle that does not take one of the two keys.
func (b *Bundle) unknownWatching(key string) string {
	if b.hasWatchNamespaces() {
		return fmt.Sprintf("unknown field %q: the bundle supports %v install modes; use %q", key, b.supportedModes(), KeyWatchNamespaces)
	}
	return fmt.Sprintf("unknown field %q: the bundle supports no install mode but AllNamespaces", key)
}

// watchNamespaceProblem is empty when the bundle can watch one namespace, which a key of the
// configuration names. An unknown install namespace rules nothing out.
func (b *Bundle) watchNamespaceProblem(key, watch, installNamespace string) string {
	own := b.supports(operatorsv1alpha1.InstallModeTypeOwnNamespace)
	single := b.supports(operatorsv1alpha1.InstallModeTypeSingleNamespace)
	switch {
	case !own && !single:
		return b.unknownWatching(key)
	case installNamespace == "":
		return ""
	case !single && watch != installNamespace:
		return fmt.Sprintf("invalid format for field %q: '%s' is not valid ownNamespaceInstallMode: invalid value %q: must be %q (the namespace where the operator is installed) because this operator only supports OwnNamespace install mode",
			key, watch, watch, installNamespace)
	case !own && watch == installNamespace:
		return fmt.Sprintf("invalid format for field %q: '%s' is not valid singleNamespaceInstallMode: invalid value %q: must be different from %q (the install namespace) because this operator uses SingleNamespace install mode to watch a different namespace",
			key, watch, watch, installNamespace)
	default:
		return ""
	}
}

// watchNamespacesProblem is empty when the bundle can watch all these namespaces. An operator
// that supports MultiNamespace can watch any, its own among them, and be left with one of
// them; another one can watch a single one by the rules of [Bundle.watchNamespaceProblem].
func (b *Bundle) watchNamespacesProblem(watch []string, installNamespace string) string {
	switch {
	case len(watch) > MaxWatchNamespaces:
		return fmt.Sprintf("field %q must have at most %d items (len=%d)", KeyWatchNamespaces, MaxWatchNamespaces, len(watch))
	case b.supports(operatorsv1alpha1.InstallModeTypeMultiNamespace):
		return ""
	case len(watch) == 1:
		return b.watchNamespaceProblem(KeyWatchNamespaces, watch[0], installNamespace)
	}
	return fmt.Sprintf("field %q has %d namespaces, which takes the install mode MultiNamespace: the bundle supports %v install modes",
		KeyWatchNamespaces, len(watch), b.supportedModes())
}
