package bundle

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/clusterextensions/operator-controller/internal/quantity"
)

// deploymentConfigSchema is made from the Go type by a test, which also fails
// when the two no longer agree. All its objects are closed.
//
//go:embed deploymentconfig.schema.json
var deploymentConfigSchema []byte

const formatQuantity = "quantity"

// configProblems holds a decoded configuration against what the bundle takes.
func configProblems(b *Bundle, value any) ([]string, error) {
	problems, err := schemaProblems(b, configSchema(b), value)
	if err != nil {
		return nil, err
	}
	object, _ := value.(map[string]any)
	if deployment, ok := object[KeyDeploymentConfig]; ok {
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(deploymentConfigSchema))
		if err != nil {
			return nil, fmt.Errorf("decoding the schema of %s: %w", KeyDeploymentConfig, err)
		}
		found, err := schemaProblems(b, schema, deployment, KeyDeploymentConfig)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

// ConfigSchema is what the configuration of a bundle looks like, for people and for what makes
// forms: a JSON schema of draft 7. What no schema has words for is told by [ParseConfig] alone.
// A list of namespaces is in it only where there can be several. The error is one of our own
// schema.
func ConfigSchema(b *Bundle) (map[string]any, error) {
	schema := configSchema(b)
	properties := configProperties(b)
	if !b.hasWatchNamespaces() {
		delete(properties, KeyWatchNamespaces)
		schema["properties"] = properties
	}
	if _, has := properties[KeyDeploymentConfig]; !has {
		return schema, nil
	}
	var deployment map[string]any
	if err := json.Unmarshal(deploymentConfigSchema, &deployment); err != nil {
		return nil, fmt.Errorf("decoding the schema of %s: %w", KeyDeploymentConfig, err)
	}
	// References to definitions are from the root.
	schema["definitions"] = deployment["definitions"]
	delete(deployment, "definitions")
	delete(deployment, "$schema")
	properties[KeyDeploymentConfig] = deployment
	schema["properties"] = properties
	return schema, nil
}

// configSchema is what the configuration of a bundle looks like. The schema of
// deploymentConfig is a large one, compiled only for those who use it. Whether
// the bundle needs a namespace, and can watch the one that is given, is left to
// watchProblem: no schema has words for it.
func configSchema(b *Bundle) map[string]any {
	return map[string]any{
		"$schema":              "http://json-schema.org/draft-07/schema#",
		"type":                 "object",
		"properties":           configProperties(b),
		"additionalProperties": false,
	}
}

func configProperties(b *Bundle) map[string]any {
	return b.format().configProperties(b)
}

// operatorProperties are the keys by which an operator is configured.
func operatorProperties(b *Bundle) map[string]any {
	properties := map[string]any{
		KeyDeploymentConfig:       true,
		KeyAggregatedClusterRoles: map[string]any{"type": "boolean"},
		KeyOperatorConditions:     map[string]any{"type": "boolean"},
	}
	namespace := map[string]any{
		"type":      "string",
		"minLength": 1,
		"maxLength": maxLabelLength,
		"pattern":   "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
	}
	if b.hasWatchNamespace() {
		properties[KeyWatchNamespace] = namespace
	}
	if b.hasWatchNamespace() || b.hasWatchNamespaces() {
		// An empty list would say that nothing is watched, and mean everything.
		properties[KeyWatchNamespaces] = map[string]any{
			"type": "array", "items": namespace, "minItems": 1, "maxItems": MaxWatchNamespaces, "uniqueItems": true,
		}
	}
	return properties
}

// schemaProblems describes what is wrong with a value, which lies at a path in
// the configuration.
func schemaProblems(b *Bundle, document, value any, path ...string) ([]string, error) {
	compiler := jsonschema.NewCompiler()
	compiler.RegisterFormat(&jsonschema.Format{Name: formatQuantity, Validate: validateQuantity})
	compiler.AssertFormat()
	return describer{bundle: b, document: document, parent: path}.problems(compiler, value)
}

// ValuesProblems describes what is wrong with the values of a chart, which lie at a path in
// the configuration, by the schema that the chart has for them, of any draft. A schema that
// cannot be used is an error. Nothing is fetched that it refers to.
func ValuesProblems(schema []byte, values any, path ...string) ([]string, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	return describer{bundle: &Bundle{}, document: document, parent: path}.problems(compiler, values)
}

// noLoader refuses what lies outside of a schema.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("nothing outside of a chart is read")
}

// validateQuantity: numbers are quantities, of other types the schema speaks.
func validateQuantity(value any) error {
	text, ok := value.(string)
	if !ok {
		return nil
	}
	if quantity.IsHuge(text) {
		return errors.New("there cannot be as much of a resource")
	}
	_, err := resource.ParseQuantity(text)
	return err
}

// describer knows the schema and where in the configuration the value is that
// was held against it.
type describer struct {
	bundle   *Bundle
	document any
	parent   []string
}

// problems of a value, by a compiler that has not seen the schema yet.
func (d describer) problems(compiler *jsonschema.Compiler, value any) ([]string, error) {
	// Absolute, or the compiler would look for the working directory. A chart can refer to its schema
	// by the name of the file.
	const url = "file:///values.schema.json"

	if err := compiler.AddResource(url, d.document); err != nil {
		return nil, err
	}
	schema, err := compiler.Compile(url)
	if err != nil {
		return nil, err
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(value); errors.As(err, &invalid) {
		return d.describe(invalid), nil
	} else if err != nil {
		return nil, err
	}
	return nil, nil
}

// describe turns the leaves of the error tree into sentences about one field
// each.
func (d describer) describe(invalid *jsonschema.ValidationError) []string {
	if len(invalid.Causes) > 0 {
		var problems []string
		for _, cause := range invalid.Causes {
			problems = append(problems, d.describe(cause)...)
		}
		return problems
	}
	path := slices.Concat(d.parent, invalid.InstanceLocation)
	switch cause := invalid.ErrorKind.(type) {
	case *kind.Required:
		return describeEach(cause.Missing, func(key string) string {
			return fmt.Sprintf("required field %q is missing", fieldPath(path, key))
		})
	case *kind.AdditionalProperties:
		return describeEach(cause.Properties, func(key string) string {
			return d.unknownField(path, key, propertiesAt(d.document, invalid.SchemaURL))
		})
	case *kind.Type:
		want := strings.Join(cause.Want, " or ")
		if len(path) == 0 {
			return []string{fmt.Sprintf("invalid type: got %s, want %s", cause.Got, want)}
		}
		return []string{fmt.Sprintf("invalid type for field %q: got %s, want %s", fieldPath(path), cause.Got, want)}
	case *kind.Format:
		return []string{fmt.Sprintf("invalid format for field %q: '%v' is not valid %s: %v", fieldPath(path), cause.Got, cause.Want, cause.Err)}
	case *kind.Pattern:
		return []string{fmt.Sprintf("field %q must match pattern %q", fieldPath(path), cause.Want)}
	case *kind.Enum:
		return []string{fmt.Sprintf("invalid value for field %q: got %q, want one of %s", fieldPath(path), cause.Got, quoted(cause.Want))}
	case *kind.Minimum:
		return []string{fmt.Sprintf("field %q must be at least %s", fieldPath(path), cause.Want.RatString())}
	case *kind.Maximum:
		return []string{fmt.Sprintf("field %q must be at most %s", fieldPath(path), cause.Want.RatString())}
	default:
		return []string{describeSize(path, invalid.ErrorKind)}
	}
}

// describeSize is about how long a text or a list is, and about lists that have something twice.
func describeSize(path []string, found jsonschema.ErrorKind) string {
	switch cause := found.(type) {
	case *kind.MinLength:
		return fmt.Sprintf("field %q must have minimum length of %d (len=%d)", fieldPath(path), cause.Want, cause.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("field %q must have maximum length of %d (len=%d)", fieldPath(path), cause.Want, cause.Got)
	case *kind.MinItems:
		return fmt.Sprintf("field %q must have at least %d item (len=%d)", fieldPath(path), cause.Want, cause.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("field %q must have at most %d items (len=%d)", fieldPath(path), cause.Want, cause.Got)
	case *kind.UniqueItems:
		first, second := strconv.Itoa(cause.Duplicates[0]), strconv.Itoa(cause.Duplicates[1])
		return fmt.Sprintf("field %q must differ from %q", fieldPath(path, second), fieldPath(path, first))
	default:
		return fmt.Sprintf("invalid value for field %q", fieldPath(path))
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
// message, and a deeper one by its path, and so values of a chart.
func (d describer) unknownField(path []string, key string, known []string) string {
	switch {
	case len(known) == 0:
		return fmt.Sprintf("unknown field %q: there is nothing to configure", key)
	case len(path) == 0 && (key == KeyWatchNamespace || key == KeyWatchNamespaces):
		return d.bundle.unknownWatching(key)
	case len(path) > 1, len(path) == 1 && path[0] == keyValues:
		key = fieldPath(path, key)
	}
	return fmt.Sprintf("unknown field %q, want one of %s", key, strings.Join(known, ", "))
}

// propertiesAt are the keys that a schema allows, which is the one that a URL
// points to inside of the document.
func propertiesAt(document any, url string) []string {
	_, pointer, _ := strings.Cut(url, "#")
	schema, _ := document.(map[string]any)
	for step := range strings.SplitSeq(strings.Trim(pointer, "/"), "/") {
		if step != "" {
			schema, _ = schema[step].(map[string]any)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// quoted leaves out the empty value, which is that of a field that is not set.
func quoted(values []any) string {
	var texts []string
	for _, value := range values {
		if value != "" {
			texts = append(texts, fmt.Sprintf("%q", value))
		}
	}
	return strings.Join(texts, ", ")
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
