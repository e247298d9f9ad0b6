package preview

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

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

// ownAnnotations begin so. They have nothing of what is in a Secret.
const ownAnnotations = "olm.operatorframework.io/"

// secretNames are names of environment variables that tell of secrets.
var secretNames = regexp.MustCompile(`(?i)pass|token|secret|key`)

// mask changes both sides such that what differs still does.
func mask(key object.Key, before, after map[string]any, env bool) {
	if key.GroupKind == object.SecretKind {
		foldTexts(before)
		foldTexts(after)
		maskField(before, after, "data")
		maskAnnotations(before, after, func(name string) bool { return !strings.HasPrefix(name, ownAnnotations) })
	}
	if env {
		maskPairs(variablesOf(key, before), variablesOf(key, after))
		maskAnnotations(before, after, func(name string) bool { return name == lastApplied })
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

// maskAnnotations is about the copy that kubectl keeps of an object, and about what other
// tools keep of Secrets.
func maskAnnotations(before, after map[string]any, isMasked func(name string) bool) {
	some := func(holder map[string]any) map[string]value {
		metadata, _ := holder["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		found := valuesOf(annotations)
		maps.DeleteFunc(found, func(name string, _ value) bool { return !isMasked(name) })
		return found
	}
	maskPairs(some(before), some(after))
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

// identify names a variable for comparison. Of several with one name each has a name of its own.
func identify(container, name string, index int, known map[string]value) string {
	identity := container + "/" + name
	if _, found := known[identity]; found {
		identity = fmt.Sprintf("%s/%d", identity, index)
	}
	return identity
}

// variablesOf are the environment variables of a workload whose names tell of secrets.
func variablesOf(key object.Key, workload map[string]any) map[string]value {
	found := map[string]value{}
	for _, container := range containersOf(key, workload) {
		list, _ := container.content["env"].([]any)
		for i, item := range list {
			variable, _ := item.(map[string]any)
			name, _ := variable["name"].(string)
			if _, isSet := variable["value"]; isSet && secretNames.MatchString(name) {
				found[identify(container.name, name, i, found)] = value{in: variable, key: "value"}
			}
		}
	}
	return found
}
