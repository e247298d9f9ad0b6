package catalogrender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// description is what Chart.yaml has for people, as far as a catalog has a place for it.
type description struct {
	Description string   `json:"description"`
	Keywords    []string `json:"keywords"`
	Home        string   `json:"home"`
	Sources     []string `json:"sources"`
	Maintainers []struct {
		Name  string `json:"name"`
		Email string `json:"email"`
	} `json:"maintainers"`
	Deprecated bool `json:"deprecated"`
}

// chartIn renders the chart that a reference stands for, which opm does not know. Image is where
// it was pulled from; empty for a chart on this machine.
func (r Renderer) chartIn(files fs.FS, ref, image string) (*declcfg.DeclarativeConfig, error) {
	content, err := bundle.Parse(files)
	if err != nil {
		return nil, err
	}
	identity, err := content.Identity()
	if err != nil {
		return nil, err
	}
	if r.ChartPackage != "" {
		identity.Package, identity.Name = r.ChartPackage, r.ChartPackage+".v"+identity.Version
	}
	if image == "" {
		if image, err = r.imageFor(ref, identity.Name, func() (Named, error) { return Named(identity), nil }); err != nil {
			return nil, err
		}
	}
	definitions, err := content.Chart.Definitions()
	if err != nil {
		return nil, err
	}
	var said description
	if err := yaml.Unmarshal(content.Chart.Files["Chart.yaml"], &said); err != nil {
		return nil, fmt.Errorf("reading Chart.yaml: %w", err)
	}
	if said.Deprecated {
		r.Note(ref, "Chart.yaml says that the chart is deprecated: a catalog has that in an olm.deprecations, which is yours to write")
	}
	rendered := declcfg.Bundle{
		Schema: declcfg.SchemaBundle, Name: identity.Name, Package: identity.Package, Image: image,
		Properties: []property.Property{property.MustBuildPackage(identity.Package, identity.Version)},
	}
	if image != "" {
		rendered.RelatedImages = []declcfg.RelatedImage{{Image: image}}
	}
	if content.Chart.KubeVersion != "" {
		wanted, err := kubeVersion(content.Chart.KubeVersion)
		if err != nil {
			return nil, err
		}
		rendered.Properties = append(rendered.Properties, wanted)
	}
	owned := apisOf(definitions)
	for _, api := range owned {
		rendered.Properties = append(rendered.Properties, property.MustBuildGVK(api.group, api.Version, api.Kind))
	}
	rendered.Properties = append(rendered.Properties, said.metadata(owned))
	return &declcfg.DeclarativeConfig{Bundles: []declcfg.Bundle{rendered}}, nil
}

// kubeVersion is written as people read it, with < and >.
func kubeVersion(versions string) (property.Property, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(versions); err != nil {
		return property.Property{}, fmt.Errorf("writing kubeVersion: %w", err)
	}
	return property.Property{Type: requirement.KubeVersion, Value: bytes.TrimSpace(text.Bytes())}, nil
}

// api is a kind that a chart brings.
type api struct {
	operatorsv1alpha1.CRDDescription

	group string
}

// apisOf are those of the versions that are served.
func apisOf(definitions []apiextensionsv1.CustomResourceDefinition) []api {
	var found []api
	for i := range definitions {
		spec := &definitions[i].Spec
		for _, version := range spec.Versions {
			if version.Served {
				found = append(found, api{
					CRDDescription: operatorsv1alpha1.CRDDescription{Name: definitions[i].Name, Version: version.Name, Kind: spec.Names.Kind},
					group:          spec.Group,
				})
			}
		}
	}
	return found
}

// metadata is where other bundles have what people read of them.
func (d description) metadata(owned []api) property.Property {
	said := property.CSVMetadata{Keywords: d.Keywords, Description: d.Description}
	if d.Description != "" {
		said.Annotations = map[string]string{"description": d.Description}
	}
	if d.Home != "" {
		said.Links = append(said.Links, operatorsv1alpha1.AppLink{Name: "Home", URL: d.Home})
	}
	for _, source := range d.Sources {
		said.Links = append(said.Links, operatorsv1alpha1.AppLink{Name: "Source", URL: source})
	}
	for _, one := range d.Maintainers {
		said.Maintainers = append(said.Maintainers, operatorsv1alpha1.Maintainer{Name: one.Name, Email: one.Email})
	}
	for _, api := range owned {
		said.CustomResourceDefinitions.Owned = append(said.CustomResourceDefinitions.Owned, api.CRDDescription)
	}
	return property.MustBuild(&said)
}
