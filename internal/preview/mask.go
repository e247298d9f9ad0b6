package preview

import (
	"encoding/base64"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// What stands in the place of a value. Its length does not show.
const (
	unchanged = "unchanged"
	changed   = "changed"
	masked    = "masked"
)

// lastApplied is where kubectl keeps a copy of an object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// secretNames are names of environment variables that tell of secrets.
var secretNames = regexp.MustCompile(`(?i)pass|token|secret|key`)

// mask changes both sides such that what differs still does.
func mask(key object.Key, before, after map[string]any, env bool) {
	if key.GroupKind == object.SecretKind {
		foldTexts(before)
		foldTexts(after)
		maskField(before, after, "data")
		maskAnnotation(before, after)
	}
	if env {
		maskPairs(variablesOf(key, before), variablesOf(key, after))
	}
}

// foldTexts has what stringData says where the API server puts it.
func foldTexts(secret map[string]any) {
	texts, found := secret["stringData"]
	if !found {
		return
	}
	delete(secret, "stringData")
	data, isObject := secret["data"].(map[string]any)
	if !isObject {
		data = map[string]any{}
	}
	byName, isObject := texts.(map[string]any)
	if !isObject {
		byName = map[string]any{"stringData": texts} // of a manifest that is refused
	}
	for name, value := range byName {
		if text, isText := value.(string); isText {
			value = base64.StdEncoding.EncodeToString([]byte(text))
		}
		data[name] = value
	}
	secret["data"] = data
}

// maskField masks all values of a field, and the field itself where it is no object.
func maskField(before, after map[string]any, field string) {
	old, oldIsObject := before[field].(map[string]any)
	current, currentIsObject := after[field].(map[string]any)
	_, had := before[field]
	_, has := after[field]
	if had && !oldIsObject || has && !currentIsObject {
		if had {
			before[field] = masked
		}
		if has {
			after[field] = changed
		}
		return
	}
	maskPairs(valuesOf(old), valuesOf(current))
}

// maskAnnotation is about the copy that kubectl keeps of a Secret.
func maskAnnotation(before, after map[string]any) {
	only := func(secret map[string]any) map[string]value {
		metadata, _ := secret["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		if _, found := annotations[lastApplied]; !found {
			return nil
		}
		return map[string]value{lastApplied: {in: annotations, key: lastApplied}}
	}
	maskPairs(only(before), only(after))
}

// value is one that may be masked, where it stands.
type value struct {
	in  map[string]any
	key string
}

func valuesOf(in map[string]any) map[string]value {
	found := make(map[string]value, len(in))
	for key := range in {
		found[key] = value{in: in, key: key}
	}
	return found
}

// maskPairs masks values by their names on both sides.
func maskPairs(before, after map[string]value) {
	for name, current := range after {
		text := changed
		if old, found := before[name]; found && reflect.DeepEqual(old.in[old.key], current.in[current.key]) {
			text = unchanged
			old.in[old.key] = unchanged
			delete(before, name)
		}
		current.in[current.key] = text
	}
	for _, name := range slices.Collect(maps.Keys(before)) {
		before[name].in[before[name].key] = masked
	}
}

// variablesOf are the environment variables of a workload whose names tell of secrets.
func variablesOf(key object.Key, workload map[string]any) map[string]value {
	found := map[string]value{}
	for _, container := range containersOf(key, workload) {
		list, _ := container.content["env"].([]any)
		for _, item := range list {
			variable, _ := item.(map[string]any)
			name, _ := variable["name"].(string)
			if _, isSet := variable["value"]; isSet && secretNames.MatchString(name) {
				found[container.name+"/"+name] = value{in: variable, key: "value"}
			}
		}
	}
	return found
}
