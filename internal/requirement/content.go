package requirement

import (
	"encoding/json"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// OfContent reads what the files of a bundle state that it needs, each once:
// metadata/dependencies.yaml, metadata/properties.yaml, and the definitions and API services
// that its CSV requires. It is what a catalog that is made of the bundle has, but for
// definitions that the bundle brings itself.
func OfContent(content *bundle.Bundle) List {
	stated := make([]bundle.Property, 0, len(content.Dependencies)+len(content.Properties))
	for _, dependency := range content.Dependencies {
		stated = append(stated, asProperty(dependency))
	}
	stated = append(stated, content.Properties...)
	for _, api := range definedByOthers(content) {
		stated = append(stated, required(api))
	}
	for _, service := range content.CSV.Spec.APIServiceDefinitions.Required {
		stated = append(stated, required(API{Group: service.Group, Version: service.Version, Kind: service.Kind}))
	}
	var properties []*Property
	known := map[string]bool{}
	for _, one := range stated {
		key := one.Type + " " + strings.TrimSpace(string(one.Value))
		if !known[key] {
			known[key] = true
			properties = append(properties, &Property{Type: one.Type, Value: one.Value})
		}
	}
	list := Parse(properties, "")
	list.items = append(list.items, OfKubernetes(content).items...)
	return list
}

// OfKubernetes reads which versions of Kubernetes the files of a bundle want: the
// minKubeVersion of its CSV, or the kubeVersion of a chart.
func OfKubernetes(content *bundle.Bundle) List {
	if content.Chart == nil || content.Chart.KubeVersion == "" {
		return Parse(nil, content.CSV.Spec.MinKubeVersion)
	}
	leaf := &kubernetesRangeLeaf{text: content.Chart.KubeVersion}
	// One that is not valid is no range of anything, and is refused with the chart.
	leaf.contains, _ = bundle.ParseKubeVersion(leaf.text)
	return List{items: []item{{verb: requires, term: term{leaf: leaf}}}}
}

// definedByOthers are the APIs of the definitions that the CSV requires and the files do not
// have. What does not say which API it is requires nothing: nobody but catalogs has looked at it.
func definedByOthers(content *bundle.Bundle) []API {
	own := map[API]bool{}
	for i := range content.CRDs {
		spec := &content.CRDs[i].Spec
		for _, version := range spec.Versions {
			own[API{Group: spec.Group, Version: version.Name, Kind: spec.Names.Kind}] = true
		}
	}
	var others []API
	for _, description := range content.CSV.Spec.CustomResourceDefinitions.Required {
		_, group, _ := strings.Cut(description.Name, ".")
		api := API{Group: group, Version: description.Version, Kind: description.Kind}
		if api.Group != "" && api.Version != "" && api.Kind != "" && !own[api] {
			others = append(others, api)
		}
	}
	return others
}

func required(api API) bundle.Property {
	return bundle.Property{Type: gvkRequired, Value: encoded(map[string]string{"group": api.Group, "version": api.Version, "kind": api.Kind})}
}

// asProperty is the property that a catalog has in place of a dependency. A value
// that cannot be read is left as it is: whoever reads the property says so.
func asProperty(dependency bundle.Property) bundle.Property {
	switch dependency.Type {
	case "olm.package":
		var value struct {
			PackageName string `json:"packageName"`
			Version     string `json:"version"`
		}
		if json.Unmarshal(dependency.Value, &value) == nil {
			dependency.Value = encoded(map[string]string{"packageName": value.PackageName, "versionRange": value.Version})
		}
		dependency.Type = packageRequired
	case "olm.gvk":
		var value API
		if json.Unmarshal(dependency.Value, &value) == nil {
			return required(value)
		}
		dependency.Type = gvkRequired
	}
	return dependency
}

// encoded has its keys sorted, as the values of files have them.
func encoded(value map[string]string) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		return nil // strings can always be encoded
	}
	return text
}
