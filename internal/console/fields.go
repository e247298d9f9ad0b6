package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// What the fields of a configuration are called in a form: of a text, and of what is written
// in YAML.
const (
	textPrefix = "text."
	yamlPrefix = "yaml."
)

// configField is one key of a configuration, as a form asks for it.
type configField struct {
	// Key is that of the configuration, Name that of the field.
	Key, Name string
	Value     string
	// Options are all values that there are; none if there are many.
	Options []string
	// Lines says that it is a value of many lines, in YAML.
	Lines bool
	// Hint says what belongs there.
	Hint     string
	Required bool
}

// fieldsOf makes fields of the properties of a schema, sorted by their keys. Whatever it does
// not know is asked for in YAML, and held against the schema as a whole.
func fieldsOf(schema map[string]any, filled form) []configField {
	properties, _ := schema["properties"].(map[string]any)
	required := texts(schema["required"])
	var fields []configField
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[key].(map[string]any)
		if key == bundle.KeyWatchNamespace || key == bundle.KeyWatchNamespaces || line(key) != key || len(fields) == maxConfigFields {
			continue
		}
		kind, _ := property["type"].(string)
		field := configField{Key: key, Name: yamlPrefix + key, Required: slices.Contains(required, key), Hint: hintOf(property)}
		switch {
		case kind == "string":
			field.Name, field.Options = textPrefix+key, texts(property["enum"])
		case kind == "boolean":
			field.Options = []string{"true", "false"}
		case kind != "integer" && kind != "number":
			field.Lines = true
		}
		field.Value = filled.Values[field.Name]
		fields = append(fields, field)
	}
	return fields
}

// texts are those of a list in JSON.
func texts(list any) []string {
	all, _ := list.([]any)
	var found []string
	for _, one := range all[:min(len(all), maxConfigFields)] {
		if text, is := one.(string); is {
			found = append(found, text)
		}
	}
	return found
}

// hintOf says what a schema asks for: its own words, its type, what it allows, and the keys of
// an object with their types.
func hintOf(schema map[string]any) string {
	var parts []string
	description, _ := schema["description"].(string)
	kind, _ := schema["type"].(string)
	for _, part := range []string{description, kind} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	for _, name := range []string{"default", "minimum", "maximum", "pattern"} {
		if value, has := schema[name]; has {
			parts = append(parts, fmt.Sprintf("%s %v", name, value))
		}
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		var keys []string
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			property, _ := properties[key].(map[string]any)
			kind, _ := property["type"].(string)
			keys = append(keys, key+" ("+cmp.Or(kind, "object")+")")
		}
		parts = append(parts, "of "+strings.Join(keys, ", "))
	}
	return line(strings.Join(parts, "; "))
}

// schemaText is a schema as people read it.
func schemaText(schema map[string]any) string {
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return ""
	}
	return string(text)
}

// valuesOf are the fields of a configuration that were filled in, by their names.
func valuesOf(values url.Values) map[string]string {
	filled := map[string]string{}
	for name := range values {
		text := values.Get(name)
		if (strings.HasPrefix(name, textPrefix) || strings.HasPrefix(name, yamlPrefix)) && text != "" && len(filled) < maxConfigFields {
			filled[name] = text
		}
	}
	return filled
}

// addValues adds fields of a configuration to it.
func addValues(config map[string]any, filled map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(filled)) {
		key, isText := strings.CutPrefix(name, textPrefix)
		key = strings.TrimPrefix(key, yamlPrefix)
		if _, twice := config[key]; twice {
			return fmt.Errorf("%q is in the configuration already", key)
		}
		if isText {
			config[key] = filled[name]
			continue
		}
		var value any
		if err := yaml.UnmarshalStrict([]byte(filled[name]), &value); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		config[key] = value
	}
	return nil
}

// watching is what an operator can be told to watch.
type watching struct {
	// Told says that it can be told, and Required that it has to be.
	Told, Required bool
	Hint           string
	// own and other say that this may be the namespace that it is installed to, and another;
	// several, that it may be any, and more than one.
	own, other, several bool
}

// Install modes of a bundle, as it declares them.
const (
	modeAll    = "AllNamespaces"
	modeOwn    = "OwnNamespace"
	modeSingle = "SingleNamespace"
	modeMulti  = "MultiNamespace"
)

// watchingOf goes by the install modes that a package supports. Where a catalog has none of
// them, anything may be.
func watchingOf(modes []string) watching {
	has := func(mode string) bool { return slices.Contains(modes, mode) }
	all, own, single, several := has(modeAll), has(modeOwn), has(modeSingle), has(modeMulti)
	switch {
	case len(modes) == 0:
		return watching{Told: true, own: true, other: true, several: true, Hint: "empty for what the operator does by itself"}
	case !own && !single && !several:
		return watching{Hint: "all namespaces"}
	}
	w := watching{Told: true, Required: !all && (single || !own), own: own, other: single, several: several}
	switch {
	case own && single:
		w.Hint = "its own namespace, or another one"
	case own:
		w.Hint = "its own namespace"
	case single:
		w.Hint = "a namespace other than its own"
	default:
		w.Hint = "a namespace"
	}
	switch {
	case all:
		w.Hint = "empty for all namespaces; or " + w.Hint
	case !w.Required:
		w.Hint = "empty for " + w.Hint
	}
	if several {
		w.Hint += ", or several, separated by commas"
	}
	return w
}

// asList says that namespaces to watch are named by the key for several, also if it is one.
func (w watching) asList(namespace string, watch []string) bool {
	return w.several && (len(watch) > 1 || len(watch) == 1 && !w.alone(namespace, watch[0]))
}

// alone says that the operator supports to watch one namespace, and no other.
func (w watching) alone(namespace, watch string) bool {
	return w.Told && (watch == namespace && w.own || watch != namespace && w.other)
}

// problem is what is wrong with namespaces to watch; empty if nothing is.
func (w watching) problem(namespace string, watch []string) string {
	switch {
	case len(watch) == 0 && w.Required:
		return "the namespace to watch is missing: " + w.Hint
	case len(watch) == 0 || w.several || len(watch) == 1 && w.alone(namespace, watch[0]):
		return ""
	case len(watch) == 1:
		return fmt.Sprintf("the operator cannot watch the namespace %q alone: it can be %s", line(watch[0]), w.Hint)
	}
	return fmt.Sprintf("the operator cannot watch %d namespaces: it can be %s", len(watch), w.Hint)
}
