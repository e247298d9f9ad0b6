package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Keys of the configuration of a registry+v1 bundle. A plain one has none. The first two are
// those for the namespace that an operator watches, and for several.
const (
	KeyWatchNamespace         = "watchNamespace"
	KeyWatchNamespaces        = "watchNamespaces"
	KeyDeploymentConfig       = "deploymentConfig"
	KeyAggregatedClusterRoles = "aggregatedClusterRoles"
	KeyOperatorConditions     = "operatorConditions"
)

// ParseConfig reads what a user wrote as configuration for a bundle, YAML or
// JSON, empty for none, and holds it against what the bundle supports. It
// fails with a [*ConfigError] that lists all problems, or with an
// [*UnsupportedError] for a bundle that no configuration can install.
//
// An unknown key is refused wherever it is: what is ignored today looks as if
// it worked.
func ParseConfig(b *Bundle, installNamespace string, inline []byte) (Config, error) {
	return b.format().parseConfig(b, installNamespace, inline)
}

func parseOperatorConfig(b *Bundle, installNamespace string, inline []byte) (Config, error) {
	value, err := decodeConfig(inline)
	if err != nil {
		return Config{}, err
	}
	if object, ok := value.(map[string]any); ok {
		dropNulls(b, object)
	}
	problems, err := configProblems(b, value)
	if err != nil {
		return Config{}, err
	}
	object, _ := value.(map[string]any)
	if problem := b.watchProblem(object, installNamespace); problem != "" {
		problems = append(problems, problem)
	}
	if len(problems) > 0 {
		return Config{}, newConfigError(problems...)
	}
	deployment, err := decodeDeploymentConfig(object[KeyDeploymentConfig])
	if err != nil {
		return Config{}, err
	}
	if problems := deploymentProblems(deployment); len(problems) > 0 {
		return Config{}, newConfigError(problems...)
	}
	aggregated, _ := object[KeyAggregatedClusterRoles].(bool)
	conditions, _ := object[KeyOperatorConditions].(bool)
	return Config{
		WatchNamespaces: watchedIn(object), Deployment: deployment, AggregatedClusterRoles: aggregated, OperatorConditions: conditions,
	}, nil
}

// watchProblem is empty when a configuration names namespaces as the bundle
// needs them, or when the schema has already found it wanting.
func (b *Bundle) watchProblem(object map[string]any, installNamespace string) string {
	_, one := object[KeyWatchNamespace]
	_, several := object[KeyWatchNamespaces]
	watch := watchedIn(object)
	switch {
	case object == nil, !b.hasWatchNamespace() && !b.hasWatchNamespaces():
		return ""
	case one && several:
		return fmt.Sprintf("fields %q and %q exclude each other", KeyWatchNamespace, KeyWatchNamespaces)
	case !one && !several && b.needsWatchNamespace():
		return b.missingWatchNamespace()
	case len(watch) == 0, len(watch) > MaxWatchNamespaces, one && !b.hasWatchNamespace():
		return ""
	case one:
		return b.watchNamespaceProblem(KeyWatchNamespace, watch[0], installNamespace)
	default:
		return b.watchNamespacesProblem(watch, installNamespace)
	}
}

// watchedIn are the namespaces that a configuration names, sorted; nil for none, and for what
// its schema does not take.
func watchedIn(object map[string]any) []string {
	if one, _ := object[KeyWatchNamespace].(string); one != "" {
		return []string{one}
	}
	list, _ := object[KeyWatchNamespaces].([]any)
	var names []string
	for _, item := range list {
		if name, _ := item.(string); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// decodeConfig returns an empty map for no configuration.
func decodeConfig(inline []byte) (any, error) {
	documents, err := newDecoder().decode(inline)
	if err != nil {
		// The cause is at the end, behind the names of parsers.
		message := excerpt.Fold(err.Error())
		return nil, newConfigError(strings.TrimSpace(message[strings.LastIndex(message, ":")+1:]))
	}
	switch {
	case len(documents) > 1:
		return nil, newConfigError("more than one document")
	case len(documents) == 0 || documents[0] == nil:
		return map[string]any{}, nil
	default:
		return documents[0], nil
	}
}

// dropNulls makes null mean "not set" for the keys that the bundle knows.
func dropNulls(b *Bundle, object map[string]any) {
	for key := range configProperties(b) {
		if value, ok := object[key]; ok && value == nil {
			delete(object, key)
		}
	}
}

// hasWatchNamespace is false for a bundle without install modes, and for one that can
// neither watch its own namespace alone nor another one.
func (b *Bundle) hasWatchNamespace() bool {
	return b.supports(operatorsv1alpha1.InstallModeTypeOwnNamespace) ||
		b.supports(operatorsv1alpha1.InstallModeTypeSingleNamespace)
}

// hasWatchNamespaces says that the bundle can watch several. Where it cannot, but one, a list
// of one is taken.
func (b *Bundle) hasWatchNamespaces() bool {
	return b.supports(operatorsv1alpha1.InstallModeTypeMultiNamespace)
}

// needsWatchNamespace is true when the bundle has no default for what it watches: it does not
// support all namespaces, and something else than its own one.
func (b *Bundle) needsWatchNamespace() bool {
	switch {
	case b.supports(operatorsv1alpha1.InstallModeTypeAllNamespaces):
		return false
	case b.supports(operatorsv1alpha1.InstallModeTypeSingleNamespace):
		return true
	}
	return b.hasWatchNamespaces() && !b.supports(operatorsv1alpha1.InstallModeTypeOwnNamespace)
}

func decodeDeploymentConfig(value any) (*DeploymentConfig, error) {
	if value == nil {
		return nil, nil
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	config := &DeploymentConfig{}
	if err := decoder.Decode(config); err != nil {
		return nil, newConfigError(fmt.Sprintf("invalid %s: %s", KeyDeploymentConfig, excerpt.Fold(err.Error())))
	}
	return config, nil
}
