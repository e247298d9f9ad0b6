package bundle

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"k8s.io/apimachinery/pkg/api/resource"
)

// deploymentConfigSchema is made from the Go type by a test, which also fails
// when the two no longer agree. All its objects are closed.
//
//go:embed deploymentconfig.schema.json
var deploymentConfigSchema []byte

const (
	configSchemaURL           = "mem:///config.json"
	deploymentConfigSchemaURL = "mem:///deploymentconfig.json"

	formatQuantity = "quantity"
)

// configSchema is what a configuration for the bundle looks like. Whether the
// bundle can watch the namespace is left to watchNamespaceProblem, which a
// schema cannot express well enough for its message.
func configSchema(b *Bundle) (*jsonschema.Schema, error) {
	properties := map[string]any{
		keyDeploymentConfig: map[string]any{"$ref": deploymentConfigSchemaURL},
	}
	root := map[string]any{
		"$schema":              "http://json-schema.org/draft-07/schema#",
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
	}
	if b.hasWatchNamespace() {
		properties[keyWatchNamespace] = map[string]any{
			"type":      "string",
			"minLength": 1,
			"maxLength": maxLabelLength,
			"pattern":   "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
		}
	}
	if b.needsWatchNamespace() {
		root["required"] = []any{keyWatchNamespace}
	}
	deployment, err := jsonschema.UnmarshalJSON(bytes.NewReader(deploymentConfigSchema))
	if err != nil {
		return nil, fmt.Errorf("decoding the schema of %s: %w", keyDeploymentConfig, err)
	}
	return compileSchema(map[string]any{configSchemaURL: root, deploymentConfigSchemaURL: deployment})
}

// needsWatchNamespace is true when the bundle has no default for it.
func (b *Bundle) needsWatchNamespace() bool {
	return b.supports(operatorsv1alpha1.InstallModeTypeSingleNamespace) &&
		!b.supports(operatorsv1alpha1.InstallModeTypeAllNamespaces)
}

func compileSchema(documents map[string]any) (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.RegisterFormat(&jsonschema.Format{Name: formatQuantity, Validate: validateQuantity})
	compiler.AssertFormat()
	for url, document := range documents {
		if err := compiler.AddResource(url, document); err != nil {
			return nil, err
		}
	}
	return compiler.Compile(configSchemaURL)
}

// validateQuantity: numbers are quantities, of other types the schema speaks.
func validateQuantity(value any) error {
	text, ok := value.(string)
	if !ok {
		return nil
	}
	_, err := resource.ParseQuantity(text)
	return err
}

// configProblems are the leaves of the error tree: each a sentence about one
// field.
func configProblems(invalid *jsonschema.ValidationError) []string {
	if len(invalid.Causes) > 0 {
		var problems []string
		for _, cause := range invalid.Causes {
			problems = append(problems, configProblems(cause)...)
		}
		return problems
	}
	path := invalid.InstanceLocation
	switch cause := invalid.ErrorKind.(type) {
	case *kind.Required:
		return describeEach(cause.Missing, func(key string) string {
			return fmt.Sprintf("required field %q is missing", fieldPath(path, key))
		})
	case *kind.AdditionalProperties:
		return describeEach(cause.Properties, func(key string) string { return unknownField(path, key) })
	case *kind.Type:
		want := strings.Join(cause.Want, " or ")
		if len(path) == 0 {
			return []string{fmt.Sprintf("invalid type: got %s, want %s", cause.Got, want)}
		}
		return []string{fmt.Sprintf("invalid type for field %q: got %s, want %s", fieldPath(path), cause.Got, want)}
	case *kind.Format:
		return []string{fmt.Sprintf("invalid format for field %q: '%v' is not valid %s: %v", fieldPath(path), cause.Got, cause.Want, cause.Err)}
	case *kind.MinLength:
		return []string{fmt.Sprintf("field %q must have minimum length of %d (len=%d)", fieldPath(path), cause.Want, cause.Got)}
	case *kind.MaxLength:
		return []string{fmt.Sprintf("field %q must have maximum length of %d (len=%d)", fieldPath(path), cause.Want, cause.Got)}
	case *kind.Pattern:
		return []string{fmt.Sprintf("field %q must match pattern %q", fieldPath(path), cause.Want)}
	default:
		text := invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		return []string{fmt.Sprintf("invalid value for field %q: %s", fieldPath(path), singleLine(text))}
	}
}

func describeEach(keys []string, describe func(string) string) []string {
	problems := make([]string, len(keys))
	for i, key := range keys {
		problems[i] = describe(key)
	}
	return problems
}

// unknownField names a key of the two outer levels alone, as users know the
// message, and a deeper one by its path.
func unknownField(path []string, key string) string {
	if len(path) > 1 {
		key = fieldPath(path, key)
	}
	return fmt.Sprintf("unknown field %q", key)
}

// fieldPath is the path as people write it: a.b[0].c.
func fieldPath(path []string, more ...string) string {
	var text strings.Builder
	for _, step := range slices.Concat(path, more) {
		switch {
		case strings.Trim(step, "0123456789") == "":
			text.WriteString("[" + step + "]")
		case text.Len() > 0:
			text.WriteString("." + step)
		default:
			text.WriteString(step)
		}
	}
	return text.String()
}
