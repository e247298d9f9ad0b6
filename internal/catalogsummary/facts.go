package catalogsummary

import "encoding/json"

// facts are what a bundle says of itself.
type facts struct {
	version, displayName, provider, description string

	keywords []string
}

// newFacts reads the JSON of an olm.bundle. What cannot be read is empty.
func newFacts(object []byte) facts {
	var from struct {
		Properties []struct {
			Type  string          `json:"type"`
			Value json.RawMessage `json:"value"`
		} `json:"properties"`
	}
	var found facts
	if json.Unmarshal(object, &from) != nil {
		return found
	}
	for _, property := range from.Properties {
		switch property.Type {
		case "olm.package":
			var value struct {
				Version string `json:"version"`
			}
			if json.Unmarshal(property.Value, &value) == nil {
				found.version = line(value.Version, maxText)
			}
		case "olm.csv.metadata":
			var value csv
			if json.Unmarshal(property.Value, &value) == nil {
				found.displayName, found.provider = value.DisplayName, value.Provider.Name
				found.keywords, found.description = value.Keywords, value.Annotations.Description
			}
		}
	}
	return found
}

// csv is what a summary needs of an olm.csv.metadata property.
type csv struct {
	DisplayName string `json:"displayName"`
	Provider    struct {
		Name string `json:"name"`
	} `json:"provider"`
	Keywords    []string `json:"keywords"`
	Annotations struct {
		Description string `json:"description"`
	} `json:"annotations"`
}
