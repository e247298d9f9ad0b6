package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Keys of the configuration of a registry+v1 bundle. A plain one has none.
const (
	keyWatchNamespace         = "watchNamespace"
	keyDeploymentConfig       = "deploymentConfig"
	keyAggregatedClusterRoles = "aggregatedClusterRoles"
	keyOperatorConditions     = "operatorConditions"
)

// ParseConfig reads what a user wrote as configuration for a bundle, YAML or
// JSON, empty for none, and holds it against what the bundle supports. It
// fails with a [*ConfigError] that lists all problems, or with an
// [*UnsupportedError] for a bundle that no configuration can install.
//
// An unknown key is refused wherever it is: what is ignored today looks as if
// it worked.
func ParseConfig(b *Bundle, installNamespace string, inline []byte) (Config, error) {
	if !b.isPlain() {
		v := validator{bundle: b}
		v.installModes()
		if err := v.err(); err != nil {
			return Config{}, err
		}
	}
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
	deployment, err := decodeDeploymentConfig(object[keyDeploymentConfig])
	if err != nil {
		return Config{}, err
	}
	if problems := deploymentProblems(deployment); len(problems) > 0 {
		return Config{}, newConfigError(problems...)
	}
	aggregated, _ := object[keyAggregatedClusterRoles].(bool)
	conditions, _ := object[keyOperatorConditions].(bool)
	watch, _ := object[keyWatchNamespace].(string)
	return Config{
		WatchNamespace: watch, Deployment: deployment, AggregatedClusterRoles: aggregated, OperatorConditions: conditions,
	}, nil
}

// watchProblem is empty when a configuration names a namespace as the bundle
// needs it, or when the schema has already found it wanting.
func (b *Bundle) watchProblem(object map[string]any, installNamespace string) string {
	watch, given := object[keyWatchNamespace]
	text, _ := watch.(string)
	switch {
	case object == nil, !b.hasWatchNamespace():
		return ""
	case !given && b.needsWatchNamespace():
		return b.missingWatchNamespace()
	case text == "":
		return ""
	default:
		return b.watchNamespaceProblem(text, installNamespace)
	}
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

// hasWatchNamespace is false for a plain bundle, and for a bundle that leaves no choice but all
// namespaces.
func (b *Bundle) hasWatchNamespace() bool {
	return b.supports(operatorsv1alpha1.InstallModeTypeOwnNamespace) ||
		b.supports(operatorsv1alpha1.InstallModeTypeSingleNamespace)
}

// needsWatchNamespace is true when the bundle has no default for it.
func (b *Bundle) needsWatchNamespace() bool {
	return b.supports(operatorsv1alpha1.InstallModeTypeSingleNamespace) &&
		!b.supports(operatorsv1alpha1.InstallModeTypeAllNamespaces)
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
		return nil, newConfigError(fmt.Sprintf("invalid %s: %s", keyDeploymentConfig, excerpt.Fold(err.Error())))
	}
	return config, nil
}
