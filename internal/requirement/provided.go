package requirement

import (
	"encoding/json"
	"slices"
)

const gvkProperty = "olm.gvk"

// Provided are the APIs that a bundle says it brings to the cluster, sorted.
// Those that cannot be read are left out.
func Provided(properties []*Property) []API {
	var provided []API
	for _, property := range properties {
		if property.Type != gvkProperty || len(property.Value) > maxValue {
			continue
		}
		var api API
		if json.Unmarshal(property.Value, &api) == nil && api.Version != "" && api.Kind != "" {
			provided = append(provided, api)
		}
	}
	slices.SortFunc(provided, API.compare)
	return slices.Compact(provided)
}
