package requirement

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Stated are the properties that state a requirement, and the Kubernetes that is needed,
// as the catalog has them: a text each.
func Stated(properties []*Property, minKubernetes string) []string {
	var texts []string
	for _, property := range properties {
		if !Parse([]*Property{property}, "").Empty() {
			texts = append(texts, statedIn(property))
		}
	}
	if !Parse(nil, minKubernetes).Empty() {
		texts = append(texts, "minKubeVersion "+minKubernetes)
	}
	return texts
}

// statedIn is a range of versions of Kubernetes as people write it, and any other property as it is.
func statedIn(property *Property) string {
	var versions string
	if property.Type == KubeVersion && json.Unmarshal(property.Value, &versions) == nil {
		return "Kubernetes " + versions
	}
	return property.Type + " " + readable(property.Value)
}

// readable returns value, which is valid JSON, with no more escapes than it needs.
func readable(value json.RawMessage) string {
	in := json.NewDecoder(bytes.NewReader(value))
	in.UseNumber()
	var decoded any
	if err := in.Decode(&decoded); err != nil {
		return string(value)
	}
	var text strings.Builder
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	if err := out.Encode(decoded); err != nil {
		return string(value)
	}
	return strings.TrimSuffix(text.String(), "\n")
}
